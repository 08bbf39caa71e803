// Package mission is the resource sandbox_mission: several agents that work on one task.
package mission

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/mission"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var (
	_ resource.ResourceWithConfigure  = (*missionResource)(nil)
	_ resource.ResourceWithModifyPlan = (*missionResource)(nil)
)

// discardLimit is how long a destroy waits for the end of runs.
const discardLimit = 5 * time.Minute

type missionResource struct{ base.ResourceBase }

// NewResource returns sandbox_mission.
func NewResource() resource.Resource { return &missionResource{} }

func (r *missionResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_mission"
}

// ModifyPlan refuses what is known to be wrong before anything is started.
func (r *missionResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	secrets := types.MapNull(types.StringType)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("secrets_wo"), &secrets)...)
	if resp.Diagnostics.HasError() || plan.Members.IsUnknown() || plan.Strategy.IsUnknown() || plan.Judge.IsUnknown() {
		return
	}
	plan.spec(ctx, secrets, base.Known(secrets), &resp.Diagnostics)
}

func (r *missionResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	secrets := types.MapNull(types.StringType)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("secrets_wo"), &secrets)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	spec := plan.spec(ctx, secrets, true, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	rollback := func(ctx context.Context, prior sandbox.Prior, snapshot string) error {
		_, err := manager.Rollback(ctx, prior, sandbox.RollbackSpec{Snapshot: snapshot, Power: sandbox.PowerAlways})
		return err
	}
	var warnings base.Warnings
	outcome, err := mission.Run(ctx, r.Data.Runs, rollback, nil, spec, warnings.Add)
	warnings.To(&resp.Diagnostics)
	if err != nil { // not in the state: the next apply finds the runs, and goes on
		base.AddError(&resp.Diagnostics, "carry out", plan.thing(), err)
		return
	}
	plan.fill(outcome.Report, &resp.Diagnostics)
	plan.ID = types.StringValue(plan.Name.ValueString() + "/" + r.Data.Now().UTC().Format(time.RFC3339Nano))
	k := kept{}
	for _, run := range outcome.Runs {
		k.Runs = append(k.Runs, keptRun{VMID: run.Ref.VMID, Node: run.Ref.Node, Claim: run.Ref.Claim, HostKey: run.HostKey, ID: run.ID})
	}
	remember(ctx, resp.Private, &resp.Diagnostics, k)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	if outcome.Report.Status != agentrun.Succeeded && plan.OnFailure.ValueString() == failOnFailure {
		base.AddCoded(&resp.Diagnostics, fmt.Sprintf("The %s didn't succeed", plan.thing()), fmt.Sprintf(
			"Its status is %q.%s\n\nThe object is tainted: the next apply starts a new mission. With on_failure = \"record\" the result is kept instead.", outcome.Report.Status, members(outcome.Report)), sandbox.CodeRunFailed)
	}
}

func (m *model) thing() string {
	return fmt.Sprintf("mission %q (%s)", m.Name.ValueString(), m.Strategy.ValueString())
}

// members lists who ended how, for a diagnostic.
func members(r *mission.Report) string {
	var b strings.Builder
	for _, m := range r.Members {
		fmt.Fprintf(&b, "\n  %s: %s", m.Name, m.Status)
		if m.ExitCode != nil {
			fmt.Fprintf(&b, ", exit code %d", *m.ExitCode)
		}
	}
	return b.String()
}

// Read notes in the containers, once, that the results are in the state. What has ended has ended.
func (r *missionResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	k := recall(ctx, req.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() || !r.Data.Known() || k.Collected {
		return
	}
	for _, run := range k.Runs {
		if err := r.Data.Runs.Collect(ctx, run.run()); err != nil {
			return // not reachable now: the next refresh notes it
		}
	}
	k.Collected = true
	remember(ctx, resp.Private, &resp.Diagnostics, k)
}

// Update is only called for attributes that matter at the next mission.
func (r *missionResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}

// Delete gives the results up.
func (r *missionResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	k := recall(ctx, req.Private, &resp.Diagnostics)
	if k.Collected || len(k.Runs) == 0 || resp.Diagnostics.HasError() {
		return
	}
	if _, ok := r.Manager(&resp.Diagnostics); !ok {
		return
	}
	limited, cancel := context.WithTimeout(ctx, discardLimit)
	defer cancel()
	for _, run := range k.Runs {
		if err := r.Data.Runs.Discard(limited, run.run()); err != nil {
			base.AddError(&resp.Diagnostics, "give up the results of", "the mission", err)
		}
	}
}

// keyRuns is the key of the private state.
const keyRuns = "runs"

// kept is by what the runs are found again.
type kept struct {
	Runs []keptRun `json:"runs"`
	// Collected says that the containers know that the state has the results.
	Collected bool `json:"collected"`
}

type keptRun struct {
	VMID    int    `json:"vmid"`
	Node    string `json:"node"`
	Claim   string `json:"claim"`
	HostKey string `json:"host_key"`
	ID      string `json:"id"`
}

func (k keptRun) run() *agentrun.Run {
	return &agentrun.Run{Ref: sandbox.Ref{VMID: k.VMID, Node: k.Node, Claim: k.Claim}, HostKey: k.HostKey, ID: k.ID}
}

type writer interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

type reader interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

func remember(ctx context.Context, p writer, diags *diag.Diagnostics, k kept) {
	text, err := json.Marshal(k)
	if err != nil {
		diags.AddError("Unable to write the private state", err.Error())
		return
	}
	diags.Append(p.SetKey(ctx, keyRuns, text)...)
}

func recall(ctx context.Context, p reader, diags *diag.Diagnostics) (k kept) {
	text, d := p.GetKey(ctx, keyRuns)
	diags.Append(d...)
	if len(text) > 0 {
		if err := json.Unmarshal(text, &k); err != nil {
			diags.AddError("Unable to read the private state", err.Error())
		}
	}
	return k
}
