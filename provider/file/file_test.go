package file_test

import (
	"context"
	"os"
	"path/filepath"
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
	base := func(more values) values {
		out := values{"container_id": "100000", "path": "/etc/motd"}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	for name, config := range map[string]values{
		"no content":                base(nil),
		"two contents":              base(values{"content": "x", "source": "/x"}),
		"a secret without version":  base(values{"content_wo": "x"}),
		"a version without secret":  base(values{"content": "x", "content_wo_version": 1}),
		"a relative path":           base(values{"content": "x", "path": "etc/motd"}),
		"a path of a folder":        base(values{"content": "x", "path": "/etc/"}),
		"a mode that isn't octal":   base(values{"content": "x", "mode": "0999"}),
		"an owner that can't be":    base(values{"content": "x", "owner": "a:b:c"}),
		"a container that is none":  base(values{"content": "x", "container_id": "web-1"}),
		"a timeout that is nothing": base(values{"content": "x", "timeouts": values{"read": "soon"}}),
	} {
		if diags := server.Validate(t, "sandbox_file", config); !protocoltest.HasErrors(diags) {
			t.Errorf("%s was accepted", name)
		}
	}
}

type fixture struct {
	env       *acctest.Environment
	server    *protocoltest.Server
	container *protocoltest.Resource
	id        string
}

func sandboxed(t *testing.T) *fixture {
	t.Helper()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := server.NewResource(t, "sandbox_container")
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, values{"hostname": "web-1"})))
	t.Cleanup(func() {
		protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), r))
	})
	return &fixture{env, server, r, r.Text(t, "id")}
}

func (f *fixture) apply(t *testing.T, r *protocoltest.Resource, config values, action string) {
	t.Helper()
	plan := f.server.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	if plan.Action() != action {
		t.Fatalf("planned %s, want %s", plan.Action(), action)
	}
	protocoltest.NoErrors(t, f.server.Apply(t, t.Context(), plan))
	protocoltest.NoErrors(t, f.server.Refresh(t, r))
	if plan := f.server.Plan(t, r, config); plan.Action() != "no-op" {
		t.Fatalf("the plan after the apply is %s:\nstate %v\nplan  %v", plan.Action(), r.Get(t, ""), plan.Get(t, ""))
	}
}

// inside runs a script in the container.
func (f *fixture) inside(t *testing.T, script string) string {
	t.Helper()
	r := f.server.NewResource(t, "sandbox_exec")
	protocoltest.NoErrors(t, f.server.Apply(t, t.Context(), f.server.Plan(t, r, values{"container_id": f.id, "script": script})))
	return r.Text(t, "stdout")
}

func TestFile(t *testing.T) {
	t.Parallel()
	f := sandboxed(t)
	local := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(local, []byte{0, 1, 2, 0xff}, 0o600); err != nil {
		t.Fatal(err)
	}

	t.Run("is written, changed in place, repaired and removed", func(t *testing.T) {
		config := values{"container_id": f.id, "path": "/srv/app/conf", "content": "one\n"}
		r := f.server.NewResource(t, "sandbox_file")
		f.apply(t, r, config, "create")
		if got := f.inside(t, "cat /srv/app/conf; stat -c %a /srv/app/conf"); got != "one\n644\n" {
			t.Errorf("inside: %q", got)
		}
		config["content"], config["mode"], config["owner"] = "two\n", "0750", "root"
		f.apply(t, r, config, "update")
		for what, script := range map[string]string{
			"content": "echo three > /srv/app/conf",
			"mode":    "chmod 600 /srv/app/conf",
			"owner":   "chown 65534:65534 /srv/app/conf",
		} {
			f.inside(t, script)
			protocoltest.NoErrors(t, f.server.Refresh(t, r))
			f.apply(t, r, config, "update")
			if got := f.inside(t, "cat /srv/app/conf; stat -c '%a %u' /srv/app/conf"); got != "two\n750 0\n" {
				t.Errorf("after drift of %s, inside: %q", what, got)
			}
		}
		f.inside(t, "rm /srv/app/conf")
		protocoltest.NoErrors(t, f.server.Refresh(t, r))
		if r.Exists() {
			t.Fatal("a file that is gone is still tracked")
		}
		f.apply(t, r, config, "create")
		protocoltest.NoErrors(t, f.server.Destroy(t, t.Context(), r))
		if got := f.inside(t, "ls /srv/app"); got != "" {
			t.Errorf("left behind: %q", got)
		}
	})

	t.Run("comes from a local file, and follows it", func(t *testing.T) {
		config := values{"container_id": f.id, "path": "/srv/binary", "source": local, "mode": "755"}
		r := f.server.NewResource(t, "sandbox_file")
		f.apply(t, r, config, "create")
		if err := os.WriteFile(local, []byte{9, 9}, 0o600); err != nil {
			t.Fatal(err)
		}
		f.apply(t, r, config, "update")
		data := f.server.ReadData(t, "sandbox_file", values{"container_id": f.id, "path": "/srv/binary"}, "").(map[string]any)
		if data["content_base64"] != "CQk=" || data["mode"] != "0755" || data["size"] != 2.0 || data["sha256"] != r.Get(t, "sha256") {
			t.Errorf("the data source says %v", data)
		}
	})

	t.Run("with a secret lands in memory only and stands nowhere", func(t *testing.T) {
		const secret = "correct horse battery staple"
		config := values{"container_id": f.id, "path": "/run/token", "content_wo": secret, "content_wo_version": 1}
		r := f.server.NewResource(t, "sandbox_file")
		f.apply(t, r, config, "create")
		if got := f.inside(t, "cat /run/token; stat -c ' %a' /run/token"); got != secret+" 600\n" {
			t.Errorf("inside: %q", got)
		}
		if text := r.State.String() + string(r.Private); strings.Contains(text, secret) || r.Get(t, "sha256") != nil {
			t.Errorf("the state holds it, or its hash: %s", text)
		}
		config["content_wo"], config["content_wo_version"] = "another", 2
		f.apply(t, r, config, "update")
		f.inside(t, "echo something else > /run/token")
		protocoltest.NoErrors(t, f.server.Refresh(t, r))
		f.apply(t, r, config, "update")
		if got := f.inside(t, "cat /run/token"); got != "another" {
			t.Errorf("inside: %q", got)
		}

		onDisk := f.server.NewResource(t, "sandbox_file")
		diags := f.server.Apply(t, t.Context(), f.server.Plan(t, onDisk, values{"container_id": f.id, "path": "/root/token", "content_wo": secret, "content_wo_version": 1}))
		if text := protocoltest.Text(diags); !strings.Contains(text, "Unable to write file /root/token") || onDisk.Exists() {
			t.Errorf("a secret on a disk: tracked %t, said %s", onDisk.Exists(), text)
		}
		if strings.Contains(protocoltest.Text(diags), secret) {
			t.Error("the diagnostic holds it")
		}
	})

	t.Run("is imported by container and path", func(t *testing.T) {
		config := values{"container_id": f.id, "path": "/srv/imported", "content": "here\n"}
		made := f.server.NewResource(t, "sandbox_file")
		f.apply(t, made, config, "create")
		byID, diags := f.server.Import(t, "sandbox_file", f.id+"/srv/imported")
		protocoltest.NoErrors(t, diags)
		byIdentity, diags := f.server.ImportByIdentity(t, "sandbox_file", values{"container_id": f.id, "path": "/srv/imported"})
		protocoltest.NoErrors(t, diags)
		for _, r := range []*protocoltest.Resource{byID, byIdentity} {
			if plan := f.server.Plan(t, r, config); plan.Action() != "no-op" {
				t.Errorf("after the import planned %s", plan.Action())
			}
		}
		for _, id := range []string{"x", f.id, f.id + "/", "web/etc/motd"} {
			if _, diags := f.server.Import(t, "sandbox_file", id); !protocoltest.HasErrors(diags) {
				t.Errorf("%q was imported", id)
			}
		}
	})

	t.Run("larger than asked for is an error of the data source", func(t *testing.T) {
		f.inside(t, "head -c 100 /dev/zero > /srv/large")
		_, diags := f.server.Data(t, "sandbox_file", values{"container_id": f.id, "path": "/srv/large", "max_bytes": 99})
		if !strings.Contains(protocoltest.Text(diags), "Unable to read file /srv/large") {
			t.Errorf("it said: %s", protocoltest.Text(diags))
		}
		_, diags = f.server.Data(t, "sandbox_file", values{"container_id": f.id, "path": "/srv/missing"})
		if !strings.Contains(protocoltest.Text(diags), "Unable to read file /srv/missing") {
			t.Errorf("it said: %s", protocoltest.Text(diags))
		}
	})
}

func TestFilesOfAStoppedContainerStayInTheState(t *testing.T) {
	t.Parallel()
	f := sandboxed(t)
	onDisk := f.server.NewResource(t, "sandbox_file")
	f.apply(t, onDisk, values{"container_id": f.id, "path": "/srv/conf", "content": "one\n"}, "create")
	inMemory := f.server.NewResource(t, "sandbox_file")
	f.apply(t, inMemory, values{"container_id": f.id, "path": "/run/token", "content_wo": "x", "content_wo_version": 1}, "create")

	stopped := values{"hostname": "web-1", "started": false}
	protocoltest.NoErrors(t, f.server.Apply(t, t.Context(), f.server.Plan(t, f.container, stopped)))
	f.server = protocoltest.For(t, f.env, nil)
	diags := f.server.Refresh(t, onDisk)
	protocoltest.NoErrors(t, diags)
	if !onDisk.Exists() || !strings.Contains(protocoltest.Text(diags), "WARNING") {
		t.Errorf("tracked %t, said %s", onDisk.Exists(), protocoltest.Text(diags))
	}
	protocoltest.NoErrors(t, f.server.Refresh(t, inMemory))
	if inMemory.Exists() {
		t.Error("what was in memory is still tracked")
	}
	diags = f.server.Destroy(t, t.Context(), onDisk)
	protocoltest.NoErrors(t, diags)
	if onDisk.Exists() || !strings.Contains(protocoltest.Text(diags), "Left behind") {
		t.Errorf("tracked %t, said %s", onDisk.Exists(), protocoltest.Text(diags))
	}
}
