package secrets_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

func file(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func start(t *testing.T) *protocoltest.Server {
	t.Helper()
	return protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
}

func TestSecretsComeFromAllTheirSources(t *testing.T) {
	t.Setenv("SECRETS_TEST_KEY", "from the environment")
	server := start(t)
	opened := server.MustOpen(t, "sandbox_secrets", values{
		"environment": []string{"SECRETS_TEST_KEY"},
		"file":        values{"path": file(t, ".env", "TOKEN='from the file'\nOTHER=x\n", 0o600)},
		"only":        []string{"SECRETS_TEST_KEY", "TOKEN"},
	})
	if opened.Text(t, "values.TOKEN") != "from the file" || opened.Text(t, "values.SECRETS_TEST_KEY") != "from the environment" {
		t.Errorf("%v", opened.Get(t, "values"))
	}
	if names := opened.Get(t, "names").([]any); len(names) != 2 || names[0] != "SECRETS_TEST_KEY" {
		t.Errorf("names are %v", names)
	}
	if opened.Private() != "" && strings.Contains(opened.Private(), "from the file") {
		t.Error("a value stands in the private data")
	}
	if diags := server.Close(t, opened); len(diags) > 0 {
		t.Error(protocoltest.Text(diags))
	}
}

// The data source gives the same names, fingerprints and version, and no value.
func TestTheDataSourceShowsNoValue(t *testing.T) {
	t.Parallel()
	server := start(t)
	path := file(t, "s.json", `{"TOKEN": "hush-hush"}`, 0o600)
	config := values{"file": values{"path": path}}
	opened := server.MustOpen(t, "sandbox_secrets", config)
	read := func(at string) any { return server.ReadData(t, "sandbox_secrets", config, at) }
	for _, at := range []string{"version", "fingerprints.TOKEN", "names.0"} {
		if got := read(at); got != opened.Get(t, at) || got == nil {
			t.Errorf("%s is %v and %v", at, got, opened.Get(t, at))
		}
	}
	before := read("version")
	if err := os.WriteFile(path, []byte(`{"TOKEN": "hush"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if read("version") == before {
		t.Error("another value has the same version")
	}
	if got, _ := server.Data(t, "sandbox_secrets", config); strings.Contains(strings.Join(flat(got), " "), "hush") {
		t.Errorf("the data source shows a value: %v", got)
	}
}

func flat(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			out = append(out, flat(e)...)
		}
		return out
	case map[string]any:
		var out []string
		for k, e := range v {
			out = append(append(out, k), flat(e)...)
		}
		return out
	}
	return nil
}

func TestWhatCantBeReadIsAnErrorWithoutValues(t *testing.T) {
	t.Parallel()
	server := start(t)
	for name, c := range map[string]struct {
		config values
		want   string
	}{
		"no source":            {values{}, "environment"},
		"a name that is none":  {values{"environment": []string{"A B"}}, "must be the name of an environment variable"},
		"an unknown format":    {values{"file": values{"path": "x", "format": "yaml"}}, "format"},
		"an unset variable":    {values{"environment": []string{"SECRETS_TEST_UNSET"}}, "SECRETS_TEST_UNSET not set"},
		"a missing file":       {values{"file": values{"path": "/no/such/file"}}, "File /no/such/file: no such file"},
		"a broken file":        {values{"file": values{"path": file(t, ".env", "A='canary", 0o600)}}, "no closing quote"},
		"no sops":              {values{"sops": values{"path": "/no/such/file"}}, "sops"},
		"a name that isn't in": {values{"file": values{"path": file(t, ".env", "A=canary\n", 0o600)}, "only": []string{"B"}}, "B is in none"},
	} {
		opened, diags := server.Open(t, "sandbox_secrets", c.config)
		if text := protocoltest.Text(diags); !protocoltest.HasErrors(diags) || !strings.Contains(text, c.want) || strings.Contains(text, "canary") || strings.Contains(text, "SBX900") {
			t.Errorf("%s: %s", name, text)
		}
		if opened.Result != nil {
			t.Errorf("%s: there is a result", name)
		}
	}
}

func TestAFileThatOthersCanReadWarns(t *testing.T) {
	t.Parallel()
	server := start(t)
	_, diags := server.Open(t, "sandbox_secrets", values{"file": values{"path": file(t, ".env", "A=1\n", 0o644)}})
	if text := protocoltest.Text(diags); protocoltest.HasErrors(diags) || !strings.Contains(text, "chmod 600") {
		t.Errorf("it said: %s", text)
	}
}
