package value

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
)

const keepEqualDescription = "A new spelling of the stored value plans nothing."

// KeepEqual returns a plan modifier that keeps the stored spelling when the configured one means the same, so that a
// change of case or of an IPv6 spelling plans nothing.
func (t StringType) KeepEqual() planmodifier.String { return keepEqualText{t} }

// KeepEqual returns a plan modifier that keeps the stored tags when the configured ones are the same to the server.
func (t TagsType) KeepEqual() planmodifier.Set { return keepEqualTags{} }

type keepEqualText struct{ of StringType }

func (keepEqualText) Description(context.Context) string         { return keepEqualDescription }
func (keepEqualText) MarkdownDescription(context.Context) string { return keepEqualDescription }

func (m keepEqualText) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if wrap(m.of, req.StateValue).Same(wrap(m.of, req.PlanValue)) {
		resp.PlanValue = req.StateValue
	}
}

func wrap(t StringType, v basetypes.StringValue) String { return String{StringValue: v, kind: t.kind} }

type keepEqualTags struct{}

func (keepEqualTags) Description(context.Context) string         { return keepEqualDescription }
func (keepEqualTags) MarkdownDescription(context.Context) string { return keepEqualDescription }

func (keepEqualTags) PlanModifySet(_ context.Context, req planmodifier.SetRequest, resp *planmodifier.SetResponse) {
	if req.StateValue.IsNull() || req.PlanValue.IsNull() {
		return // no tags said and an empty set are kept apart
	}
	if (Tags{req.StateValue}).Same(Tags{req.PlanValue}) {
		resp.PlanValue = req.StateValue
	}
}
