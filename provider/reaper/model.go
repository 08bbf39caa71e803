package reaper

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

type model struct {
	ID                 types.String   `tfsdk:"id"`
	DryRun             types.Bool     `tfsdk:"dry_run"`
	KeepClaims         types.Set      `tfsdk:"keep_claims"`
	Grace              types.String   `tfsdk:"grace"`
	MaxDestroy         types.Int64    `tfsdk:"max_destroy"`
	SnapshotBeforeReap types.Bool     `tfsdk:"snapshot_before_reap"`
	BackupStorage      types.String   `tfsdk:"backup_storage"`
	Candidates         types.List     `tfsdk:"candidates"`
	Kept               types.List     `tfsdk:"kept"`
	Reaped             types.List     `tfsdk:"reaped"`
	Timeouts           timeouts.Value `tfsdk:"timeouts"`
}

// candidateModel is an element of candidates and reaped.
type candidateModel struct {
	VMID     types.Int64  `tfsdk:"vmid"`
	Hostname types.String `tfsdk:"hostname"`
	NodeName types.String `tfsdk:"node_name"`
	Claim    types.String `tfsdk:"claim"`
	Reason   types.String `tfsdk:"reason"`
	Since    types.String `tfsdk:"since"`
}

// spec is what the model asks for.
func (m *model) spec(ctx context.Context, diags *diag.Diagnostics) sandbox.ReapSpec {
	spec := sandbox.ReapSpec{MaxDestroy: int(m.MaxDestroy.ValueInt64())}
	spec.Grace, _ = time.ParseDuration(m.Grace.ValueString()) // the validator has read it
	if !m.KeepClaims.IsNull() && !m.KeepClaims.IsUnknown() {
		spec.KeepClaims = []string{}
		diags.Append(m.KeepClaims.ElementsAs(ctx, &spec.KeepClaims, false)...)
	}
	if m.SnapshotBeforeReap.ValueBool() {
		spec.BackupStorage = m.BackupStorage.ValueString()
	}
	return spec
}

// fill writes what was found: the one way from the server to a state.
func (m *model) fill(owner string, found sandbox.Reapable) {
	m.ID = types.StringValue(owner)
	m.Candidates = candidateList(found.Candidates)
	kept := make([]attr.Value, 0, len(found.Kept))
	for _, c := range found.Kept {
		attributes := candidateAttributes(c)
		attributes["kept"] = types.StringValue(c.Kept)
		kept = append(kept, types.ObjectValueMust(keptTypes, attributes))
	}
	m.Kept = types.ListValueMust(keptType, kept)
	if m.Reaped.IsNull() || m.Reaped.IsUnknown() {
		m.Reaped = candidateList(nil)
	}
}

func candidateList(list []sandbox.ReapCandidate) types.List {
	items := make([]attr.Value, 0, len(list))
	for _, c := range list {
		items = append(items, types.ObjectValueMust(candidateTypes, candidateAttributes(c)))
	}
	return types.ListValueMust(candidateType, items)
}

func candidateAttributes(c sandbox.ReapCandidate) map[string]attr.Value {
	return map[string]attr.Value{
		"vmid":      types.Int64Value(int64(c.VMID)),
		"hostname":  types.StringValue(c.Hostname),
		"node_name": types.StringValue(c.Node),
		"claim":     types.StringValue(c.Claim),
		"reason":    types.StringValue(string(c.Reason)),
		"since":     types.StringValue(c.Since.UTC().Format(time.RFC3339)),
	}
}

// due are the candidates that the state has, as the domain knows them.
func (m *model) due(ctx context.Context, diags *diag.Diagnostics) []sandbox.ReapCandidate {
	if m.Candidates.IsNull() || m.Candidates.IsUnknown() {
		return nil
	}
	var items []candidateModel
	diags.Append(m.Candidates.ElementsAs(ctx, &items, false)...)
	out := make([]sandbox.ReapCandidate, 0, len(items))
	for _, c := range items {
		since, _ := time.Parse(time.RFC3339, c.Since.ValueString()) // for messages; what decides is read back
		out = append(out, sandbox.ReapCandidate{
			Ref:      sandbox.Ref{VMID: int(c.VMID.ValueInt64()), Node: c.NodeName.ValueString(), Claim: c.Claim.ValueString(), Owner: m.ID.ValueString()},
			Hostname: c.Hostname.ValueString(), Reason: sandbox.ReapReason(c.Reason.ValueString()), Since: since,
		})
	}
	return out
}

// lines names candidates for people, one on each line.
func lines(list []sandbox.ReapCandidate) string {
	var b strings.Builder
	for _, c := range list {
		fmt.Fprintf(&b, "\n- %d %s on %s: %s since %s", c.VMID, c.Hostname, c.Node, c.Reason, c.Since.UTC().Format(time.RFC3339))
	}
	return b.String()
}
