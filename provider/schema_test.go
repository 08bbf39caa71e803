package provider_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

// attribute is one attribute of a schema, with where it stands.
type attribute struct {
	*tfprotov6.SchemaAttribute
	at string
}

func attributesOf(at string, attributes []*tfprotov6.SchemaAttribute) []attribute {
	var out []attribute
	for _, a := range attributes {
		here := attribute{a, at + "." + a.Name}
		out = append(out, here)
		if a.NestedType != nil {
			out = append(out, attributesOf(here.at, a.NestedType.Attributes)...)
		}
	}
	return out
}

func everyAttribute(schema *tfprotov6.GetProviderSchemaResponse) []attribute {
	out := attributesOf("provider", schema.Provider.Block.Attributes)
	for name, s := range schema.ResourceSchemas {
		out = append(out, attributesOf("resource "+name, s.Block.Attributes)...)
	}
	for name, s := range schema.DataSourceSchemas {
		out = append(out, attributesOf("data "+name, s.Block.Attributes)...)
	}
	for name, s := range schema.EphemeralResourceSchemas {
		out = append(out, attributesOf("ephemeral "+name, s.Block.Attributes)...)
	}
	return out
}

func served(t *testing.T) *protocoltest.Server {
	t.Helper()
	return protocoltest.Start(t, provider.New("test"))
}

func TestSchemaHasNoBlocksAndDescribesEverything(t *testing.T) {
	t.Parallel()
	schema := served(t).Schema
	blocks := map[string]*tfprotov6.Schema{"provider": schema.Provider}
	for name, s := range schema.ResourceSchemas {
		blocks["resource "+name] = s
	}
	for name, s := range schema.DataSourceSchemas {
		blocks["data "+name] = s
	}
	for name, s := range schema.EphemeralResourceSchemas {
		blocks["ephemeral "+name] = s
	}
	for at, s := range blocks {
		if len(s.Block.BlockTypes) > 0 {
			t.Errorf("%s has blocks; the interface has attributes only", at)
		}
		if s.Block.Description == "" || s.Block.DescriptionKind != tfprotov6.StringKindMarkdown {
			t.Errorf("%s has no Markdown description", at)
		}
	}
	for _, a := range everyAttribute(schema) {
		if a.Description == "" || a.DescriptionKind != tfprotov6.StringKindMarkdown {
			t.Errorf("%s has no Markdown description", a.at)
		}
		if a.Description != "" && !strings.HasSuffix(strings.TrimSpace(a.Description), ".") {
			t.Errorf("%s: the description is no sentence: %q", a.at, a.Description)
		}
		if !regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`).MatchString(a.Name) {
			t.Errorf("%s is not in snake case", a.at)
		}
	}
}

func TestSecretLookingAttributesAreSensitiveOrWriteOnly(t *testing.T) {
	t.Parallel()
	// "authorized_keys" and "host_key" are public; "content" is documented as standing in the state.
	looksSecret := regexp.MustCompile(`(password|token|secret|private_key|otp)($|_)`)
	isFile := regexp.MustCompile(`_file$`)
	found := 0
	for _, a := range everyAttribute(served(t).Schema) {
		if !looksSecret.MatchString(a.Name) || isFile.MatchString(a.Name) {
			continue
		}
		found++
		if !a.Sensitive && !a.WriteOnly {
			t.Errorf("%s looks like a secret, and is neither sensitive nor write-only", a.at)
		}
	}
	if found < 5 {
		t.Errorf("only %d secrets were found: the pattern is wrong", found)
	}
}

func TestEveryProviderAttributeNamesItsVariable(t *testing.T) {
	t.Parallel()
	for _, a := range attributesOf("", served(t).Schema.Provider.Block.Attributes) {
		if a.NestedType != nil {
			continue
		}
		variable := "SANDBOX_" + strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(a.at, "."), ".", "_"))
		if !strings.Contains(a.Description, "`"+variable+"`") {
			t.Errorf("the description of %s doesn't name %s", a.at, variable)
		}
		if slices.Contains([]string{".endpoint", ".api_token", ".username", ".password", ".insecure"}, a.at) &&
			!strings.Contains(a.Description, "`PROXMOX_VE_"+strings.ToUpper(a.Name)+"`") {
			t.Errorf("the description of %s doesn't name the shared variable", a.at)
		}
	}
}

func TestSettableAttributesSayWhatAChangeDoes(t *testing.T) {
	t.Parallel()
	schema := served(t).Schema
	says := regexp.MustCompile(`(?i)\b(a change|larger size|switching|version)\b`)
	for name, s := range schema.ResourceSchemas {
		whole := []string{} // objects that are one thing: what a change of any part does is said once
		for _, a := range attributesOf(name, s.Block.Attributes) {
			if a.NestedType != nil && says.MatchString(a.Description) {
				whole = append(whole, a.at+".")
			}
			if !a.Required && !a.Optional || a.NestedType != nil {
				continue
			}
			part := slices.ContainsFunc(whole, func(prefix string) bool { return strings.HasPrefix(a.at, prefix) })
			if !part && !says.MatchString(a.Description) {
				t.Errorf("%s doesn't say what a change does: %q", a.at, a.Description)
			}
		}
	}
}

func TestManagedObjectsHaveIdentityAndTimeouts(t *testing.T) {
	t.Parallel()
	server := served(t)
	identities, err := server.GetResourceIdentitySchemas(context.Background(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	protocoltest.NoErrors(t, identities.Diagnostics)
	// What has happened, and a reaper's rule, are no objects on the server: there is nothing to import or to identify.
	exceptions := []string{"sandbox_agent_run", "sandbox_exec", "sandbox_mission", "sandbox_reaper", "sandbox_rollback"}
	for name, s := range server.Schema.ResourceSchemas {
		if slices.Contains(exceptions, name) {
			continue
		}
		if identities.IdentitySchemas[name] == nil {
			t.Errorf("%s has no identity", name)
		}
		if !slices.ContainsFunc(s.Block.Attributes, func(a *tfprotov6.SchemaAttribute) bool { return a.Name == "timeouts" }) {
			t.Errorf("%s has no timeouts", name)
		}
		if !slices.ContainsFunc(s.Block.Attributes, func(a *tfprotov6.SchemaAttribute) bool { return a.Name == "id" && a.Computed && !a.Optional }) {
			t.Errorf("%s has no computed id", name)
		}
	}
}

func TestProviderServesTheFoundation(t *testing.T) {
	t.Parallel()
	schema := served(t).Schema
	for _, name := range []string{"sandbox_container", "sandbox_exec", "sandbox_file"} {
		if schema.ResourceSchemas[name] == nil {
			t.Errorf("resource %s is missing", name)
		}
	}
	for _, name := range []string{"sandbox_containers", "sandbox_cluster", "sandbox_diagnostics", "sandbox_file", "sandbox_preflight"} {
		if schema.DataSourceSchemas[name] == nil {
			t.Errorf("data source %s is missing", name)
		}
	}
	for _, name := range []string{"snapshot_name", "parse_container_id", "size_mib"} {
		if schema.Functions[name] == nil {
			t.Errorf("function %s is missing", name)
		}
	}
}
