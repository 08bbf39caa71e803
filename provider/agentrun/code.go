package agentrun

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
)

// codeModel are the attributes about code and files that go in and come out.
type codeModel struct{}

// codeAttributes are their schema.
func codeAttributes() map[string]schema.Attribute { return nil }

// stages adds to a specification what surrounds the run. It is called with the
// plan at create, and with the state when a later refresh collects.
func (m *codeModel) stages(_ context.Context, _ *agentrun.Spec, _ *diag.Diagnostics) {}
