package server

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLinkedCloneCopiesEverythingButTheAddress(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("PUT", "lxc/9000/config", form{"description": "tmpl", "tags": "x", "protection": "1", "onboot": "1", "startup": "order=2"})
	lab.s.lock()
	g := lab.s.st.Guests[9000]
	g.Raw = [][2]string{{"lxc.cap.drop", "sys_rawio"}}
	g.Config["features"], g.Config["hookscript"] = "nesting=1,keyctl=1", "local:snippets/h.sh"
	g.Firewall = &guestFirewall{Options: map[string]string{"enable": "1"}}
	lab.s.unlock()
	lab.engine.write(9000, "golden")

	log := lab.done("POST", "lxc/9000/clone", form{"newid": "220", "pool": "labpool"})
	want := []string{"creating a clone of container 9000 with ID 220",
		"create linked clone of mount point rootfs (local-btrfs:9000/base-9000-disk-0.raw)", "TASK OK"}
	if !slices.Equal(log, want) {
		t.Errorf("log %q", log)
	}
	for key, want := range map[string]any{
		"hostname": "mini-tmpl", "description": "tmpl\n", "tags": "x", "protection": 1.0, "onboot": 1.0, "startup": "order=2",
		"features": "nesting=1,keyctl=1", "hookscript": "local:snippets/h.sh", "template": nil, "lock": nil,
		"rootfs": "local-btrfs:220/vm-220-disk-0.raw,size=1G",
	} {
		lab.option("lxc/220", key, want)
	}
	if raw := lab.config("lxc/220", nil)["lxc"]; raw == nil {
		t.Error("raw lines are missing")
	}
	if net := lab.config("lxc/220", nil)["net0"].(string); strings.Contains(net, testMAC) || !strings.Contains(net, "hwaddr=BC:24:11:") {
		t.Errorf("net0 is %s", net)
	}
	lab.s.lock()
	defer lab.s.unlock()
	if fw := lab.s.st.Guests[220].Firewall; fw == nil || fw.Options["enable"] != "1" || fw == lab.s.st.Guests[9000].Firewall {
		t.Error("the firewall file was not copied")
	}
	if !lab.s.st.Pools["labpool"].Guests[220] || lab.engine.read(220) != "golden" {
		t.Error("not in the pool, or not the template's content")
	}
}

func TestCloneLocksItsSourceAndShowsTheMarkerMeanwhile(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.CloneLinked = 2 * time.Second }))
	upid := lab.begin("POST", "lxc/9000/clone", form{"newid": "221", "description": "marker", "hostname": "h"})
	lab.refused("POST", "lxc/9000/clone", form{"newid": "222"}, 500, "CT is locked (disk)")
	lab.refused("POST", "lxc/9000/clone", form{"newid": "221"}, 500, "CT 221 already exists on node 'pve1'")
	lab.refused("PUT", "lxc/221/config", form{"memory": "256"}, 500, "CT is locked (create)")
	lab.refused("DELETE", "lxc/221", form{"force": "1"}, 500, "CT is locked (create)")
	lab.option("lxc/9000", "lock", "disk")
	lab.option("lxc/221", "lock", "create")
	lab.option("lxc/221", "description", "marker\n")
	lab.fails("POST", "lxc/221/status/start", nil, "CT is locked (create)")
	lab.wait(upid)
	lab.option("lxc/9000", "lock", nil)
}

func TestParallelClonesOfOneTemplateHaveOneWinner(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.CloneLinked = time.Second }))
	won := 0
	for _, r := range parallel(4, func(i int) reply {
		return lab.call("POST", "lxc/9000/clone", form{"newid": string(rune('1'+i)) + "00"})
	}) {
		if r.status == 200 {
			won++
		} else if r.reason != "CT is locked (disk)" {
			t.Errorf("refused with %q", r.reason)
		}
	}
	if won != 1 {
		t.Errorf("%d clones were accepted", won)
	}
}

func TestCloneRefusals(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, func(opt *Options) { opt.Nodes = 2 })
	running := lab.running(230)
	lab.clone(231)
	lab.s.lock()
	lab.s.st.Guests[231].Config["mp0"] = "/srv,mp=/host"
	lab.s.unlock()
	for _, c := range []struct {
		source string
		params form
		status int
		reason string
	}{
		{"lxc/9000", form{"newid": "230"}, 500, "CT 230 already exists on node 'pve1'"},
		{"lxc/9000", form{"newid": "232", "storage": "local-btrfs"}, 500, "parameter 'storage' not allowed for linked clones"},
		{"lxc/9999", form{"newid": "232"}, 500, "Configuration file 'nodes/pve1/lxc/9999.conf' does not exist"},
		{"lxc/9000", form{"newid": "232", "full": "1", "storage": "nosuch"}, 500, "storage 'nosuch' does not exist"},
		{"lxc/9000", form{"newid": "232", "target": "nosuch"}, 500, "no such cluster node 'nosuch'"},
		{"lxc/9000", form{"newid": "232", "target": "pve2"}, 500, "can't clone CT to node 'pve2' (CT uses local storage)"},
		{"lxc/9000", form{"newid": "232", "snapname": "nosuch"}, 500, "snapshot 'nosuch' does not exist"},
		{"lxc/9000", form{"newid": "232", "pool": "nosuch"}, 403, "Permission check failed (pool 'nosuch' does not exist)"},
		{running, form{"newid": "232", "full": "1"}, 500, "Full clone of a running container is only possible from a snapshot"},
		{"lxc/231", form{"newid": "232", "full": "1"}, 500, "unable to clone mountpoint 'mp0' (type bind)"},
	} {
		lab.refused("POST", c.source+"/clone", c.params, c.status, c.reason)
	}
	lab.option("lxc/9000", "lock", nil)
	lab.as("viewer").refused("POST", "lxc/9000/clone", form{"newid": "232"}, 403, "Permission check failed (/vms/9000, VM.Clone)")
}

func TestCloneOfAContainerIsFullUnlessItIsATemplate(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(240)
	lab.ok("PUT", ct+"/config", form{"mp0": "local-btrfs:1,mp=/ws,backup=1"})
	log := lab.done("POST", ct+"/clone", form{"newid": "241"})
	if !slices.Contains(log, "create full clone of mountpoint rootfs (local-btrfs:240/vm-240-disk-0.raw)") {
		t.Errorf("log:\n%s", strings.Join(log, "\n"))
	}
	lab.option("lxc/241", "mp0", "local-btrfs:241/vm-241-disk-0.raw,mp=/ws,backup=1,size=1G")
	lab.option("lxc/241", "rootfs", "local-btrfs:241/vm-241-disk-1.raw,size=1G")
	lab.option("lxc/241", "hostname", "ct240")
}

func TestRunningContainerIsClonedFromASnapshot(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.running(242)
	lab.engine.write(242, "then")
	lab.done("POST", ct+"/snapshot", form{"snapname": "snap1"})
	lab.engine.write(242, "now")
	lab.done("POST", ct+"/clone", form{"newid": "243", "full": "1", "snapname": "snap1"})
	if got := lab.engine.read(243); got != "then" {
		t.Errorf("the clone has %q", got)
	}
	lab.option("lxc/243", "parent", nil)
}

func TestStoppedCloneTaskCleansUp(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.CloneFull = 20 * time.Second }))
	ct := lab.clone(250)
	upid := lab.begin("POST", ct+"/clone", form{"newid": "251", "full": "1", "pool": "labpool"})
	lab.s.lock()
	task := lab.s.findTask(upid)
	lab.s.waitUntil(t.Context(), 10*time.Second, func() bool { return len(task.Lines) >= 2 })
	task.cancel()
	lab.s.unlock()
	if exit, _ := lab.wait(upid); !strings.HasPrefix(exit, "clone failed: ") || !strings.HasSuffix(exit, "interrupted by signal") {
		t.Errorf("task ended with %q", exit)
	}
	lab.refused("GET", "lxc/251/config", nil, 500, "Configuration file 'nodes/pve1/lxc/251.conf' does not exist")
	lab.option(ct, "lock", nil)
	lab.s.lock()
	defer lab.s.unlock()
	if lab.s.volumeOn("pve1", "local-btrfs:251/vm-251-disk-0.raw") != nil || lab.s.st.Pools["labpool"].Guests[251] {
		t.Error("a volume or a pool's member is left")
	}
}

func TestTemplateConversionWorksInTheBackground(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.Template, d.LockTimeout = 200*time.Millisecond, 10*time.Second }))
	ct := lab.clone(260)
	if data := lab.ok("POST", ct+"/template", nil); data != nil {
		t.Errorf("answered %v", data)
	}
	lab.option(ct, "template", nil)
	lab.done("POST", ct+"/clone", form{"newid": "261"}) // waits for the worker's lock
	lab.option(ct, "template", 1.0)
	lab.option(ct, "rootfs", "local-btrfs:260/base-260-disk-0.raw,size=1G")
	lab.refused("POST", ct+"/template", nil, 500, "you can't convert a template to a template")
	lab.fails("POST", ct+"/status/start", nil, "you can't start a CT if it's a template")
	lab.fails("POST", ct+"/snapshot", form{"snapname": "snap"}, "you can't take a snapshot if it's a template")
	running := lab.running(262)
	lab.refused("POST", running+"/template", nil, 500, "you can't convert a CT to template if the CT is running")
	lab.done("POST", running+"/snapshot", form{"snapname": "snap"})
	lab.refused("POST", running+"/template", nil, 500, "unable to create template, because CT contains snapshots")
}

func TestLinkedClonesKeepTheirBaseOnlyOnStorageThatNeedsIt(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.s.lock()
	lab.s.st.Storages["tank"] = &storage{ID: "tank", Type: "zfspool", Content: []string{"rootdir"}, Total: 1 << 40}
	lab.s.unlock()
	lab.done("POST", "lxc", createForm("270", form{"rootfs": "tank:1"}))
	lab.ok("POST", "lxc/270/template", nil)
	lab.done("POST", "lxc/270/clone", form{"newid": "271"})
	lab.fails("DELETE", "lxc/270", nil, "base volume 'basevol-270-disk-0' is still in use by linked clones")
	lab.done("DELETE", "lxc/271", nil)
	lab.done("DELETE", "lxc/270", nil)

	lab.clone(272)
	lab.done("DELETE", "lxc/9000", nil) // btrfs
	lab.done("POST", "lxc/272/status/start", nil)

	lab.done("POST", "lxc", createForm("273", form{"rootfs": "local-dir2:1"}))
	lab.ok("POST", "lxc/273/template", nil)
	lab.refused("POST", "lxc/273/clone", form{"newid": "274"}, 500, "Linked clone feature for 'local-dir2:273/base-273-disk-0.raw' is not available")
}

func TestCloneMapsAreIndependent(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	before := lab.config("lxc/9000", nil)
	lab.ok("PUT", lab.clone(280)+"/config", form{"memory": "512", "tags": "changed"})
	if after := lab.config("lxc/9000", nil); !maps.Equal(before, after) {
		t.Errorf("the template changed: %v", after)
	}
}
