package container

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// leaseTypes is the shape of the attribute lease.
var leaseTypes = map[string]attr.Type{
	"ttl":       value.DurationType,
	"renew":     types.StringType,
	"keepalive": types.BoolType,
	"idle_stop": value.DurationType,
	"on_expiry": types.StringType,
}

// leaseModel is the attribute lease.
type leaseModel struct {
	TTL       value.String `tfsdk:"ttl"`
	Renew     types.String `tfsdk:"renew"`
	Keepalive types.Bool   `tfsdk:"keepalive"`
	IdleStop  value.String `tfsdk:"idle_stop"`
	OnExpiry  types.String `tfsdk:"on_expiry"`
}

func leaseAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "How long the container may live. Its end is absolute (`expires_at`) and stands in the container's ownership marker from the call on that makes it, so that it holds without Terraform: " +
			"the container's own timer stops it when the lease is over (where the template has one), and a `sandbox_reaper` destroys it. Default none: it lives until it is destroyed. A lease that is taken out ends; the container stays. See the guide \"Leases\"." + live,
		Optional: true,
		Attributes: map[string]schema.Attribute{
			"ttl": schema.StringAttribute{
				MarkdownDescription: "How long it lives from its creation, or from its last renewal, such as `90m` or `8h`; at least `1m`. Another value renews the lease from the moment of the apply." + live,
				CustomType:          value.DurationType,
				Required:            true,
				Validators:          []validator.String{leaseDuration()},
			},
			"renew": schema.StringAttribute{
				MarkdownDescription: "Any text, such as a commit id or a date: another one renews the lease from the moment of the apply. It stands in the container's description for everybody to see (a long or unusual one as its hash), so it is no place for a secret." + live,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"keepalive": schema.BoolAttribute{
				MarkdownDescription: "Keep the container when its lease is over: it may be stopped, and no reaper destroys it. Default `false`." + live,
				Optional:            true,
				Computed:            true,
				Default:             booldefault.StaticBool(false),
			},
			"idle_stop": schema.StringAttribute{
				MarkdownDescription: "How long nothing may happen in the container until its own timer stops it, such as `30m`; at least `1m`. The next apply starts it again. Default never." + live,
				CustomType:          value.DurationType,
				Optional:            true,
				Validators:          []validator.String{leaseDuration()},
			},
			"on_expiry": schema.StringAttribute{
				MarkdownDescription: "What a plan does once a refresh has seen that the lease is over: `warn` (default) says so, `stop` stops the container in place, `replace` replaces it by a new one. " +
					"A container with `protection` is never replaced for that, and `keepalive` can't be together with `replace`. A container that is stopped and whose lease is over isn't started before it is renewed." + local,
				Optional:   true,
				Computed:   true,
				Default:    stringdefault.StaticString(string(sandbox.ExpiryWarn)),
				Validators: []validator.String{stringvalidator.OneOf(string(sandbox.ExpiryWarn), string(sandbox.ExpiryReplace), string(sandbox.ExpiryStop))},
			},
		},
	}
}

func leaseDuration() validator.String {
	return text{`a duration in whole seconds such as "90s", "30m" or "8h"`, func(s string) bool {
		_, err := sandbox.ParseLeaseDuration(s)
		return err == nil
	}}
}

// leaseSpec is the lease that the model asks for; nil where it asks for none, or isn't known yet.
func (m *Model) leaseSpec(ctx context.Context, diags *diag.Diagnostics) *sandbox.Lease {
	if !value.Known(m.Lease) {
		return nil
	}
	l := as[leaseModel](ctx, diags, m.Lease)
	ttl, err := sandbox.ParseLeaseDuration(l.TTL.ValueString())
	if err != nil {
		return nil // unknown yet; the validator has seen the rest
	}
	idle, _ := sandbox.ParseLeaseDuration(l.IdleStop.ValueString()) // 0 where it is left out
	return &sandbox.Lease{
		TTL: ttl, Renew: l.Renew.ValueString(), Keepalive: l.Keepalive.ValueBool(),
		IdleStop: idle, OnExpiry: sandbox.OnExpiry(l.OnExpiry.ValueString()),
	}
}

// fillLease writes what the marker says. What only a configuration says (on_expiry), and the spelling of what means the
// same, stays.
func (m *Model) fillLease(s sandbox.Sandbox) {
	before := m.Lease.Attributes()
	m.ExpiresAt, m.Expired = types.StringNull(), types.BoolValue(s.Expired())
	if s.Lease == nil {
		m.Lease = types.ObjectNull(leaseTypes)
		return
	}
	m.ExpiresAt = types.StringValue(s.ExpiresAt.Format(time.RFC3339))
	renew := value.TextOrNull(s.Lease.Renew)
	if said, ok := before["renew"].(types.String); ok && value.Known(said) && sandbox.RenewMark(said.ValueString()) == s.Lease.Renew {
		renew = said
	}
	m.Lease = types.ObjectValueMust(leaseTypes, map[string]attr.Value{
		"ttl":       spelledDuration(before["ttl"], s.Lease.TTL),
		"renew":     renew,
		"keepalive": types.BoolValue(s.Lease.Keepalive),
		"idle_stop": spelledDuration(before["idle_stop"], s.Lease.IdleStop),
		"on_expiry": kept(before, "on_expiry", types.StringValue(string(sandbox.ExpiryWarn))),
	})
}

func spelledDuration(before attr.Value, said time.Duration) value.String {
	if said == 0 {
		return value.DurationType.Null()
	}
	return spelled(value.DurationType, before, sandbox.LeaseDuration(said))
}

// settleLease replaces what is unknown of the lease by null.
func (m *Model) settleLease() {
	if m.Lease.IsUnknown() {
		m.Lease = types.ObjectNull(leaseTypes)
	}
	if m.Lease.IsNull() {
		return
	}
	attributes := m.Lease.Attributes()
	for name, null := range map[string]attr.Value{
		"ttl": value.DurationType.Null(), "renew": types.StringNull(), "keepalive": types.BoolNull(),
		"idle_stop": value.DurationType.Null(), "on_expiry": types.StringNull(),
	} {
		if attributes[name].IsUnknown() {
			attributes[name] = null
		}
	}
	m.Lease = types.ObjectValueMust(leaseTypes, attributes)
}

// keepLease takes over the state's spelling of what means the same, so that "8h" and "480m" differ in no plan.
func (m *Model) keepLease(state *Model) {
	if !value.Known(m.Lease) || !value.Known(state.Lease) {
		return
	}
	is, was := m.Lease.Attributes(), state.Lease.Attributes()
	for _, name := range []string{"ttl", "idle_stop"} {
		a, _ := is[name].(value.String)
		b, _ := was[name].(value.String)
		if a.Same(b) {
			is[name] = b
		}
	}
	m.Lease = types.ObjectValueMust(leaseTypes, is)
}

// planLease marks what an update may change: the end of a lease may have been moved by somebody else too.
func (m *Model) planLease() {
	if m.Lease.IsNull() {
		m.ExpiresAt, m.Expired = types.StringNull(), types.BoolValue(false)
		return
	}
	m.ExpiresAt, m.Expired = types.StringUnknown(), types.BoolUnknown()
}

// renews tells whether the plan renews the lease, or may.
func renews(plan, state *Model) bool {
	is, was := plan.Lease.Attributes(), state.Lease.Attributes()
	if !value.Known(plan.Lease) || !value.Known(state.Lease) {
		return !plan.Lease.IsNull()
	}
	ttl, _ := is["ttl"].(value.String)
	ttlWas, _ := was["ttl"].(value.String)
	return !ttl.Same(ttlWas) || !is["renew"].Equal(was["renew"])
}

// onExpiry is what the plan wants to become of a container whose lease is over; empty while it isn't over, as the last
// refresh saw it, or is renewed.
func onExpiry(plan, state *Model) sandbox.OnExpiry {
	if plan.Lease.IsNull() || !state.Expired.ValueBool() || renews(plan, state) {
		return ""
	}
	action, ok := plan.Lease.Attributes()["on_expiry"].(types.String)
	if !ok || !value.Known(action) {
		return sandbox.ExpiryWarn
	}
	return sandbox.OnExpiry(action.ValueString())
}

// rests tells whether the container is to be stopped although started is true: its lease is over.
func rests(plan, state *Model) bool {
	switch onExpiry(plan, state) {
	case "":
		return false
	case sandbox.ExpiryStop:
		return true
	}
	return state.Status.ValueString() == string(sandbox.StatusStopped)
}

// leaseIsForced turns a lease that is over into a plan, as on_expiry says. It looks at the state alone: Read is what
// looks at the clock.
func leaseIsForced(_ context.Context, resp *resource.ModifyPlanResponse, plan, state *Model) bool {
	action := onExpiry(plan, state)
	if action == "" {
		return false
	}
	running := state.Status.ValueString() == string(sandbox.StatusRunning)
	summary := fmt.Sprintf("The lease of container %s is over", state.ID.ValueString())
	over := fmt.Sprintf("It ended at %s. ", state.ExpiresAt.ValueString())
	const renew = " Another lease.renew or lease.ttl renews it."
	switch {
	case action == sandbox.ExpiryReplace && (plan.Protection.ValueBool() || state.Protection.ValueBool()):
		resp.Diagnostics.AddAttributeWarning(path.Root("lease").AtName("on_expiry"), summary,
			over+"protection keeps it from being replaced: set protection = false to have that done."+renew)
		return false
	case action == sandbox.ExpiryReplace:
		resp.Diagnostics.AddAttributeWarning(path.Root("lease"), summary, over+"This plan replaces it."+renew)
		plan.Expired = types.BoolUnknown()
		resp.RequiresReplace = append(resp.RequiresReplace, path.Root("expired"))
		return true
	case action == sandbox.ExpiryStop && running:
		resp.Diagnostics.AddAttributeWarning(path.Root("lease"), summary, over+"This plan stops it."+renew)
		return true
	case running:
		resp.Diagnostics.AddAttributeWarning(path.Root("lease"), summary, over+"It still runs, and a sandbox_reaper may destroy it."+renew)
	default:
		resp.Diagnostics.AddAttributeWarning(path.Root("lease"), summary, over+"It is stopped and isn't started again before it is renewed."+renew)
	}
	return false
}

// warnOfLease says when a lease is about to end. Only a refresh can: it is what looks at the clock.
func warnOfLease(diags *diag.Diagnostics, s sandbox.Sandbox) {
	if !s.ExpiresSoon() {
		return
	}
	diags.AddAttributeWarning(path.Root("expires_at"), fmt.Sprintf("The lease of container %d ends soon", s.VMID), fmt.Sprintf(
		"%s of %s are left, until %s. Another lease.renew or lease.ttl renews it.",
		s.LeaseLeft.Round(time.Second), sandbox.LeaseDuration(s.Lease.TTL), s.ExpiresAt.Format(time.RFC3339)))
}
