package exec_test

import (
	"context"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

func TestValidation(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	for name, config := range map[string]values{
		"neither command nor script": {"container_id": "100000"},
		"both":                       {"container_id": "100000", "command": []string{"true"}, "script": "true"},
		"an empty command":           {"container_id": "100000", "command": []string{}},
		"no container":               {"container_id": "web-1", "script": "true"},
		"a relative folder":          {"container_id": "100000", "script": "true", "working_dir": "src"},
		"a variable without a name":  {"container_id": "100000", "script": "true", "environment": values{"a b": "x"}},
		"a timeout that is none":     {"container_id": "100000", "script": "true", "timeout": "0s"},
		"an unknown reaction":        {"container_id": "100000", "script": "true", "on_failure": "ignore"},
	} {
		if diags := server.Validate(t, "sandbox_exec", config); !protocoltest.HasErrors(diags) {
			t.Errorf("%s was accepted", name)
		}
	}
}

// sandboxed makes a container to run commands in.
func sandboxed(t *testing.T, server *protocoltest.Server) string {
	t.Helper()
	r := server.NewResource(t, "sandbox_container")
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, values{"hostname": "web-1"})))
	t.Cleanup(func() {
		protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), r))
	})
	return r.Text(t, "id")
}

func TestExec(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	id := sandboxed(t, server)
	run := func(t *testing.T, config values) *protocoltest.Resource {
		t.Helper()
		r := server.NewResource(t, "sandbox_exec")
		config["container_id"] = id
		protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, config)))
		return r
	}

	t.Run("keeps output and exit code", func(t *testing.T) {
		r := run(t, values{"script": "echo out; echo err >&2; exit 3", "on_failure": "record"})
		if r.Get(t, "stdout") != "out\n" || r.Get(t, "stderr") != "err\n" || r.Get(t, "exit_code") != 3.0 {
			t.Errorf("stdout %q, stderr %q, exit code %v", r.Get(t, "stdout"), r.Get(t, "stderr"), r.Get(t, "exit_code"))
		}
	})
	t.Run("passes arguments without a shell", func(t *testing.T) {
		r := run(t, values{"command": []string{"echo", "a b", "$HOME", ";"}})
		if got := r.Get(t, "stdout"); got != "a b $HOME ;\n" {
			t.Errorf("stdout %q", got)
		}
	})
	t.Run("passes environment, folder and standard input", func(t *testing.T) {
		r := run(t, values{"script": `printf '%s %s ' "$WHO" "$PWD"; cat`, "environment": values{"WHO": "it's me"}, "working_dir": "/tmp", "stdin": "in\n"})
		if got := r.Get(t, "stdout"); got != "it's me /tmp in\n" {
			t.Errorf("stdout %q", got)
		}
	})
	t.Run("keeps the end of long output", func(t *testing.T) {
		r := run(t, values{"script": `i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done`})
		out := r.Text(t, "stdout")
		if len(out) > 64<<10 || !strings.HasSuffix(out, "line 19999\n") {
			t.Errorf("%d bytes, ending in %q", len(out), out[max(0, len(out)-20):])
		}
	})
	t.Run("runs once, and again only for a change that matters", func(t *testing.T) {
		config := values{"container_id": id, "script": "echo run >> /tmp/runs; wc -l < /tmp/runs", "triggers": values{"v": "1"}}
		r := run(t, config)
		for range 2 {
			protocoltest.NoErrors(t, server.Refresh(t, r))
			if plan := server.Plan(t, r, config); plan.Action() != "no-op" {
				t.Fatalf("planned %s", plan.Action())
			}
		}
		config["timeout"] = "1m"
		plan := server.Plan(t, r, config)
		if plan.Action() != "update" {
			t.Fatalf("another timeout planned %s", plan.Action())
		}
		protocoltest.NoErrors(t, server.Apply(t, t.Context(), plan))
		config["triggers"] = values{"v": "2"}
		plan = server.Plan(t, r, config)
		if plan.Action() != "replace" {
			t.Fatalf("another trigger planned %s", plan.Action())
		}
		protocoltest.NoErrors(t, server.Apply(t, t.Context(), plan))
		if got := strings.TrimSpace(r.Text(t, "stdout")); got != "2" {
			t.Errorf("it ran %s times", got)
		}
	})
	t.Run("a failure is an error that shows the output, and is tried again", func(t *testing.T) {
		r := server.NewResource(t, "sandbox_exec")
		config := values{"container_id": id, "script": "echo broken >&2; exit 7"}
		diags := server.Apply(t, t.Context(), server.Plan(t, r, config))
		text := protocoltest.Text(diags)
		for _, want := range []string{"ERROR", "exit code 7", "broken", "on_failure"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in: %s", want, text)
			}
		}
		if !r.Tainted || r.Get(t, "exit_code") != 7.0 {
			t.Errorf("tainted %t, exit code %v", r.Tainted, r.Get(t, "exit_code"))
		}
	})
	t.Run("a command that takes too long is stopped", func(t *testing.T) {
		r := server.NewResource(t, "sandbox_exec")
		diags := server.Apply(t, t.Context(), server.Plan(t, r, values{"container_id": id, "script": "echo begun; sleep 60", "timeout": "300ms"}))
		text := protocoltest.Text(diags)
		if !strings.Contains(text, "didn't end within 300ms") || r.Exists() {
			t.Errorf("tracked %t, said: %s", r.Exists(), text)
		}
	})
	t.Run("another host key is an error", func(t *testing.T) {
		r := server.NewResource(t, "sandbox_exec")
		other := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2Vv8Wl3Y4v5bq0o1o0kq3m7yGx0m1w5m7yqj1bJ7kX"
		diags := server.Apply(t, t.Context(), server.Plan(t, r, values{"container_id": id, "script": "true", "host_key": other, "timeout": "10s"}))
		if !protocoltest.HasErrors(diags) {
			t.Error("it was accepted")
		}
	})
	t.Run("a container that isn't ours is not entered", func(t *testing.T) {
		r := server.NewResource(t, "sandbox_exec")
		stranger := protocoltest.For(t, env, values{"owner": "stranger"})
		diags := stranger.Apply(t, t.Context(), stranger.Plan(t, r, values{"container_id": id, "script": "true"}))
		if text := protocoltest.Text(diags); !strings.Contains(text, "Unable to run command in container "+id) || !strings.Contains(text, "owner") {
			t.Errorf("it said: %s", text)
		}
	})
}
