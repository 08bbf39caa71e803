package firewall

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// RuleModel is a firewall rule: of `rule`, of `rules`, and of what egress_rules returns.
type RuleModel struct {
	Direction   types.String `tfsdk:"direction"`
	Action      types.String `tfsdk:"action"`
	Protocol    types.String `tfsdk:"protocol"`
	Macro       types.String `tfsdk:"macro"`
	From        types.String `tfsdk:"from"`
	To          types.String `tfsdk:"to"`
	Ports       types.String `tfsdk:"ports"`
	SourcePorts types.String `tfsdk:"source_ports"`
	ICMPType    types.String `tfsdk:"icmp_type"`
	Log         types.String `tfsdk:"log"`
	Comment     types.String `tfsdk:"comment"`
	Enabled     types.Bool   `tfsdk:"enabled"`
}

// RuleType is the type of a rule's object.
func RuleType() types.ObjectType {
	return types.ObjectType{AttrTypes: map[string]attr.Type{
		"direction": types.StringType, "action": types.StringType, "protocol": types.StringType, "macro": types.StringType,
		"from": types.StringType, "to": types.StringType, "ports": types.StringType, "source_ports": types.StringType,
		"icmp_type": types.StringType, "log": types.StringType, "comment": types.StringType, "enabled": types.BoolType,
	}}
}

// NewRule is a rule of the domain as Terraform holds it: what is empty is null.
func NewRule(r egress.Rule) RuleModel {
	return RuleModel{
		Direction: text(r.Type), Action: text(r.Action), Protocol: text(r.Proto), Macro: text(r.Macro), From: text(r.Source), To: text(r.Dest),
		Ports: text(r.DPort), SourcePorts: text(r.SPort), ICMPType: text(r.ICMPType), Log: text(r.Log), Comment: text(r.Comment),
		Enabled: types.BoolValue(r.Enabled),
	}
}

func text(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

// rule is the domain's; one that doesn't say whether it is enabled is.
func (m RuleModel) rule() egress.Rule {
	return egress.Rule{
		Type: m.Direction.ValueString(), Action: m.Action.ValueString(), Enabled: m.Enabled.IsNull() || m.Enabled.ValueBool(),
		Macro: m.Macro.ValueString(), Proto: m.Protocol.ValueString(), Source: m.From.ValueString(), Dest: m.To.ValueString(),
		DPort: m.Ports.ValueString(), SPort: m.SourcePorts.ValueString(), ICMPType: m.ICMPType.ValueString(), Log: m.Log.ValueString(),
		Comment: m.Comment.ValueString(),
	}
}

// rulesValue are rules as the value of a list.
func rulesValue(ctx context.Context, rules []egress.Rule, diags *diag.Diagnostics) types.List {
	models := make([]RuleModel, 0, len(rules))
	for _, r := range rules {
		models = append(models, NewRule(r))
	}
	list, d := types.ListValueFrom(ctx, RuleType(), models)
	diags.Append(d...)
	return list
}

// rulesOf are the rules of a list that is known.
func rulesOf(ctx context.Context, list types.List, diags *diag.Diagnostics) []egress.Rule {
	var models []RuleModel
	diags.Append(list.ElementsAs(ctx, &models, false)...)
	out := make([]egress.Rule, 0, len(models))
	for _, m := range models {
		out = append(out, m.rule())
	}
	return out
}
