// Package container is the resource sandbox_container and the data source sandbox_containers.
package container

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

var (
	_ resource.ResourceWithConfigure   = (*containerResource)(nil)
	_ resource.ResourceWithIdentity    = (*containerResource)(nil)
	_ resource.ResourceWithImportState = (*containerResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*containerResource)(nil)
)

type containerResource struct{ base.ResourceBase }

// NewResource returns sandbox_container.
func NewResource() resource.Resource { return &containerResource{} }

func (r *containerResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_container"
}

// IdentitySchema: the vmid alone. The node is no part of it, because a migration changes it.
func (r *containerResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"vmid": identityschema.Int64Attribute{
				Description:       "The container's id.",
				RequiredForImport: true,
			},
		},
	}
}

// identify sets the identity. Every path of Create, Read and Update does so first: a response without one is an error
// on Terraform before 1.12, on OpenTofu before 1.12, and for states that were written before there was one.
func identify(ctx context.Context, identity *tfsdk.ResourceIdentity, vmid types.Int64, diags *diag.Diagnostics) {
	if identity != nil && value.Known(vmid) {
		diags.Append(identity.SetAttribute(ctx, path.Root("vmid"), vmid)...)
	}
}

func (r *containerResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan, config Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForCreate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	spec := plan.asked(ctx, &config, &resp.Diagnostics)
	withKeys(&spec, &plan, &config)
	if resp.Diagnostics.HasError() {
		return
	}

	outcome, err := plan.make(limited, manager, spec, func(ref sandbox.Ref, upid string) {
		// From here on the container exists. Whatever happens next, the state must lead to it.
		plan.track(ref)
		identify(ctx, resp.Identity, plan.VMID, &resp.Diagnostics)
		tracked := plan
		tracked.settled()
		resp.Diagnostics.Append(resp.State.Set(ctx, &tracked)...)
		remember(ctx, resp.Private, &resp.Diagnostics, keyTask, upid)
	})
	base.AddWarnings(&resp.Diagnostics, outcome.Warnings)
	if outcome.Sandbox.VMID == 0 {
		if err == nil {
			err = errors.New("the server was not asked for a container")
		}
		base.AddError(&resp.Diagnostics, "create", "container "+spec.Hostname, err)
		return
	}

	thing := fmt.Sprintf("container %d (%s)", outcome.Sandbox.VMID, spec.Hostname)
	plan.track(outcome.Sandbox.Ref)
	identify(ctx, resp.Identity, plan.VMID, &resp.Diagnostics)
	switch {
	case outcome.Unfinished:
		// Stopped, not failed: an error would taint the container, and the next apply would replace what it can finish.
		// What was planned stays as it was planned, or Terraform would take it for a fault of the provider.
		plan.settled()
		remember(ctx, resp.Private, &resp.Diagnostics, keyUnfinished, true)
		resp.Diagnostics.AddWarning("Unfinished: "+thing, interruptedDetail(err))
	case err != nil:
		// Tainted: the next apply destroys it, and waits for its task first.
		if outcome.Sandbox.Digest == "" {
			plan.settled() // the configuration was never read: nothing but the reference is known
		} else {
			plan.fill(outcome.Sandbox)
		}
		plan.Timings = timingsObject(outcome.Timings)
		base.AddError(&resp.Diagnostics, "create", thing, err)
	default:
		plan.fill(outcome.Sandbox)
		if plan.TemplateCurrent.IsNull() && outcome.Sandbox.Source.TemplateID != 0 && !plan.claims() {
			plan.TemplateCurrent = types.BoolValue(true) // it has just been cloned
		}
		plan.Timings = timingsObject(outcome.Timings)
		forget(ctx, resp.Private, &resp.Diagnostics, keyTask)
		afterApply(ctx, resp.Private, &resp.Diagnostics, outcome.Sandbox, true)
		rememberPinned(ctx, resp.Private, &resp.Diagnostics, outcome.Pinned)
		plan.tailnet(limited, manager, outcome.Sandbox, &config, nil, false, &resp.Diagnostics) // a failure taints it
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func interruptedDetail(err error) string {
	text := "The creation was interrupted after the container had come to be. It is in the state, and the next apply finishes it in place."
	if err != nil {
		text += "\n\nIt was stopped at: " + err.Error()
	}
	return text
}

// afterApply writes down what the refreshes to come compare with.
func afterApply(ctx context.Context, p private, diags *diag.Diagnostics, s sandbox.Sandbox, created bool) {
	before := baseline(ctx, p, diags)
	if created || before == nil {
		takeBaseline(ctx, p, diags, s.Posture)
	} else {
		// An update leaves the firewall as it is meant to be; the rest is as it was at the creation.
		before.Firewall = s.Posture.Firewall
		takeBaseline(ctx, p, diags, *before)
	}
	if len(s.Posture.Pending) > 0 {
		remember(ctx, p, diags, keyPending, true)
	} else {
		forget(ctx, p, diags, keyPending)
	}
}

func (r *containerResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	identify(ctx, resp.Identity, state.VMID, &resp.Diagnostics)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	r.Data.Track(state.VMID.ValueInt64())
	limited, cancel := limits.ForRead(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()

	prior := state.prior(ctx, &resp.Diagnostics)
	prior.Pinned = recall[pinned](ctx, req.Private, &resp.Diagnostics, keyPinned)
	prior.WithPending = state.RestartWhenNeeded.ValueBool() || recall[bool](ctx, req.Private, &resp.Diagnostics, keyPending)
	s, err := manager.Read(limited, prior)
	switch {
	case errors.Is(err, sandbox.ErrGone):
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		base.AddError(&resp.Diagnostics, "read", "container "+state.ID.ValueString(), err)
		return
	}
	state.fill(s)
	warnOfLease(&resp.Diagnostics, s)
	noteRollback(ctx, resp.Private, &resp.Diagnostics, s)
	if prior.WithPending && len(s.Posture.Pending) == 0 {
		forget(ctx, resp.Private, &resp.Diagnostics, keyPending)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

func (r *containerResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state, config Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	identify(ctx, resp.Identity, state.VMID, &resp.Diagnostics)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForUpdate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()

	unfinished := recall[bool](ctx, req.Private, &resp.Diagnostics, keyUnfinished)
	prior := state.prior(ctx, &resp.Diagnostics)
	prior.Baseline = baseline(ctx, req.Private, &resp.Diagnostics)
	prior.WithPending = true
	from, to := state.spec(ctx, &resp.Diagnostics), plan.asked(ctx, &config, &resp.Diagnostics)
	if rests(&plan, &state) {
		to.Started = false
	}
	// Keys are written again whenever the container's disk may have been set back since.
	rolledBack := recall[string](ctx, req.Private, &resp.Diagnostics, keyRollback) != ""
	starts := to.Started && state.Status.ValueString() != string(sandbox.StatusRunning)
	if unfinished || rolledBack || starts || keysChanged(&state, &plan) {
		withKeys(&to, &plan, &config)
	}
	if !hasMoved(&state) { // else they are looked up anew
		to.Network.Pinned = recall[pinned](ctx, req.Private, &resp.Diagnostics, keyPinned)
	}
	if resp.Diagnostics.HasError() {
		return
	}

	outcome, err := manager.Update(limited, prior, from, to)
	base.AddWarnings(&resp.Diagnostics, outcome.Warnings)
	if err == nil && outcome.Unfinished {
		err = fmt.Errorf("it was interrupted: %w", context.Cause(limited))
	}
	if err != nil {
		// The state stays as it was: the next refresh reads what has come of it, and the plan asks for the rest again.
		base.AddError(&resp.Diagnostics, "update", fmt.Sprintf("container %d (%s)", prior.Ref.VMID, to.Hostname), err)
		return
	}
	plan.Posture = state.Posture // the proof of before, where the wall wasn't tried anew
	plan.fill(outcome.Sandbox)
	if plan.TemplateCurrent.IsNull() {
		plan.TemplateCurrent = state.TemplateCurrent // an update doesn't look at the template
	}
	plan.Timings = state.Timings
	if unfinished {
		forget(ctx, resp.Private, &resp.Diagnostics, keyUnfinished)
		forget(ctx, resp.Private, &resp.Diagnostics, keyTask)
	}
	afterApply(ctx, resp.Private, &resp.Diagnostics, outcome.Sandbox, unfinished)
	rememberPinned(ctx, resp.Private, &resp.Diagnostics, outcome.Pinned)
	noteRollback(ctx, resp.Private, &resp.Diagnostics, outcome.Sandbox)
	if !plan.tailnet(limited, manager, outcome.Sandbox, &config, &state, unfinished, &resp.Diagnostics) {
		plan.Tailscale = state.Tailscale // the next apply tries again
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *containerResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForDelete(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	task := recall[string](ctx, req.Private, &resp.Diagnostics, keyTask)
	warnings, err := manager.Destroy(limited, state.ref(), task)
	base.AddWarnings(&resp.Diagnostics, warnings)
	if err != nil {
		base.AddError(&resp.Diagnostics, "destroy", "container "+state.ID.ValueString(), err)
	}
}
