package mission

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/mission"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

type model struct {
	ID             types.String `tfsdk:"id"`
	Name           types.String `tfsdk:"name"`
	Strategy       types.String `tfsdk:"strategy"`
	Task           types.String `tfsdk:"task"`
	Members        types.Map    `tfsdk:"members"`
	Order          types.List   `tfsdk:"order"`
	Judge          types.String `tfsdk:"judge"`
	Rounds         types.Int64  `tfsdk:"rounds"`
	ScoreCommand   types.String `tfsdk:"score_command"`
	SnapshotName   types.String `tfsdk:"snapshot_name"`
	StopOn         types.String `tfsdk:"stop_on"`
	Timeout        types.String `tfsdk:"timeout"`
	Secrets        types.Map    `tfsdk:"secrets_wo"`
	SecretsVersion types.Int64  `tfsdk:"secrets_wo_version"`
	OnFailure      types.String `tfsdk:"on_failure"`
	Triggers       types.Map    `tfsdk:"triggers"`
	Status         types.String `tfsdk:"status"`
	Duration       types.String `tfsdk:"duration"`
	Answer         types.String `tfsdk:"answer"`
	Winner         types.String `tfsdk:"winner"`
	Ranking        types.List   `tfsdk:"ranking"`
	Results        types.Map    `tfsdk:"results"`
	Report         types.String `tfsdk:"report"`
}

type memberModel struct {
	ContainerID types.String `tfsdk:"container_id"`
	HostKey     types.String `tfsdk:"host_key"`
	Role        types.String `tfsdk:"role"`
	Agent       types.String `tfsdk:"agent"`
	Model       types.String `tfsdk:"model"`
	Command     types.String `tfsdk:"command"`
	User        types.String `tfsdk:"user"`
	WorkingDir  types.String `tfsdk:"working_dir"`
	Environment types.Map    `tfsdk:"environment"`
	Timeout     types.String `tfsdk:"timeout"`
}

// spec is what the domain is asked for; secrets are the configuration's.
// Problems are added to diags, and so is what contradicts itself.
func (m *model) spec(ctx context.Context, secrets types.Map, secretsKnown bool, diags *diag.Diagnostics) mission.Spec {
	s := mission.Spec{Name: m.Name.ValueString(), Strategy: mission.Strategy(m.Strategy.ValueString()), Task: m.Task.ValueString(), Judge: m.Judge.ValueString(),
		Rounds: int(m.Rounds.ValueInt64()), ScoreCommand: m.ScoreCommand.ValueString(), Snapshot: m.SnapshotName.ValueString(), Stop: mission.Stop(m.StopOn.ValueString())}
	if s.Stop == "" {
		s.Stop = mission.StopNever
		if s.Strategy == mission.Pipeline {
			s.Stop = mission.StopFirstFailure
		}
	}
	s.Timeout = duration(m.Timeout, defaultTimeout)
	var members map[string]memberModel
	diags.Append(m.Members.ElementsAs(ctx, &members, false)...)
	if diags.HasError() {
		return s
	}
	values, triggers := base.Texts(ctx, secrets, diags), base.Texts(ctx, m.Triggers, diags)
	for _, name := range m.order(ctx, members, diags) {
		member := members[name]
		at := path.Root("members").AtMapKey(name)
		one := mission.Member{Name: name, Role: member.Role.ValueString()}
		if !member.ContainerID.IsUnknown() {
			prior, err := base.Inside(member.ContainerID, member.HostKey)
			if err != nil {
				diags.AddAttributeError(at.AtName("container_id"), "Invalid container", err.Error())
			}
			one.Prior = prior
		}
		one.Run = agentrun.Spec{User: cmp.Or(member.User.ValueString(), defaultUser), Prompt: s.Task, Dir: member.WorkingDir.ValueString(),
			Environment: base.Texts(ctx, member.Environment, diags), Secrets: values, Timeout: duration(member.Timeout, defaultMemberTimeout), Triggers: triggers,
			Inputs: map[string]string{"secrets_wo_version": m.SecretsVersion.String()}}
		program := agentrun.Program{Agent: member.Agent.ValueString(), Model: member.Model.ValueString(), Command: member.Command.ValueString()}
		known := secretsKnown && base.Known(member.Environment)
		if !member.Agent.IsUnknown() && !m.Task.IsUnknown() {
			addProblems(diags, at, program.Use(&one.Run, known))
		}
		s.Members = append(s.Members, one)
	}
	base.AddProblems(diags, s.Check())
	return s
}

// addProblems puts those of a member where they belong.
func addProblems(diags *diag.Diagnostics, member path.Path, problems []sandbox.Problem) {
	for _, p := range problems {
		at := member.AtName(p.Attribute)
		switch p.Attribute {
		case "secrets_wo":
			at = path.Root("secrets_wo")
		case "prompt":
			at = path.Root("task")
		}
		base.AddProblemAt(diags, at, p)
	}
}

// places are the roles in the order of a pipeline.
var places = map[string]int{"architect": 1, "developer": 2, "tester": 3, "reviewer": 4, "judge": 6}

// order is the members' names as they take turns.
func (m *model) order(ctx context.Context, members map[string]memberModel, diags *diag.Diagnostics) []string {
	names := slices.SortedFunc(maps.Keys(members), func(a, b string) int {
		place := func(name string) int { return cmp.Or(places[members[name].Role.ValueString()], 5) }
		return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
	})
	if m.Order.IsNull() || m.Order.IsUnknown() {
		return names
	}
	var given []string
	diags.Append(m.Order.ElementsAs(ctx, &given, false)...)
	sorted := slices.Sorted(slices.Values(given))
	if !slices.Equal(sorted, slices.Sorted(slices.Values(names))) {
		diags.AddAttributeError(path.Root("order"), "The order doesn't name every member once", "Members are: "+strings.Join(names, ", ")+".")
		return names
	}
	return given
}

func duration(v types.String, fallback time.Duration) time.Duration {
	if d, err := time.ParseDuration(v.ValueString()); err == nil { // validated
		return d
	}
	return fallback
}

var resultTypes = map[string]attr.Type{"status": types.StringType, "exit_code": types.Int64Type, "turns": types.Int64Type, "duration": types.StringType,
	"answer": types.StringType, "score": types.Float64Type, "win_rate": types.Float64Type, "rank": types.Int64Type}

// fill is the one way from a mission to the state.
func (m *model) fill(r *mission.Report, diags *diag.Diagnostics) {
	m.Secrets = types.MapNull(types.StringType)
	m.Status, m.Answer = types.StringValue(string(r.Status)), types.StringValue(r.Answer)
	m.Duration = milliseconds(r.DurationMS)
	m.Winner = types.StringNull()
	if r.Winner != "" {
		m.Winner = types.StringValue(r.Winner)
	}
	ranking := make([]attr.Value, len(r.Ranking))
	for i, name := range r.Ranking {
		ranking[i] = types.StringValue(name)
	}
	m.Ranking = types.ListValueMust(types.StringType, ranking)
	results := map[string]attr.Value{}
	for _, one := range r.Members {
		values := map[string]attr.Value{"status": types.StringValue(string(one.Status)), "exit_code": types.Int64Null(), "turns": types.Int64Value(int64(one.Turns)),
			"duration": milliseconds(one.DurationMS), "answer": types.StringValue(one.Answer), "score": types.Float64PointerValue(one.Score), "win_rate": types.Float64Null(), "rank": types.Int64Null()}
		if one.ExitCode != nil {
			values["exit_code"] = types.Int64Value(int64(*one.ExitCode))
		}
		if r.Strategy == mission.Arena {
			values["win_rate"], values["rank"] = types.Float64Value(one.WinRate), types.Int64Value(int64(one.Rank))
		}
		results[one.Name] = types.ObjectValueMust(resultTypes, values)
	}
	m.Results = types.MapValueMust(types.ObjectType{AttrTypes: resultTypes}, results)
	text, err := r.JSON()
	if err != nil {
		diags.AddError("Unable to write the report", err.Error())
	}
	m.Report = types.StringValue(text)
}

func milliseconds(ms int64) types.String {
	return types.StringValue((time.Duration(ms) * time.Millisecond).String())
}
