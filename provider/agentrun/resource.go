// Package agentrun is the resource sandbox_agent_run: one run of an agent, or of a command, in a container.
package agentrun

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var (
	_ resource.ResourceWithConfigure  = (*runResource)(nil)
	_ resource.ResourceWithModifyPlan = (*runResource)(nil)
)

const (
	// margin is what following a run may take beyond its own limit: login, stages, the end of its processes.
	margin = 10 * time.Minute
	// discardLimit is how long a destroy waits for the end of a run.
	discardLimit = 5 * time.Minute
)

type runResource struct{ base.ResourceBase }

// NewResource returns sandbox_agent_run.
func NewResource() resource.Resource { return &runResource{} }

func (r *runResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_agent_run"
}

// ModifyPlan refuses what is known to be wrong before anything is started: an agent that isn't known or refuses root, a
// key that is missing.
func (r *runResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	secrets := configuredSecrets(ctx, req.Config.GetAttribute, &resp.Diagnostics)
	if resp.Diagnostics.HasError() || plan.Agent.IsUnknown() || plan.Definition.IsUnknown() || plan.Prompt.IsUnknown() || plan.User.IsUnknown() {
		return
	}
	spec := plan.spec(ctx, secrets, &resp.Diagnostics)
	known := base.Known(secrets) && base.Known(plan.Environment)
	base.AddProblems(&resp.Diagnostics, plan.program().Use(&spec, known))
}

// configuredSecrets reads the write-only attribute, which only the configuration has.
func configuredSecrets(ctx context.Context, get func(context.Context, path.Path, any) diag.Diagnostics, diags *diag.Diagnostics) types.Map {
	secrets := types.MapNull(types.StringType)
	diags.Append(get(ctx, path.Root("secrets_wo"), &secrets)...)
	return secrets
}

func (r *runResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	secrets := configuredSecrets(ctx, req.Config.GetAttribute, &resp.Diagnostics)
	plan.credentials = configuredCredentials(ctx, req.Config.GetAttribute, &resp.Diagnostics)
	if _, ok := r.Manager(&resp.Diagnostics); !ok || resp.Diagnostics.HasError() {
		return
	}
	inside, err := base.Inside(plan.ContainerID, plan.HostKey)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("container_id"), "Invalid container", err.Error())
		return
	}
	spec := plan.spec(ctx, secrets, &resp.Diagnostics)
	base.AddProblems(&resp.Diagnostics, plan.program().Use(&spec, true))
	if resp.Diagnostics.HasError() {
		return
	}
	engine := r.Data.Runs
	limited, cancel := context.WithTimeout(ctx, spec.Timeout+margin)
	defer cancel()
	run, err := engine.Start(limited, inside, spec, resp.Diagnostics.AddWarning)
	if err != nil {
		base.AddError(&resp.Diagnostics, "start", plan.thing(), err)
		return
	}
	if run.Adopted {
		resp.Diagnostics.AddWarning("A run was found again", fmt.Sprintf(
			"The %s was started by an earlier apply whose result is in no state: it is run %s, and was not started twice.", plan.thing(), run.ID))
	}
	if plan.Detached.ValueBool() {
		engine.Leave(run)
	} else if err := engine.Wait(limited, run, spec, resp.Diagnostics.AddWarning); err != nil && !r.goesOn(&plan, run, err, &resp.Diagnostics) {
		return // not in the state: the next apply finds the run, and collects it
	}
	plan.fill(run, &resp.Diagnostics)
	remember(ctx, resp.Private, &resp.Diagnostics, kept{Claim: run.Ref.Claim, Node: run.Ref.Node, HostKey: run.HostKey, ID: run.ID})
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	switch agentrun.Status(plan.Status.ValueString()) {
	case agentrun.Running, agentrun.Succeeded:
	case agentrun.Lost:
		sayLost(&plan, &resp.Diagnostics)
		fallthrough
	default:
		if plan.OnFailure.ValueString() == failOnFailure {
			sayFailed(&plan, run.Report, &resp.Diagnostics)
		}
	}
}

// goesOn says whether an error while a run was followed leaves it to later refreshes: the apply was stopped, or the way to
// the container broke. Else the error is told.
func (r *runResource) goesOn(plan *model, run *agentrun.Run, err error, diags *diag.Diagnostics) bool {
	cut := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	away := errors.Is(err, sandbox.ErrNotReady) || errors.Is(err, sandbox.ErrNotRunning)
	if run.Report.Status.Ended() || !cut && !away {
		base.AddError(diags, "collect the result of", plan.thing(), err)
		return false
	}
	why := "The apply was stopped"
	if !cut {
		why = "The container can't be reached any more (" + err.Error() + ")"
	}
	diags.AddWarning("The run goes on", fmt.Sprintf("%s while %s was under way. Unless the container was stopped, it goes on there as run %s, within its time limit; a later refresh completes the result, a destroy stops it.", why, plan.thing(), run.ID))
	return true
}

func sayLost(m *model, diags *diag.Diagnostics) {
	diags.AddWarning("A run was lost", fmt.Sprintf(
		"The container was destroyed, stopped or rolled back while %s was under way, so that its result can't be had. This is said once; status stays \"lost\". A change of triggers starts a new run.", m.thing()))
}

func sayFailed(m *model, report *agentrun.Report, diags *diag.Diagnostics) {
	what := fmt.Sprintf("Its status is %q", report.Status)
	if report.ExitCode != nil {
		what += fmt.Sprintf(", its exit code %d", *report.ExitCode)
	}
	if report.Reason != "" {
		what += " (" + report.Reason + ")"
	}
	base.AddCoded(diags, fmt.Sprintf("The run of %s didn't succeed", m.thing()),
		fmt.Sprintf("%s.%s\n\nThe object is tainted: the next apply starts a new attempt. With on_failure = \"record\" the result is kept instead.", what, ending(report.OutputTail)), sandbox.CodeRunFailed)
}

// ending is the end of a run's output, for a diagnostic.
func ending(output string) string {
	const most = 20
	output = strings.TrimSpace(output)
	if output == "" {
		return ""
	}
	lines := strings.Split(output, "\n")
	what := "Its output"
	if len(lines) > most {
		lines, what = lines[len(lines)-most:], fmt.Sprintf("The last %d lines of its output", most)
	}
	return "\n\n" + what + ":\n" + strings.Join(lines, "\n")
}

// Read asks how a run stands that was under way, without waiting. A result that is in the state is noted in the container
// as taken, once; after that nothing is asked any more: what has ended has ended.
func (r *runResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	k := recall(ctx, req.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() || !r.Data.Known() || k.ID == "" || k.Collected {
		return
	}
	run := k.run(&state)
	if agentrun.Status(state.Status.ValueString()).Ended() {
		if state.Status.ValueString() == string(agentrun.Lost) {
			return
		}
		if err := r.Data.Runs.Collect(ctx, run); err != nil {
			return // not reachable now: the next refresh notes it
		}
		k.Collected = true
		remember(ctx, resp.Private, &resp.Diagnostics, k)
		return
	}
	spec := state.spec(ctx, types.MapNull(types.StringType), &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	run.Report = state.report()
	err := r.Data.Runs.Look(ctx, run, spec, resp.Diagnostics.AddWarning)
	switch {
	case errors.Is(err, sandbox.ErrNotRunning), errors.Is(err, sandbox.ErrNotReady):
		resp.Diagnostics.AddWarning("A run can't be looked at", fmt.Sprintf("How %s stands isn't known now: %v. Its status stays as it was.", state.thing(), err))
		return
	case err != nil:
		base.AddError(&resp.Diagnostics, "read", state.thing(), err)
		return
	}
	state.fill(run, &resp.Diagnostics)
	if run.Report.Status == agentrun.Lost {
		sayLost(&state, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// report is the state's, so that what is known of a run stays when the next look sees less.
func (m *model) report() *agentrun.Report {
	report, err := agentrun.ParseReport(m.Report.ValueString())
	if err != nil {
		return nil
	}
	return report
}

// Update is only called for attributes that matter at the next run, and to go back to a checkpoint.
func (r *runResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	k := recall(ctx, req.Private, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() {
		r.restore(ctx, &plan, &state, k, &resp.Diagnostics)
	}
	if !resp.Diagnostics.HasError() {
		resp.State.Raw = req.Plan.Raw
	}
}

// Delete ends a run that is still under way, and gives its result up.
func (r *runResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	k := recall(ctx, req.Private, &resp.Diagnostics)
	ended := agentrun.Status(state.Status.ValueString()).Ended()
	if resp.Diagnostics.HasError() || k.ID == "" || k.Collected && ended {
		return
	}
	if _, ok := r.Manager(&resp.Diagnostics); !ok {
		return
	}
	limited, cancel := context.WithTimeout(ctx, discardLimit)
	defer cancel()
	if err := r.Data.Runs.Discard(limited, k.run(&state)); err != nil {
		base.AddError(&resp.Diagnostics, "stop", state.thing(), err)
	}
}
