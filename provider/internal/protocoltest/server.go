// Package protocoltest drives the provider through Terraform's plugin protocol without Terraform: a whole cycle of
// plan, apply and refresh takes milliseconds, so that matrices of cases are cheap. It plays Terraform's part where
// that matters to a provider: the proposed new state, the rules for what a plan and an apply may answer, taint, and
// the private state that goes round.
package protocoltest

import (
	"context"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Server is one provider server, as Terraform starts one for each command.
type Server struct {
	tfprotov6.ProviderServer
	Schema *tfprotov6.GetProviderSchemaResponse
	// Warnings holds what Configure had to say.
	Warnings []*tfprotov6.Diagnostic

	unfiltered bool // see placed
}

// Values is a configuration as a test writes it: strings, numbers, bools, lists, maps and objects, or Unknown.
// Attributes that are left out are null.
type Values map[string]any

// unknown is the type of Unknown.
type unknown struct{}

// Unknown stands for a value that is only known after apply.
var Unknown = unknown{}

// New starts a server and configures it; the test fails when that doesn't work.
func New(t testing.TB, newProvider func() provider.Provider, config Values) *Server {
	t.Helper()
	s := Start(t, newProvider)
	diags := s.Configure(t, config)
	NoErrors(t, diags)
	s.Warnings = diags
	return s
}

// Start starts a server without configuring it.
func Start(t testing.TB, newProvider func() provider.Provider) *Server {
	t.Helper()
	server, err := providerserver.NewProtocol6WithError(newProvider())()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := server.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	NoErrors(t, schema.Diagnostics)
	return &Server{ProviderServer: server, Schema: schema}
}

// Configure configures the server and returns what it had to say.
func (s *Server) Configure(t testing.TB, config Values) []*tfprotov6.Diagnostic {
	t.Helper()
	value := Value(t, s.Schema.Provider.ValueType(), map[string]any(config))
	dynamic := encode(t, s.Schema.Provider.ValueType(), value)
	validated, err := s.ValidateProviderConfig(context.Background(), &tfprotov6.ValidateProviderConfigRequest{Config: dynamic})
	if err != nil {
		t.Fatal(err)
	}
	if HasErrors(validated.Diagnostics) {
		return validated.Diagnostics
	}
	configured, err := s.ConfigureProvider(context.Background(), &tfprotov6.ConfigureProviderRequest{
		TerraformVersion: "1.11.4", Config: dynamic, ClientCapabilities: &tfprotov6.ConfigureProviderClientCapabilities{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(validated.Diagnostics, configured.Diagnostics...)
}

// Value makes a typed value of what a test wrote.
func Value(t testing.TB, typ tftypes.Type, in any) tftypes.Value {
	t.Helper()
	if in == nil {
		return tftypes.NewValue(typ, nil)
	}
	if in == Unknown {
		return tftypes.NewValue(typ, tftypes.UnknownValue)
	}
	switch typ := typ.(type) {
	case tftypes.Object:
		members, ok := asMap(in)
		if !ok {
			t.Fatalf("want an object, got %T", in)
		}
		out := make(map[string]tftypes.Value, len(typ.AttributeTypes))
		for name, memberType := range typ.AttributeTypes {
			out[name] = Value(t, memberType, members[name])
		}
		for name := range members {
			if _, ok := typ.AttributeTypes[name]; !ok {
				t.Fatalf("there is no attribute %q", name)
			}
		}
		return tftypes.NewValue(typ, out)
	case tftypes.Map:
		members, ok := asMap(in)
		if !ok {
			t.Fatalf("want a map, got %T", in)
		}
		out := make(map[string]tftypes.Value, len(members))
		for name, member := range members {
			out[name] = Value(t, typ.ElementType, member)
		}
		return tftypes.NewValue(typ, out)
	case tftypes.List:
		return tftypes.NewValue(typ, elements(t, typ.ElementType, in))
	case tftypes.Set:
		return tftypes.NewValue(typ, elements(t, typ.ElementType, in))
	}
	if n, ok := in.(int); ok {
		return tftypes.NewValue(typ, int64(n))
	}
	return tftypes.NewValue(typ, in)
}

func asMap(in any) (map[string]any, bool) {
	switch in := in.(type) {
	case Values:
		return in, true
	case map[string]any:
		return in, true
	case map[string]string:
		out := make(map[string]any, len(in))
		for k, v := range in {
			out[k] = v
		}
		return out, true
	}
	return nil, false
}

func elements(t testing.TB, typ tftypes.Type, in any) []tftypes.Value {
	t.Helper()
	var items []any
	switch in := in.(type) {
	case []any:
		items = in
	case []string:
		for _, s := range in {
			items = append(items, s)
		}
	default:
		t.Fatalf("want a list, got %T", in)
	}
	out := make([]tftypes.Value, 0, len(items))
	for _, item := range items {
		out = append(out, Value(t, typ, item))
	}
	return out
}

func encode(t testing.TB, typ tftypes.Type, v tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	out, err := tfprotov6.NewDynamicValue(typ, v)
	if err != nil {
		t.Fatal(err)
	}
	return &out
}

func decode(t testing.TB, typ tftypes.Type, v *tfprotov6.DynamicValue) tftypes.Value {
	t.Helper()
	if v == nil {
		return tftypes.NewValue(typ, nil)
	}
	out, err := v.Unmarshal(typ)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// HasErrors tells whether any diagnostic is an error.
func HasErrors(diags []*tfprotov6.Diagnostic) bool {
	for _, d := range diags {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			return true
		}
	}
	return false
}

// NoErrors fails the test when there is an error among diags.
func NoErrors(t testing.TB, diags []*tfprotov6.Diagnostic) {
	t.Helper()
	if HasErrors(diags) {
		t.Fatalf("unexpected errors:\n%s", Text(diags))
	}
}

// Text writes diagnostics down, one paragraph each: severity, attribute, summary, detail.
func Text(diags []*tfprotov6.Diagnostic) string {
	var b strings.Builder
	for _, d := range diags {
		b.WriteString(d.Severity.String())
		if d.Attribute != nil {
			b.WriteString(" " + d.Attribute.String())
		}
		b.WriteString(": " + d.Summary + ": " + d.Detail + "\n")
	}
	return b.String()
}
