package container_test

import (
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

func TestAVanishedContainerIsMadeAnew(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	config := values{"hostname": "web-1"}
	r := create(t, server, config)
	somebody := client(t, env)
	force := pve.DeleteOptions{Force: true, Purge: true}
	upid, err := somebody.DeleteLXC(t.Context(), r.Text(t, "node_name"), r.VMID(t), force)
	wait(t, somebody, upid, err)
	r.Identity = nil // a state that was written before there were identities
	protocoltest.NoErrors(t, server.Refresh(t, r))
	if r.Exists() {
		t.Fatal("it is still tracked")
	}
	if r.Identity == nil {
		t.Error("the refresh gave no identity, which Terraform before 1.12 refuses")
	}
	apply(t, server, r, config, "create")
}

func TestDestroyingAVanishedContainerSucceeds(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := create(t, server, values{"hostname": "web-1"})
	somebody := client(t, env)
	upid, err := somebody.DeleteLXC(t.Context(), r.Text(t, "node_name"), r.VMID(t), pve.DeleteOptions{Force: true, Purge: true})
	wait(t, somebody, upid, err)
	protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
	if r.Exists() {
		t.Error("it is still tracked")
	}
}

func TestEveryAnswerCarriesTheIdentity(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	config := values{"hostname": "web-1"}
	r := create(t, server, config)
	for name, act := range map[string]func(){
		"refresh": func() { protocoltest.NoErrors(t, server.Refresh(t, r)) },
		"update":  func() { apply(t, server, r, values{"hostname": "web-1", "memory": 256}, "update") },
	} {
		r.Identity = nil
		act()
		if r.Identity == nil {
			t.Errorf("no identity after the %s", name)
		}
	}
}

func TestFailuresNeverTakeAContainerOutOfTheState(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "answers wrongly on request")
	empty := `{"data":[]}`
	for name, fault := range map[string]control.Fault{
		"a configuration that is forbidden": {Method: "GET", Pattern: `/lxc/\d+/config`, Kind: control.Status, Status: 403, Reason: "Permission check failed (/vms/100000, VM.Audit)", Count: -1},
		"a node that is away":               {Method: "GET", Pattern: `/lxc/\d+/config`, Kind: control.Status, Status: 595, Reason: "No route to host", Count: -1},
		"an error of another kind":          {Method: "GET", Pattern: `/lxc/\d+/config`, Kind: control.Status, Status: 500, Reason: "something else", Count: -1},
		"a list that fails":                 {Method: "GET", Pattern: `/cluster/resources`, Kind: control.Status, Status: 500, Reason: "broken", Count: -1},
		"a list that is empty":              {Method: "GET", Pattern: `/cluster/resources`, Kind: control.Status, Status: 200, Body: &empty, Count: -1},
		"node lists that are empty":         {Method: "GET", Pattern: `/nodes/[^/]+/lxc$`, Kind: control.Status, Status: 200, Body: &empty, Count: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := acctest.New(t)
			server := protocoltest.For(t, env, nil)
			r := create(t, server, values{"hostname": "web-1"})
			if _, err := env.Lab.Control.Inject(t.Context(), fault); err != nil {
				t.Fatal(err)
			}
			server = protocoltest.ForWith(t, env, nil, quick)
			diags := server.Refresh(t, r)
			if !r.Exists() {
				t.Errorf("it is no longer tracked; the refresh said: %s", protocoltest.Text(diags))
			}
			if err := env.Lab.Control.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAStrangerAtOurIDIsNeitherReadNorDestroyed(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := create(t, server, values{"hostname": "web-1"})
	somebody := client(t, env)
	cfg, err := somebody.LXCConfig(t.Context(), r.Text(t, "node_name"), r.VMID(t))
	if err != nil {
		t.Fatal(err)
	}
	outside(t, somebody, r, map[string]string{"description": "a stranger's"})
	wants(t, server.Refresh(t, r), "ERROR", "Unable to read container", "marker")
	wants(t, server.Destroy(t, t.Context(), r), "ERROR", "Unable to destroy container", "marker")
	if _, err := somebody.LXCConfig(t.Context(), r.Text(t, "node_name"), r.VMID(t)); err != nil {
		t.Errorf("it was touched: %v", err)
	}
	outside(t, somebody, r, map[string]string{"description": cfg.Description()})
}

func TestAProtectedContainerIsNotEvenStopped(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := create(t, server, values{"hostname": "web-1", "protection": true})
	wants(t, server.Destroy(t, t.Context(), r), "ERROR", "Unable to destroy container", "protect")
	status, err := client(t, env).LXCStatus(t.Context(), r.Text(t, "node_name"), r.VMID(t))
	if err != nil || !status.Running() {
		t.Errorf("it was stopped: %v %v", status, err)
	}
	apply(t, server, r, values{"hostname": "web-1"}, "update")
}
