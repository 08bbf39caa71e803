package container_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

// everything sets every attribute whose drift the server can show.
func everything(env *acctest.Environment) values {
	return values{
		"hostname": "web-1", "cores": 1, "cpu_limit": 1, "cpu_units": 100, "memory": 128, "swap": 32, "nesting": true,
		"tags": []string{"blue"}, "description": "note", "protection": false, "on_boot": false,
		"startup": values{"order": 1}, "dns": values{"servers": []string{"10.0.0.1"}, "domain": "example.org"},
		"network": values{"bridge": env.Bridge, "ipv4": "auto", "ipv6": "none"},
	}
}

func TestDriftOfEveryAttributeIsSeenAndRepaired(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	config := everything(env)
	r := create(t, server, config)
	somebody := client(t, env)
	mac := r.Text(t, "network.mac_address")
	gateway := ""
	if env.Addresses.Gateway.IsValid() {
		gateway = ",gw=" + env.Addresses.Gateway.String()
	}
	net := func(more string) string {
		return fmt.Sprintf("name=eth0,bridge=%s,hwaddr=%s,ip=%s/%d%s%s,type=veth", env.Bridge, mac, r.Text(t, "ipv4_address"), env.Addresses.CIDR.Bits(), gateway, more)
	}
	for _, drift := range []struct {
		path   string
		set    map[string]string
		remove []string
		seen   any
	}{
		{"hostname", map[string]string{"hostname": "other"}, nil, "other"},
		{"cores", map[string]string{"cores": "2"}, nil, 2.0},
		{"cores", nil, []string{"cores"}, nil},
		{"cpu_limit", map[string]string{"cpulimit": "0.5"}, nil, 0.5},
		{"cpu_units", map[string]string{"cpuunits": "300"}, nil, 300.0},
		{"memory", map[string]string{"memory": "512"}, nil, 512.0},
		{"swap", map[string]string{"swap": "0"}, nil, 0.0},
		{"tags", map[string]string{"tags": "red"}, nil, []any{"red"}},
		{"protection", map[string]string{"protection": "1"}, nil, true},
		{"on_boot", map[string]string{"onboot": "1"}, nil, true},
		{"startup.order", map[string]string{"startup": "order=9,up=5"}, nil, 9.0},
		{"startup", nil, []string{"startup"}, map[string]any{"order": nil, "up_delay": nil, "down_delay": nil}},
		{"dns.servers", map[string]string{"nameserver": "10.9.9.9"}, nil, []any{"10.9.9.9"}},
		{"dns.domain", map[string]string{"searchdomain": "elsewhere.org"}, nil, "elsewhere.org"},
		{"network.rate_limit", map[string]string{"net0": net(",rate=7")}, nil, 7.0},
		{"network.mtu", map[string]string{"net0": net(",mtu=1400")}, nil, 1400.0},
		{"network.ipv6", map[string]string{"net0": net(",ip6=fd00::9/64")}, nil, "fd00::9/64"},
		{"network.ipv4", map[string]string{"net0": fmt.Sprintf("name=eth0,bridge=%s,hwaddr=%s,ip=dhcp,type=veth", env.Bridge, mac)}, nil, "dhcp"},
	} {
		t.Run(drift.path, func(t *testing.T) {
			outside(t, somebody, r, drift.set, drift.remove...)
			protocoltest.NoErrors(t, server.Refresh(t, r))
			if got := r.Get(t, drift.path); fmt.Sprint(got) != fmt.Sprint(drift.seen) {
				t.Errorf("after the refresh %s is %v, want %v", drift.path, got, drift.seen)
			}
			apply(t, server, r, config, "update")
		})
	}
	t.Run("description", func(t *testing.T) {
		cfg, err := somebody.LXCConfig(t.Context(), r.Text(t, "node_name"), r.VMID(t))
		if err != nil {
			t.Fatal(err)
		}
		outside(t, somebody, r, map[string]string{"description": strings.Replace(cfg.Description(), "note", "defaced", 1)})
		protocoltest.NoErrors(t, server.Refresh(t, r))
		if got := r.Get(t, "description"); got != "defaced" {
			t.Errorf("after the refresh it is %v", got)
		}
		apply(t, server, r, config, "update")
	})
	t.Run("status", func(t *testing.T) {
		upid, err := somebody.StopLXC(t.Context(), r.Text(t, "node_name"), r.VMID(t))
		wait(t, somebody, upid, err)
		server := protocoltest.For(t, env, nil) // lists are shared for the time of a command
		protocoltest.NoErrors(t, server.Refresh(t, r))
		if got := r.Get(t, "started"); got != false {
			t.Errorf("after the refresh started is %v", got)
		}
		apply(t, server, r, config, "update")
		if got := r.Get(t, "status"); got != "running" {
			t.Errorf("after the apply status is %v", got)
		}
	})
}

func TestDriftOfPostureThatTheAPICanRepairIsRepairedInPlace(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	config := values{"hostname": "web-1"}
	r := create(t, server, config)
	somebody := client(t, env)
	outside(t, somebody, r, map[string]string{"net1": "name=eth1,bridge=" + env.Bridge + ",ip=dhcp,type=veth"})
	protocoltest.NoErrors(t, server.Refresh(t, r))
	plan := server.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	wants(t, plan.Diags, "WARNING", "isolation", "net1 was added", "repaired in place")
	if plan.Action() != "update" {
		t.Fatalf("planned %s", plan.Action())
	}
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), plan))
	settled(t, server, r, config)
	if got := r.Get(t, "posture.extra_nics"); len(got.([]any)) != 0 {
		t.Errorf("extra_nics is %v", got)
	}
}

func TestDriftOfPostureThatTheAPICannotRepairReplaces(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "changes what only root of the node may")
	for name, change := range map[string]control.Guest{
		"a device":       {Set: map[string]string{"dev0": "/dev/kvm"}},
		"a feature":      {Set: map[string]string{"features": "nesting=1,keyctl=1"}},
		"a hookscript":   {Set: map[string]string{"hookscript": "local:snippets/x.sh"}},
		"privileges":     {Set: map[string]string{"unprivileged": ""}},
		"a raw line":     {Raw: [][2]string{{"lxc.apparmor.profile", "unconfined"}}},
		"root's options": {Set: map[string]string{"rootfs": ""}}, // filled in below
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := acctest.New(t)
			server := protocoltest.For(t, env, nil)
			config := values{"hostname": "web-1", "vmid": env.VMID(3)}
			r := create(t, server, config)
			claim := r.Text(t, "claim")
			if _, ok := change.Set["rootfs"]; ok {
				cfg, err := client(t, env).LXCConfig(t.Context(), r.Text(t, "node_name"), r.VMID(t))
				if err != nil {
					t.Fatal(err)
				}
				change.Set = map[string]string{"rootfs": cfg.Text("rootfs") + ",acl=1"}
			}
			change.VMID = r.VMID(t)
			if err := env.Lab.Control.ChangeGuest(t.Context(), change); err != nil {
				t.Fatal(err)
			}
			protocoltest.NoErrors(t, server.Refresh(t, r))
			plan := server.Plan(t, r, config)
			protocoltest.NoErrors(t, plan.Diags)
			wants(t, plan.Diags, "WARNING", "isolation", "only a replacement repairs it")
			if plan.Action() != "replace" {
				t.Fatalf("planned %s", plan.Action())
			}
			// The id is configured: the replacement takes it over from the container that it replaces.
			protocoltest.NoErrors(t, server.Apply(t, t.Context(), plan))
			settled(t, server, r, config)
			if r.Text(t, "claim") == claim {
				t.Error("it is still the same container")
			}
		})
	}
}

func TestDriftThatNobodyRepairsStaysPlanned(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "changes what only root of the node may")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	config := values{"hostname": "web-1"}
	r := create(t, server, config)
	if err := env.Lab.Control.ChangeGuest(t.Context(), control.Guest{VMID: r.VMID(t), Set: map[string]string{"dev0": "/dev/kvm"}}); err != nil {
		t.Fatal(err)
	}
	// The baseline is of the creation, not of the last refresh.
	for range 3 {
		protocoltest.NoErrors(t, server.Refresh(t, r))
		if plan := server.Plan(t, r, config); plan.Action() != "replace" {
			t.Fatalf("planned %s", plan.Action())
		}
	}
}

func TestAContainerThatMovedIsFoundAndLeftThere(t *testing.T) {
	t.Parallel()
	env := acctest.New(t, acctest.Nodes(2))
	acctest.NeedsNodes(t, env, 2)
	server := protocoltest.For(t, env, nil)
	config := values{"hostname": "web-1"}
	r := create(t, server, config)
	somebody := client(t, env)
	upid, err := somebody.MigrateLXC(t.Context(), env.Nodes[0], r.VMID(t), pve.MigrateOptions{Target: env.Nodes[1], Restart: true})
	wait(t, somebody, upid, err)
	settled(t, server, r, config)
	if got := r.Get(t, "node_name"); got != env.Nodes[1] {
		t.Errorf("node_name is %v", got)
	}
	// A configured node migrates it back, in place.
	claim := r.Text(t, "claim")
	apply(t, server, r, values{"hostname": "web-1", "node_name": env.Nodes[0]}, "update")
	if r.Get(t, "node_name") != env.Nodes[0] || r.Text(t, "claim") != claim {
		t.Errorf("it is on %v, claim %s (was %s)", r.Get(t, "node_name"), r.Text(t, "claim"), claim)
	}
}

func TestSettingsThatWaitForARestart(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := create(t, server, values{"hostname": "web-1", "nesting": true})
	diags := apply(t, server, r, values{"hostname": "web-1", "nesting": false}, "update")
	wants(t, diags, "WARNING", "restart_when_needed")
	if got := r.Get(t, "posture.pending"); fmt.Sprint(got) != "[features]" {
		t.Fatalf("posture.pending is %v", got)
	}
	apply(t, server, r, values{"hostname": "web-1", "nesting": false, "restart_when_needed": true}, "update")
	if got := r.Get(t, "posture.pending"); fmt.Sprint(got) != "[]" {
		t.Errorf("after the restart posture.pending is %v", got)
	}
}
