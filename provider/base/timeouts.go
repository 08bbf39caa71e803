package base

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Timeouts are a resource's default limits, one per operation.
type Timeouts struct {
	Create, Read, Update, Delete time.Duration
}

// Attribute returns the `timeouts` attribute with these defaults in its documentation.
func (t Timeouts) Attribute() schema.Attribute {
	one := func(verb string, limit time.Duration, extra string) schema.Attribute {
		return schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("How long %s may take, as a Go duration such as `\"90s\"` or `\"10m\"`. Default `%s`.%s A change takes effect at once and touches nothing.",
				verb, ShortDuration(limit), extra),
			Optional:   true,
			Validators: []validator.String{Duration()},
		}
	}
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Limits for the operations of this resource.",
		Optional:            true,
		CustomType: timeouts.Type{ObjectType: types.ObjectType{AttrTypes: map[string]attr.Type{
			"create": types.StringType, "read": types.StringType, "update": types.StringType, "delete": types.StringType,
		}}},
		Attributes: map[string]schema.Attribute{
			"create": one("a create", t.Create, " It covers waiting in the clone queue, and when it ends the object is kept in state as tainted."),
			"read":   one("a refresh", t.Read, " A refresh never waits for a guest, so only a server that doesn't answer uses it up."),
			"update": one("a change in place", t.Update, " It covers a restart or a migration that the change needs."),
			"delete": one("a destroy", t.Delete, " A new value applies from the next apply on."),
		},
	}
}

// ForCreate derives the context of a create.
func (t Timeouts) ForCreate(ctx context.Context, v timeouts.Value, diags *diag.Diagnostics) (context.Context, context.CancelFunc) {
	return derive(ctx, diags, v.Create, t.Create)
}

// ForRead derives the context of a refresh.
func (t Timeouts) ForRead(ctx context.Context, v timeouts.Value, diags *diag.Diagnostics) (context.Context, context.CancelFunc) {
	return derive(ctx, diags, v.Read, t.Read)
}

// ForUpdate derives the context of a change in place.
func (t Timeouts) ForUpdate(ctx context.Context, v timeouts.Value, diags *diag.Diagnostics) (context.Context, context.CancelFunc) {
	return derive(ctx, diags, v.Update, t.Update)
}

// ForDelete derives the context of a destroy.
func (t Timeouts) ForDelete(ctx context.Context, v timeouts.Value, diags *diag.Diagnostics) (context.Context, context.CancelFunc) {
	return derive(ctx, diags, v.Delete, t.Delete)
}

func derive(ctx context.Context, diags *diag.Diagnostics, read func(context.Context, time.Duration) (time.Duration, diag.Diagnostics), fallback time.Duration) (context.Context, context.CancelFunc) {
	limit, d := read(ctx, fallback)
	diags.Append(d...)
	return context.WithTimeout(ctx, limit)
}

// ShortDuration writes 10m for what time.Duration writes as 10m0s.
func ShortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// NullTimeouts is the value of a `timeouts` attribute that isn't set, for states that don't come from a configuration.
func NullTimeouts() timeouts.Value {
	return timeouts.Value{Object: types.ObjectNull(map[string]attr.Type{
		"create": types.StringType, "read": types.StringType, "update": types.StringType, "delete": types.StringType,
	})}
}

// Duration returns a validator for positive Go durations.
func Duration() validator.String { return durationValidator{} }

type durationValidator struct{}

func (durationValidator) Description(context.Context) string {
	return `must be a positive duration such as "90s", "10m" or "8h"`
}
func (v durationValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v durationValidator) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if d, err := time.ParseDuration(req.ConfigValue.ValueString()); err != nil || d <= 0 {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid duration",
			fmt.Sprintf("%s %s, got %q.", req.Path, v.Description(ctx), req.ConfigValue.ValueString()))
	}
}
