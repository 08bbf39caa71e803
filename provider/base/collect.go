package base

import (
	"context"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// Warnings collects warnings of work that goes on side by side, which Terraform's diagnostics can't take.
type Warnings struct {
	mu   sync.Mutex
	list []sandbox.Warning
}

// Add takes a warning.
func (w *Warnings) Add(summary, detail string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, sandbox.Warning{Summary: summary, Detail: detail})
}

// To hands them over.
func (w *Warnings) To(diags *diag.Diagnostics) {
	w.mu.Lock()
	defer w.mu.Unlock()
	AddWarnings(diags, w.list)
	w.list = nil
}

// AddProblemAt adds a problem at a place that its own attribute doesn't name, such as one in a map.
func AddProblemAt(diags *diag.Diagnostics, at path.Path, p sandbox.Problem) {
	if p.Warning {
		diags.AddAttributeWarning(at, p.Summary, p.Detail)
		return
	}
	diags.AddAttributeError(at, p.Summary, withCode(p.Detail, sandbox.CodeConfiguration))
}

// Known says whether a map and all that is in it is known.
func Known(m types.Map) bool {
	for _, v := range m.Elements() {
		if v.IsUnknown() {
			return false
		}
	}
	return !m.IsUnknown()
}

// Texts reads a map of texts, without what isn't known yet.
func Texts(ctx context.Context, m types.Map, diags *diag.Diagnostics) map[string]string {
	out := map[string]string{}
	if m.IsNull() || m.IsUnknown() {
		return out
	}
	var values map[string]types.String
	diags.Append(m.ElementsAs(ctx, &values, false)...)
	for name, v := range values {
		if !v.IsUnknown() && !v.IsNull() {
			out[name] = v.ValueString()
		}
	}
	return out
}
