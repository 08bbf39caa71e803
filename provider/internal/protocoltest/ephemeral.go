package protocoltest

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// Ephemeral is an ephemeral resource as Terraform holds it between open and close.
type Ephemeral struct {
	Type    string
	Result  any // see Get
	private []byte
}

// Open opens an ephemeral resource and returns it with the provider's diagnostics; what can't be opened has no result.
func (s *Server) Open(t testing.TB, typeName string, config Values) (*Ephemeral, []*tfprotov6.Diagnostic) {
	t.Helper()
	schema := s.Schema.EphemeralResourceSchemas[typeName]
	if schema == nil {
		t.Fatalf("the provider serves no ephemeral resource %s", typeName)
	}
	typ := schema.ValueType()
	dynamic := encode(t, typ, Value(t, typ, config))
	e := &Ephemeral{Type: typeName}
	validated, err := s.ValidateEphemeralResourceConfig(context.Background(), &tfprotov6.ValidateEphemeralResourceConfigRequest{TypeName: typeName, Config: dynamic})
	if err != nil {
		t.Fatal(err)
	}
	if HasErrors(validated.Diagnostics) {
		return e, validated.Diagnostics
	}
	resp, err := s.OpenEphemeralResource(context.Background(), &tfprotov6.OpenEphemeralResourceRequest{
		TypeName: typeName, Config: dynamic, ClientCapabilities: &tfprotov6.OpenEphemeralResourceClientCapabilities{},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.private = resp.Private
	if resp.Result != nil && !HasErrors(resp.Diagnostics) {
		e.Result = Get(t, decode(t, typ, resp.Result), "")
	}
	return e, append(validated.Diagnostics, resp.Diagnostics...)
}

// MustOpen opens an ephemeral resource without errors.
func (s *Server) MustOpen(t testing.TB, typeName string, config Values) *Ephemeral {
	t.Helper()
	e, diags := s.Open(t, typeName, config)
	NoErrors(t, diags)
	return e
}

// Close closes an ephemeral resource.
func (s *Server) Close(t testing.TB, e *Ephemeral) []*tfprotov6.Diagnostic {
	t.Helper()
	resp, err := s.CloseEphemeralResource(context.Background(), &tfprotov6.CloseEphemeralResourceRequest{TypeName: e.Type, Private: e.private})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Diagnostics
}

// Get returns what stands at a path of the result, see Get.
func (e *Ephemeral) Get(t testing.TB, path string) any { t.Helper(); return walk(t, e.Result, path) }

// Text is Get for a string.
func (e *Ephemeral) Text(t testing.TB, path string) string {
	t.Helper()
	v, ok := e.Get(t, path).(string)
	if !ok {
		t.Fatalf("%s is %v, not a text", path, e.Get(t, path))
	}
	return v
}

// Private is what Terraform carries from open to close.
func (e *Ephemeral) Private() string { return string(e.private) }
