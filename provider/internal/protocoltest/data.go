package protocoltest

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// Data reads a data source and returns the value with the provider's diagnostics.
func (s *Server) Data(t testing.TB, typeName string, config Values) (any, []*tfprotov6.Diagnostic) {
	t.Helper()
	schema := s.Schema.DataSourceSchemas[typeName]
	if schema == nil {
		t.Fatalf("the provider serves no data source %s", typeName)
	}
	typ := schema.ValueType()
	dynamic := encode(t, typ, Value(t, typ, config))
	validated, err := s.ValidateDataResourceConfig(context.Background(), &tfprotov6.ValidateDataResourceConfigRequest{TypeName: typeName, Config: dynamic})
	if err != nil {
		t.Fatal(err)
	}
	if HasErrors(validated.Diagnostics) {
		return nil, validated.Diagnostics
	}
	resp, err := s.ReadDataSource(context.Background(), &tfprotov6.ReadDataSourceRequest{
		TypeName: typeName, Config: dynamic, ClientCapabilities: &tfprotov6.ReadDataSourceClientCapabilities{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if HasErrors(resp.Diagnostics) {
		return nil, resp.Diagnostics
	}
	return Get(t, decode(t, typ, resp.State), ""), resp.Diagnostics
}

// ReadData reads a data source without errors and returns what stands at a path, see Get.
func (s *Server) ReadData(t testing.TB, typeName string, config Values, path string) any {
	t.Helper()
	v, diags := s.Data(t, typeName, config)
	NoErrors(t, diags)
	return walk(t, v, path)
}

// ValidateData says what is wrong with a data source's configuration, without a server.
func (s *Server) ValidateData(t testing.TB, typeName string, config Values) []*tfprotov6.Diagnostic {
	t.Helper()
	schema := s.Schema.DataSourceSchemas[typeName]
	if schema == nil {
		t.Fatalf("the provider serves no data source %s", typeName)
	}
	typ := schema.ValueType()
	resp, err := s.ValidateDataResourceConfig(context.Background(), &tfprotov6.ValidateDataResourceConfigRequest{TypeName: typeName, Config: encode(t, typ, Value(t, typ, config))})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Diagnostics
}
