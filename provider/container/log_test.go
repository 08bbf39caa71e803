package container_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

func TestNoLevelOfTheLogHoldsASecret(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	var log bytes.Buffer
	ctx := tflogtest.RootLogger(t.Context(), &log)

	r := server.NewResource(t, resourceType)
	plan := server.Plan(t, r, values{"hostname": "web-1", "authorized_keys": []string{key}})
	protocoltest.NoErrors(t, server.Apply(t, ctx, plan))
	const secret = "correct horse battery staple"
	f := server.NewResource(t, "sandbox_file")
	protocoltest.NoErrors(t, server.Apply(t, ctx, server.Plan(t, f, values{
		"container_id": r.Text(t, "id"), "path": "/run/token", "content_wo": secret, "content_wo_version": 1,
	})))
	e := server.NewResource(t, "sandbox_exec")
	protocoltest.NoErrors(t, server.Apply(t, ctx, server.Plan(t, e, values{
		"container_id": r.Text(t, "id"), "script": "true", "environment": values{"TOKEN": secret}, "stdin": secret,
	})))
	protocoltest.NoErrors(t, server.Destroy(t, ctx, r))

	text := log.String()
	if !strings.Contains(text, "/lxc/") || !strings.Contains(text, `"@level":"debug"`) {
		t.Fatalf("the requests aren't in the log, so that nothing is proved:\n%s", text)
	}
	_, uuid, _ := strings.Cut(env.APIToken, "=")
	for name, canary := range map[string]string{"the token": uuid, "the password": env.Password, "a file's content": secret} {
		if canary != "" && strings.Contains(text, canary) {
			t.Errorf("the log holds %s", name)
		}
	}
	private, err := os.ReadFile(env.SSH.PrivateKeyFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(private), "\n") {
		if len(line) > 16 && !strings.HasPrefix(line, "-----") && strings.Contains(text, line) {
			t.Error("the log holds a line of the private key")
		}
	}
}
