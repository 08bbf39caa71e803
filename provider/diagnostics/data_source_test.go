package diagnostics_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

func TestDiagnosticsShowOneSandboxAndWriteItDownAsOneDocument(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := server.NewResource(t, "sandbox_container")
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, values{"hostname": "web-1", "description": "api_key: q1w2e3r4t5"})))
	t.Cleanup(func() { protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), r)) })
	log := server.NewResource(t, "sandbox_file")
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, log, values{
		"container_id": r.Text(t, "id"), "path": "/var/log/syslog", "content": "first\nlogin with token=abcdefgh12345678\nlast\n",
	})))

	got := server.ReadData(t, "sandbox_diagnostics", values{"container_id": r.Text(t, "id"), "journal_lines": 2}, "").(map[string]any)
	if got["status"] != "running" || got["phase"] != "ready" || got["node_name"] != r.Text(t, "node_name") {
		t.Errorf("got %v", got)
	}
	if config := got["config"].(map[string]any); config["hostname"] != "web-1" || !strings.Contains(config["description"].(string), "api_key: [redacted]") {
		t.Errorf("the configuration is %v", config)
	}
	// Where the guest has systemd, its journal is shown and not the file.
	journal := got["journal"].([]any)
	if len(journal) != 2 || env.Lab != nil && journal[1] != "last" {
		t.Errorf("the journal is %v (unavailable: %v)", journal, got["unavailable"])
	}
	var bundle struct {
		Version  int               `json:"version"`
		Hostname string            `json:"hostname"`
		Config   map[string]string `json:"config"`
		Journal  []string          `json:"journal"`
	}
	text := got["bundle"].(string)
	if err := json.Unmarshal([]byte(text), &bundle); err != nil {
		t.Fatal(err)
	}
	if bundle.Version != 1 || bundle.Hostname != "web-1" || len(bundle.Journal) != 2 || bundle.Config["net0"] == "" {
		t.Errorf("the bundle is %+v", bundle)
	}
	for _, secret := range []string{"q1w2e3r4t5", "abcdefgh12345678", env.APIToken} {
		if secret != "" && strings.Contains(text, secret) {
			t.Errorf("the bundle holds %q", secret)
		}
	}
}

func TestDiagnosticsRefuseWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	_, diags := protocoltest.For(t, env, nil).Data(t, "sandbox_diagnostics", values{"container_id": "9000"})
	if env.TemplateID != 9000 {
		t.Skip("the template of this server has another id")
	}
	if text := protocoltest.Text(diags); !protocoltest.HasErrors(diags) || !strings.Contains(text, "Error code SBX302.") {
		t.Errorf("got %s", text)
	}
}
