package container_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

// quick gives up on a server that doesn't answer at once.
var quick = provider.Options{Connection: func(c *pve.Config) { c.RetryFor = 200 * time.Millisecond }}

func TestAContainerFromATemplateFile(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	config := values{"hostname": "web-1", "template_file_id": env.TemplateFile, "cores": 1, "memory": 128, "disk": 2, "authorized_keys": []string{key}}
	r := create(t, server, config)
	for path, want := range map[string]any{
		"template_id": nil, "template_file_id": env.TemplateFile, "status": "running", "storage": env.Storage, "disk": 2.0,
		"posture.unprivileged": true, "nesting": true,
	} {
		if got := r.Get(t, path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	plan := server.Plan(t, r, values{"hostname": "web-1"})
	protocoltest.NoErrors(t, plan.Diags)
	if plan.Action() != "replace" {
		t.Errorf("the provider's template instead planned %s", plan.Action())
	}
}

func TestAFullCloneTakesTheStorageThatIsAskedFor(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	config := values{"hostname": "web-1", "full_clone": true, "storage": env.Storage}
	r := create(t, server, config)
	if got := r.Get(t, "storage"); got != env.Storage {
		t.Errorf("storage is %v", got)
	}
	plan := server.Plan(t, r, values{"hostname": "web-1", "full_clone": false})
	protocoltest.NoErrors(t, plan.Diags)
	if plan.Action() != "replace" {
		t.Errorf("a linked clone instead planned %s", plan.Action())
	}
}

// rebuild gives the template the marker of another build.
func rebuild(t *testing.T, env *acctest.Environment, c *pve.Client, build string) {
	t.Helper()
	err := c.UpdateLXC(t.Context(), env.Node(), env.TemplateID, pve.LXCUpdate{Set: map[string]string{
		"description": fmt.Sprintf("<!-- sandbox v1 owner=packer claim=%s vmid=%d kind=template phase=ready template=%d:%s -->",
			strings.Repeat("a", 26), env.TemplateID, env.TemplateID, build),
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestANewBuildOfTheTemplateReplacesUnlessItIsKept(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "changes the template")
	env := acctest.New(t)
	somebody := client(t, env)
	rebuild(t, env, somebody, "b1")
	server := protocoltest.For(t, env, nil)
	replaced, kept := values{"hostname": "web-1"}, values{"hostname": "web-2", "on_template_change": "keep"}
	first, second := create(t, server, replaced), create(t, server, kept)
	if got := first.Get(t, "template_current"); got != true {
		t.Errorf("template_current is %v", got)
	}

	rebuild(t, env, somebody, "b2")
	server = protocoltest.For(t, env, nil)
	settled(t, server, second, kept)
	protocoltest.NoErrors(t, server.Refresh(t, first))
	if got := first.Get(t, "template_current"); got != false {
		t.Errorf("after a new build template_current is %v", got)
	}
	apply(t, server, first, replaced, "replace")
	if got := first.Get(t, "template_current"); got != true {
		t.Errorf("after the replacement template_current is %v", got)
	}
}

func TestAnotherTemplateReplacesUnlessItIsKept(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	other := env.VMID(17) // never made: the plan is only looked at
	r := create(t, server, values{"hostname": "web-1"})
	for name, test := range map[string]struct {
		config values
		want   string
	}{
		"the same":          {values{"hostname": "web-1", "template_id": env.TemplateID}, "no-op"},
		"another, kept":     {values{"hostname": "web-1", "template_id": other, "on_template_change": "keep"}, "update"},
		"a file, not kept":  {values{"hostname": "web-1", "template_file_id": env.TemplateFile, "cores": 1}, "replace"},
		"unknown, not kept": {values{"hostname": "web-1", "template_id": protocoltest.Unknown}, "replace"},
		"unknown, but kept": {values{"hostname": "web-1", "template_id": protocoltest.Unknown, "on_template_change": "keep"}, "update"},
	} {
		plan := server.Plan(t, r, test.config)
		protocoltest.NoErrors(t, plan.Diags)
		if plan.Action() != test.want {
			t.Errorf("%s: planned %s because of %v, want %s", name, plan.Action(), plan.Replace, test.want)
		}
	}
	apply(t, server, r, values{"hostname": "web-1", "template_id": other, "on_template_change": "keep"}, "update")
}

func TestWriteOnlyKeysAreWrittenAndStandNowhere(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	config := values{"hostname": "web-1", "authorized_keys_wo": []string{key}, "authorized_keys_wo_version": 1}
	r := create(t, server, config)
	if got := r.Get(t, "authorized_keys_wo"); got != nil {
		t.Errorf("the state holds %v", got)
	}
	if got := authorizedKeys(t, server, r); !strings.Contains(got, key) {
		t.Errorf("the container's file holds %q", got)
	}
	other := strings.Replace(key, " test", " other", 1)
	// A new version writes; the same version doesn't even look.
	plan := server.Plan(t, r, with(config, values{"authorized_keys_wo": []string{other}}))
	if plan.Action() != "no-op" {
		t.Errorf("the same version planned %s", plan.Action())
	}
	apply(t, server, r, values{"hostname": "web-1", "authorized_keys_wo": []string{other}, "authorized_keys_wo_version": 2}, "update")
	if got := authorizedKeys(t, server, r); !strings.Contains(got, other) || strings.Contains(got, key) {
		t.Errorf("the container's file holds %q", got)
	}
}

// authorizedKeys is the file inside the container.
func authorizedKeys(t *testing.T, server *protocoltest.Server, r *protocoltest.Resource) string {
	t.Helper()
	return server.ReadData(t, "sandbox_file", values{"container_id": r.Text(t, "id"), "path": "/root/.ssh/authorized_keys"}, "content").(string)
}
