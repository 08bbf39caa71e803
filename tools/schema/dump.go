package main

import (
	"context"
	"errors"
	"fmt"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// providerName is the key that tfplugindocs looks for.
const providerName = "sandbox"

// dump asks a provider server for everything that its documentation is made of. A schema that the server itself finds
// fault with is an error here, so `make generate` is also a test of the schemas.
func dump(ctx context.Context, server tfprotov6.ProviderServer) (*tfjson.ProviderSchemas, error) {
	answer, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	if err := faults(answer.Diagnostics); err != nil {
		return nil, err
	}
	identities, err := server.GetResourceIdentitySchemas(ctx, &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		return nil, err
	}
	if err := faults(identities.Diagnostics); err != nil {
		return nil, err
	}

	var c converter
	provider := &tfjson.ProviderSchema{
		ConfigSchema:             c.schema(providerName, answer.Provider),
		ResourceSchemas:          c.schemas(answer.ResourceSchemas),
		DataSourceSchemas:        c.schemas(answer.DataSourceSchemas),
		EphemeralResourceSchemas: c.schemas(answer.EphemeralResourceSchemas),
		ListResourceSchemas:      c.schemas(answer.ListResourceSchemas),
		ActionSchemas:            map[string]*tfjson.ActionSchema{},
		Functions:                map[string]*tfjson.FunctionSignature{},
		ResourceIdentitySchemas:  map[string]*tfjson.IdentitySchema{},
	}
	for name, action := range answer.ActionSchemas {
		provider.ActionSchemas[name] = &tfjson.ActionSchema{Block: c.schema(name, action.Schema).Block}
	}
	for name, function := range answer.Functions {
		provider.Functions[name] = c.function(name, function)
	}
	for name, identity := range identities.IdentitySchemas {
		provider.ResourceIdentitySchemas[name] = c.identity(name, identity)
	}
	if len(c.problems) > 0 {
		return nil, errors.Join(c.problems...)
	}
	return &tfjson.ProviderSchemas{
		FormatVersion: "1.0",
		Schemas:       map[string]*tfjson.ProviderSchema{providerName: provider},
	}, nil
}

func faults(diagnostics []*tfprotov6.Diagnostic) error {
	var problems []error
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			problems = append(problems, fmt.Errorf("%s: %s", d.Summary, d.Detail))
		}
	}
	return errors.Join(problems...)
}
