package functions

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/mission"
)

var _ function.Function = leaderboard{}

type leaderboard struct{}

// NewLeaderboard returns the function leaderboard.
func NewLeaderboard() function.Function { return leaderboard{} }

// standing is one line of the result.
type standing struct {
	Rank        types.Int64   `tfsdk:"rank"`
	Name        types.String  `tfsdk:"name"`
	Runs        types.Int64   `tfsdk:"runs"`
	SuccessRate types.Float64 `tfsdk:"success_rate"`
	WinRate     types.Float64 `tfsdk:"win_rate"`
	MeanScore   types.Float64 `tfsdk:"mean_score"`
	MeanSeconds types.Float64 `tfsdk:"mean_seconds"`
}

var standingType = types.ObjectType{AttrTypes: map[string]attr.Type{"rank": types.Int64Type, "name": types.StringType, "runs": types.Int64Type,
	"success_rate": types.Float64Type, "win_rate": types.Float64Type, "mean_score": types.Float64Type, "mean_seconds": types.Float64Type}}

func (leaderboard) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "leaderboard"
}

func (leaderboard) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Rank agents by the reports of their runs",
		MarkdownDescription: "Sums up reports of `sandbox_agent_run` and `sandbox_mission` and returns a list of objects, the best first: `rank` (equals share one), `name` (of the agent; of the member or run where it was a command), `runs`, " +
			"`success_rate`, `win_rate` (of the arena rounds that it took part in), `mean_score` (null without any) and `mean_seconds`. It orders by win rate, success rate, mean score, and then by the shorter time.",
		Parameters: []function.Parameter{
			function.ListParameter{Name: "reports", ElementType: types.StringType, MarkdownDescription: "The attributes `report`, in any order."},
		},
		Return: function.ListReturn{ElementType: standingType},
	}
}

func (leaderboard) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var reports []string
	if resp.Error = req.Arguments.Get(ctx, &reports); resp.Error != nil {
		return
	}
	list, err := mission.Leaderboard(reports)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	out := make([]standing, 0, len(list))
	for _, s := range list {
		out = append(out, standing{Rank: types.Int64Value(int64(s.Rank)), Name: types.StringValue(s.Name), Runs: types.Int64Value(int64(s.Runs)), SuccessRate: types.Float64Value(s.SuccessRate),
			WinRate: types.Float64Value(s.WinRate), MeanScore: types.Float64PointerValue(s.MeanScore), MeanSeconds: types.Float64Value(float64(s.MeanDurationMS) / 1000)})
	}
	resp.Error = resp.Result.Set(ctx, out)
}
