package server

import (
	"maps"
	"strings"
	"testing"
)

func TestConfigNormalisesWhatItStores(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(300)
	for _, c := range []struct {
		key, given string
		want       any
	}{
		{"tags", "Foo;bar;bar", "bar;foo"}, {"tags", "x,y z", "x;y;z"}, {"tags", "", " "},
		{"description", "one\ntwo", "one\ntwo\n"}, {"description", "", nil},
		{"cpulimit", "0.5", "0.5"}, {"nameserver", "10.0.0.1,10.0.0.2", "10.0.0.1 10.0.0.2"}, {"cores", "2", 2.0},
		{"arch", "i386", "i386"}, {"ostype", "alpine", "alpine"}, {"template", "1", 1.0},
		{"net0", "name=eth0,bridge=vmbr0,hwaddr=bc:24:11:aa:bb:cc,ip=10.10.10.7/24,gw=10.10.10.1,firewall=1,tag=5,rate=10",
			"name=eth0,bridge=vmbr0,firewall=1,gw=10.10.10.1,hwaddr=bc:24:11:aa:bb:cc,ip=10.10.10.7/24,rate=10,tag=5,type=veth"},
	} {
		lab.ok("PUT", ct+"/config", form{c.key: c.given})
		lab.option(ct, c.key, c.want)
	}
}

func TestConfigMakesANewAddressForAnInterfaceWithoutOne(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(301)
	seen := map[string]bool{}
	for range 3 {
		lab.ok("PUT", ct+"/config", form{"net0": "name=eth0,bridge=vmbr0"})
		seen[parseNet(lab.config(ct, nil)["net0"].(string))["hwaddr"]] = true
	}
	if len(seen) != 3 {
		t.Errorf("three writes made the addresses %v", seen)
	}
}

func TestConfigRefusals(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(302)
	digest := lab.digest(ct)
	lab.ok("PUT", ct+"/config", form{"memory": "256", "digest": digest})
	const stale = "detected modified configuration - file changed by other user? Try again."
	const lacks = "Permission check failed (/vms/302, VM.Config.Disk|VM.Config.CPU|VM.Config.Memory|VM.Config.Network|VM.Config.Options)"
	for _, c := range []struct {
		params form
		status int
		reason string
	}{
		{form{"memory": "128", "digest": digest}, 500, stale},
		{form{"memory": "128", "digest": "short"}, 500, stale},
		{nil, 500, "no options specified"},
		{form{"digest": digest}, 500, "no options specified"},
		{form{"delete": "rootfs"}, 500, "unable to delete required option 'rootfs'"},
		{form{"delete": "memory"}, 500, "unable to delete required option 'memory'"},
		{form{"unprivileged": "1", "memory": "150"}, 500, "unable to modify read-only option: 'unprivileged'"},
		{form{"mp0": "nosuch:1,mp=/x"}, 500, "storage 'nosuch' does not exist"},
		{form{"mp0": "/srv,mp=/srv"}, 403, "Permission check failed (mount point type bind is only allowed for root@pam)"},
		{form{"dev0": "/dev/fuse"}, 403, "Permission check failed (configuring device passthrough is only allowed for root@pam)"},
		{form{"hookscript": "local:snippets/x.pl"}, 403, "Permission check failed (changing the hookscript is only allowed for root@pam)"},
		{form{"features": "nesting=1,fuse=1"}, 403, "Permission check failed (changing feature flags (except nesting) is only allowed for root@pam)"},
	} {
		lab.refused("PUT", ct+"/config", c.params, c.status, c.reason)
	}
	lab.as("root").refused("PUT", ct+"/config", form{"features": "keyctl=1"}, 403,
		"Permission check failed (changing feature flags (except nesting) is only allowed for root@pam)")
	lab.as("viewer").refused("PUT", ct+"/config", form{"hostname": "x"}, 403, lacks)
	lab.badParameter("PUT", ct+"/config", form{"delete": "nosuch"}, "delete", "unknown option 'nosuch'")
	lab.badParameter("PUT", ct+"/config", form{"delete": "lxc"}, "delete", "unknown option 'lxc'")
	lab.badParameter("PUT", ct+"/config", form{"delete": "cores", "cores": "1"}, "delete",
		"you can't use '-cores' and -delete cores' at the same time")
	lab.ok("PUT", ct+"/config", form{"delete": "net5"})
	lab.option(ct, "memory", 256.0)
}

func TestRefusedChangeChangesNothing(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.running(303)
	digest := lab.digest(ct)
	lab.refused("PUT", ct+"/config", form{"unprivileged": "1", "memory": "150", "description": "x"}, 500, "unable to modify read-only option: 'unprivileged'")
	if got := lab.digest(ct); got != digest {
		t.Error("the digest changed")
	}
}

func TestLockSetByConfigCannotBeRemovedByAToken(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(304)
	lab.ok("PUT", ct+"/config", form{"lock": "backup"})
	const locked = "CT is locked (backup)"
	lab.refused("PUT", ct+"/config", form{"memory": "300"}, 500, locked)
	lab.as("root").refused("PUT", ct+"/config", form{"delete": "lock"}, 500, locked)
	lab.refused("DELETE", ct, form{"force": "1"}, 500, locked)
	lab.fails("POST", ct+"/status/start", nil, locked)
}

func TestBridgeThatIsNotThereIsStoredButRefused(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(305)
	lab.refused("PUT", ct+"/config", form{"net0": "name=eth0,bridge=vmbr9,ip=dhcp"}, 500, "bridge 'vmbr9' does not exist")
	lab.fails("POST", ct+"/status/start", nil, "bridge 'vmbr9' does not exist")
	lab.done("POST", "lxc", createForm("306", form{"net0": "name=eth0,bridge=vmbr9,ip=dhcp"}))
}

func TestRunningContainerTakesHotOptionsAndKeepsTheRestPending(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.running(307)
	lab.ok("PUT", ct+"/config", form{"memory": "200", "swap": "10", "hostname": "hot", "cores": "2", "cpulimit": "0.5",
		"features": "nesting=0", "nameserver": "10.0.0.1"})
	want := map[string]any{"memory": 200.0, "swap": 10.0, "hostname": "hot", "cores": 2.0, "cpulimit": "0.5", "features": "nesting=1", "nameserver": nil}
	for key, value := range want {
		if got := lab.config(ct, form{"current": "1"})[key]; got != value {
			t.Errorf("running: %s is %v, want %v", key, got, value)
		}
	}
	lab.option(ct, "features", "nesting=0")
	pending := lab.pending(ct)
	if e := pending["features"]; e["value"] != "nesting=1" || e["pending"] != "nesting=0" {
		t.Errorf("pending features: %v", e)
	}
	if e := pending["nameserver"]; e["pending"] != "10.0.0.1" || e["value"] != nil {
		t.Errorf("pending nameserver: %v", e)
	}
	lab.ok("PUT", ct+"/config", form{"delete": "features"})
	if e := lab.pending(ct)["features"]; e["delete"] != 1.0 || e["pending"] != "nesting=0" {
		t.Errorf("pending removal: %v", e)
	}
	lab.ok("PUT", ct+"/config", form{"revert": "features"})
	if e := lab.pending(ct)["features"]; e["pending"] != nil || e["delete"] != nil {
		t.Errorf("reverted: %v", e)
	}
	lab.done("POST", ct+"/status/reboot", nil)
	if e := lab.pending(ct)["nameserver"]; e["value"] != "10.0.0.1" || e["pending"] != nil {
		t.Errorf("after the reboot: %v", e)
	}
	if cfg := lab.engine.see(307).config; cfg.Hostname != "hot" || cfg.Limits.MemoryBytes != 200<<20 || cfg.Limits.CPU != 0.5 {
		t.Errorf("the guest has %+v", cfg)
	}
}

// pending is the list of pending values by option.
func (lab *ctLab) pending(ct string) map[string]map[string]any {
	lab.t.Helper()
	out := map[string]map[string]any{}
	for _, entry := range lab.ok("GET", ct+"/pending", nil).([]any) {
		e := entry.(map[string]any)
		out[e["key"].(string)] = e
	}
	return out
}

func TestRevertBringsTheDigestBack(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.running(308)
	before := lab.digest(ct)
	lab.ok("PUT", ct+"/config", form{"features": "nesting=0"})
	lab.ok("PUT", ct+"/config", form{"revert": "features"})
	if after := lab.digest(ct); after != before {
		t.Errorf("digest %s, before %s", after, before)
	}
}

func TestVolumesOfMountPoints(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.running(309)
	const volid = "local-btrfs:309/vm-309-disk-1.raw"
	lab.ok("PUT", ct+"/config", form{"mp0": "local-btrfs:1,mp=/data"})
	lab.option(ct, "mp0", volid+",mp=/data,size=1G")
	if at := lab.engine.see(309).mounts[volid]; at.Path != "/data" {
		t.Errorf("mounted at %v", at)
	}
	lab.ok("PUT", ct+"/config", form{"delete": "mp0"})
	lab.option(ct, "mp0", nil)
	if lab.config(ct, form{"current": "1"})["mp0"] == nil || lab.pending(ct)["mp0"]["delete"] != 1.0 {
		t.Error("a running container lost its mount point")
	}
	lab.done("POST", ct+"/status/stop", nil)
	lab.option(ct, "unused0", volid)
	if mounts := lab.engine.see(309).mounts; len(mounts) != 0 {
		t.Errorf("still mounted: %v", mounts)
	}
	lab.ok("PUT", ct+"/config", form{"mp3": volid + ",mp=/again"})
	lab.option(ct, "unused0", nil)
	lab.option(ct, "mp3", volid+",mp=/again,size=1G")
	lab.ok("PUT", ct+"/config", form{"delete": "mp3"})
	lab.ok("PUT", ct+"/config", form{"delete": "unused0"})
	lab.s.lock()
	defer lab.s.unlock()
	if lab.s.volumeOn("pve1", volid) != nil || lab.engine.volumes[volid] != nil {
		t.Error("the unused volume is still there")
	}
}

func TestProtectionGuardsVolumesAndTheContainer(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.running(310)
	lab.ok("PUT", ct+"/config", form{"protection": "1"})
	lab.refused("PUT", ct+"/config", form{"mp0": "local-btrfs:1,mp=/later"}, 500, "can't update CT 310 drive 'mp0' - protection mode enabled")
	lab.refused("DELETE", ct, form{"force": "1"}, 500, "can't remove CT 310 - protection mode enabled")
	if !lab.engine.see(310).running {
		t.Error("it was stopped first")
	}
}

func TestRawLinesAreShownAndKept(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(311)
	lab.s.lock()
	g := lab.s.st.Guests[311]
	g.Raw = [][2]string{{"lxc.cgroup2.pids.max", "4096"}, {"lxc.cap.drop", "sys_rawio"}}
	maps.Copy(g.Config, map[string]string{"mp0": "/srv,mp=/host,ro=1", "dev0": "/dev/fuse", "hookscript": "local:snippets/h.sh", "features": "nesting=1,keyctl=1"})
	lab.s.unlock()
	lab.refused("PUT", ct+"/config", form{"delete": "dev0"}, 403, "Permission check failed (configuring device passthrough is only allowed for root@pam)")
	lab.refused("PUT", ct+"/config", form{"features": "nesting=1"}, 403, "Permission check failed (changing feature flags (except nesting) is only allowed for root@pam)")
	lab.ok("PUT", ct+"/config", form{"memory": "160", "delete": "mp0"})
	raw, ok := lab.as("viewer").config(ct, nil)["lxc"].([]any)
	if !ok || len(raw) != 2 {
		t.Errorf("raw lines: %v", raw)
	}
	for key := range lab.config(ct, nil) {
		if strings.HasPrefix(key, "mp") || strings.HasPrefix(key, "unused") {
			t.Errorf("%s is left of a bind mount", key)
		}
	}
}
