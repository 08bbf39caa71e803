package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// server answers with the schemas that a test gives it.
type server struct {
	tfprotov6.ProviderServer
	schemas    *tfprotov6.GetProviderSchemaResponse
	identities map[string]*tfprotov6.ResourceIdentitySchema
}

func (s server) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	return s.schemas, nil
}

func (s server) GetResourceIdentitySchemas(context.Context, *tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov6.GetResourceIdentitySchemasResponse{IdentitySchemas: s.identities}, nil
}

func block(attributes ...*tfprotov6.SchemaAttribute) *tfprotov6.Schema {
	return &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{Attributes: attributes}}
}

func TestTheDumpReadsBackAsTerraformsOwn(t *testing.T) {
	t.Parallel()
	s := server{
		schemas: &tfprotov6.GetProviderSchemaResponse{
			Provider: block(&tfprotov6.SchemaAttribute{Name: "token", Type: tftypes.String, Optional: true, Sensitive: true, Description: "A secret."}),
			ResourceSchemas: map[string]*tfprotov6.Schema{"x_box": block(&tfprotov6.SchemaAttribute{
				Name: "network", Optional: true, Description: "Its network.",
				NestedType: &tfprotov6.SchemaObject{Nesting: tfprotov6.SchemaObjectNestingModeSingle, Attributes: []*tfprotov6.SchemaAttribute{
					{Name: "ports", Type: tftypes.List{ElementType: tftypes.Number}, Computed: true, Description: "Ports."},
				}},
			})},
			Functions: map[string]*tfprotov6.Function{"f": {
				Parameters: []*tfprotov6.FunctionParameter{{Name: "size", Type: tftypes.String, Description: "A size."}},
				Return:     &tfprotov6.FunctionReturn{Type: tftypes.Number},
			}},
		},
		identities: map[string]*tfprotov6.ResourceIdentitySchema{"x_box": {IdentityAttributes: []*tfprotov6.ResourceIdentitySchemaAttribute{
			{Name: "vmid", Type: tftypes.Number, RequiredForImport: true},
		}}},
	}
	dumped, err := dump(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(dumped)
	if err != nil {
		t.Fatal(err)
	}
	var read tfjson.ProviderSchemas
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	got := read.Schemas[providerName]
	if !got.ConfigSchema.Block.Attributes["token"].Sensitive {
		t.Error("the token isn't sensitive any more")
	}
	ports := got.ResourceSchemas["x_box"].Block.Attributes["network"].AttributeNestedType.Attributes["ports"]
	if ports.AttributeType.FriendlyName() != "list of number" || !ports.Computed {
		t.Errorf("ports is %s", ports.AttributeType.FriendlyName())
	}
	if !got.ResourceIdentitySchemas["x_box"].Attributes["vmid"].RequiredForImport {
		t.Error("the identity got lost")
	}
	if got.Functions["f"].Parameters[0].Name != "size" {
		t.Error("the function's parameter got lost")
	}
}

func TestAnAttributeWithoutADescriptionIsRefused(t *testing.T) {
	t.Parallel()
	s := server{schemas: &tfprotov6.GetProviderSchemaResponse{Provider: block(&tfprotov6.SchemaAttribute{Name: "mute", Type: tftypes.String})}}
	_, err := dump(t.Context(), s)
	if err == nil || !strings.Contains(err.Error(), "sandbox.mute has no description") {
		t.Errorf("got %v", err)
	}
}

func TestABlockIsRefused(t *testing.T) {
	t.Parallel()
	schema := block()
	schema.Block.BlockTypes = []*tfprotov6.SchemaNestedBlock{{TypeName: "old_style", Block: &tfprotov6.SchemaBlock{}}}
	_, err := dump(t.Context(), server{schemas: &tfprotov6.GetProviderSchemaResponse{Provider: schema}})
	if err == nil || !strings.Contains(err.Error(), "never blocks") {
		t.Errorf("got %v", err)
	}
}

func TestASchemaThatTheServerFindsFaultWithIsRefused(t *testing.T) {
	t.Parallel()
	s := server{schemas: &tfprotov6.GetProviderSchemaResponse{
		Provider:    block(),
		Diagnostics: []*tfprotov6.Diagnostic{{Severity: tfprotov6.DiagnosticSeverityError, Summary: "Schema Using Default For Non-Computed", Detail: "x"}},
	}}
	if _, err := dump(t.Context(), s); err == nil {
		t.Error("accepted")
	}
}
