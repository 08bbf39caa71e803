package container_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

func TestAfterAnImportThereIsNothingToPlan(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	config := everything(env)
	made := create(t, server, config)
	vmid := made.VMID(t)
	for name, do := range map[string]func() (*protocoltest.Resource, string){
		"vmid": func() (*protocoltest.Resource, string) {
			r, diags := server.Import(t, resourceType, fmt.Sprint(vmid))
			return r, protocoltest.Text(diags)
		},
		"node/vmid": func() (*protocoltest.Resource, string) {
			r, diags := server.Import(t, resourceType, fmt.Sprintf("%s/%d", env.Node(), vmid))
			return r, protocoltest.Text(diags)
		},
		"identity": func() (*protocoltest.Resource, string) {
			r, diags := server.ImportByIdentity(t, resourceType, values{"vmid": vmid})
			return r, protocoltest.Text(diags)
		},
	} {
		r, said := do()
		if strings.Contains(said, "ERROR") || !r.Exists() {
			t.Fatalf("%s: %s", name, said)
		}
		plan := server.Plan(t, r, config)
		protocoltest.NoErrors(t, plan.Diags)
		if plan.Action() != "no-op" {
			t.Errorf("%s: planned %s (replace because of %v)\nstate %v\nplan  %v", name, plan.Action(), plan.Replace, r.Get(t, ""), plan.Get(t, ""))
		}
		if r.Get(t, "claim") != made.Get(t, "claim") || r.Identity == nil {
			t.Errorf("%s: claim %v, identity %v", name, r.Get(t, "claim"), r.Identity)
		}
	}
}

func TestAfterAnImportOnlyAnotherTemplateReplaces(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	made := create(t, server, values{"hostname": "web-1"})
	r, diags := server.Import(t, resourceType, fmt.Sprint(made.VMID(t)))
	protocoltest.NoErrors(t, diags)
	// What the import couldn't know differs from nothing.
	for _, config := range []values{
		{"hostname": "web-1", "full_clone": false, "template_id": env.TemplateID},
		{"hostname": "web-1", "full_clone": true},
		{"hostname": "web-1", "authorized_keys": []string{key}},
	} {
		if plan := server.Plan(t, r, config); plan.Action() == "replace" {
			t.Errorf("%v replaces because of %v", config, plan.Replace)
		}
	}
	plan := server.Plan(t, r, values{"hostname": "web-1", "template_file_id": env.TemplateFile, "cores": 1})
	protocoltest.NoErrors(t, plan.Diags)
	if plan.Action() != "replace" {
		t.Errorf("another source planned %s", plan.Action())
	}
}

func TestAnImportComparesThePostureWithTheTemplates(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "changes what only root of the node may")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	made := create(t, server, values{"hostname": "web-1"})
	if err := env.Lab.Control.ChangeGuest(t.Context(), control.Guest{VMID: made.VMID(t), Set: map[string]string{"dev0": "/dev/kvm"}}); err != nil {
		t.Fatal(err)
	}
	r, diags := server.Import(t, resourceType, fmt.Sprint(made.VMID(t)))
	protocoltest.NoErrors(t, diags)
	plan := server.Plan(t, r, values{"hostname": "web-1"})
	wants(t, plan.Diags, "WARNING", "dev0 was added")
	if plan.Action() != "replace" {
		t.Errorf("planned %s", plan.Action())
	}
}

func TestAnImportIsRefused(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	made := create(t, server, values{"hostname": "web-1"})
	for name, test := range map[string]struct {
		id   string
		want []string
	}{
		"of what is no id":              {"web-1", []string{"Invalid import id", "vmid", "node/vmid"}},
		"of what isn't there":           {fmt.Sprint(env.VMID(19)), []string{"Unable to import container", "exist"}},
		"of a container with no marker": {fmt.Sprint(env.TemplateID), []string{"Unable to import container"}},
	} {
		_, diags := server.Import(t, resourceType, test.id)
		if !protocoltest.HasErrors(diags) {
			t.Errorf("%s: it was imported", name)
		}
		wants(t, diags, append(test.want, "ERROR")...)
	}
	stranger := protocoltest.For(t, env, values{"owner": "stranger"})
	_, diags := stranger.Import(t, resourceType, fmt.Sprint(made.VMID(t)))
	wants(t, diags, "ERROR", "Unable to import container", "owner")
}

func TestAnImportAdoptsOnRequest(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	made := create(t, server, values{"hostname": "web-1"})
	outside(t, client(t, env), made, map[string]string{"description": "made by hand"})
	_, diags := server.Import(t, resourceType, fmt.Sprint(made.VMID(t)))
	wants(t, diags, "ERROR", "marker", "adopt")

	adopting := protocoltest.For(t, env, values{"adopt": true})
	r, diags := adopting.Import(t, resourceType, fmt.Sprint(made.VMID(t)))
	protocoltest.NoErrors(t, diags)
	config := values{"hostname": "web-1", "description": "made by hand", "template_id": env.TemplateID}
	plan := adopting.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	if plan.Action() == "replace" {
		t.Fatalf("it is replaced because of %v", plan.Replace)
	}
	protocoltest.NoErrors(t, adopting.Apply(t, t.Context(), plan))
	settled(t, adopting, r, config)
	protocoltest.NoErrors(t, adopting.Destroy(t, t.Context(), r))
	made.State = r.State // gone with it
}
