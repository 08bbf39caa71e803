package server

import (
	"testing"
	"time"
)

func TestSnapshotsAreListedWithTheirParents(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(500)
	lab.done("POST", ct+"/snapshot", form{"snapname": "one", "description": "first\nsnap"})
	lab.done("POST", ct+"/snapshot", form{"snapname": "two"})
	byName := map[string]map[string]any{}
	for _, e := range lab.ok("GET", ct+"/snapshot", nil).([]any) {
		entry := e.(map[string]any)
		byName[entry["name"].(string)] = entry
	}
	if one := byName["one"]; one["description"] != "first\nsnap\n" || one["parent"] != nil || one["snaptime"] == nil {
		t.Errorf("one: %v", one)
	}
	if two := byName["two"]; two["description"] != "" || two["parent"] != "one" {
		t.Errorf("two: %v", two)
	}
	if now := byName["current"]; now["description"] != "You are here!" || now["parent"] != "two" || now["running"] != 0.0 {
		t.Errorf("current: %v", now)
	}
	lab.option(ct, "parent", "two")
	lab.ok("PUT", ct+"/snapshot/one/config", form{"description": "changed"})
	if config := lab.ok("GET", ct+"/snapshot/one/config", nil).(map[string]any); config["description"] != "changed\n" || config["digest"] != nil {
		t.Errorf("configuration of one: %v", config)
	}
	lab.done("DELETE", ct+"/snapshot/one", nil)
	if config := lab.config(ct, form{"snapshot": "two"}); config["parent"] != nil {
		t.Errorf("two still has a parent: %v", config["parent"])
	}
	lab.done("DELETE", ct+"/snapshot/two", nil)
	lab.option(ct, "parent", nil)
}

func TestSnapshotRefusals(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(501)
	for _, name := range []string{"bad.dot", "1bad", "a", "sp ace"} {
		lab.badParameter("POST", ct+"/snapshot", form{"snapname": name}, "snapname", "invalid format - invalid configuration ID '"+name+"'\n")
	}
	for _, name := range []string{"current", "vzdump"} {
		lab.refused("POST", ct+"/snapshot", form{"snapname": name}, 500, "unable to use snapshot name '"+name+"' (reserved name)")
	}
	lab.refused("GET", ct+"/config", form{"snapshot": "nosuch"}, 500, "snapshot 'nosuch' does not exist")
	lab.refused("GET", ct+"/snapshot/nosuch/config", nil, 500, "snapshot 'nosuch' does not exist")
	lab.refused("PUT", ct+"/snapshot/nosuch/config", form{"description": "x"}, 500, "snapshot 'nosuch' does not exist")
	lab.ok("GET", ct+"/snapshot/nosuch", nil)
	lab.done("POST", ct+"/snapshot", form{"snapname": "one"})
	lab.fails("POST", ct+"/snapshot", form{"snapname": "one"}, "snapshot name 'one' already used")
	lab.fails("POST", ct+"/snapshot/nosuch/rollback", nil, "snapshot 'nosuch' does not exist")
	lab.fails("DELETE", ct+"/snapshot/nosuch", nil, "snapshot 'nosuch' does not exist")
	lab.done("POST", "lxc", createForm("502", form{"rootfs": "local-dir2:1"}))
	lab.fails("POST", "lxc/502/snapshot", form{"snapname": "one"}, "snapshot feature is not available")
	for feature, want := range map[string]float64{"snapshot": 0, "copy": 1, "clone": 0} {
		if got := lab.ok("GET", "lxc/502/feature", form{"feature": feature}).(map[string]any)["hasFeature"]; got != want {
			t.Errorf("feature %s: %v", feature, got)
		}
	}
}

func TestRollbackRestoresWhatItDoes(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.done("POST", "lxc/9000/clone", form{"newid": "503", "pool": "labpool"})
	const ct = "lxc/503"
	lab.ok("PUT", ct+"/config", form{"description": "marker one", "tags": "one", "memory": "128", "hostname": "old", "net0": "name=eth0,bridge=vmbr0,firewall=1,ip=10.10.10.61/24"})
	net := lab.config(ct, nil)["net0"]
	lab.engine.write(503, "then")
	lab.done("POST", ct+"/snapshot", form{"snapname": "clean"})
	lab.ok("PUT", ct+"/config", form{"description": "marker two", "tags": "two", "memory": "256", "cores": "2", "hostname": "new",
		"net0": "name=eth0,bridge=vmbr1,ip=10.10.10.62/24", "mp0": "local-btrfs:1,mp=/later"})
	lab.ok("PUT", ct+"/config", form{"protection": "1"})
	lab.s.lock()
	lab.s.st.Guests[503].Firewall = &guestFirewall{Options: map[string]string{"enable": "1"}}
	lab.s.unlock()
	lab.engine.write(503, "now")

	lab.done("POST", ct+"/snapshot/clean/rollback", nil) // protection doesn't stop it
	for key, want := range map[string]any{"description": "marker two\n", "tags": "one", "memory": 128.0, "cores": 1.0, "hostname": "old",
		"net0": net, "protection": nil, "parent": "clean", "mp0": nil, "unused0": "local-btrfs:503/vm-503-disk-1.raw", "lock": nil} {
		lab.option(ct, key, want)
	}
	lab.s.lock()
	defer lab.s.unlock()
	if lab.engine.read(503) != "then" || lab.s.st.Guests[503].Firewall == nil || !lab.s.st.Pools["labpool"].Guests[503] {
		t.Error("the tree, the firewall file or the pool is not as it should be")
	}
}

func TestRollbackStopsARunningContainerAndItsNextMountWaits(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.DirtyMount, d.LockTimeout = 300*time.Millisecond, 20*time.Millisecond }))
	ct := lab.running(504)
	lab.done("POST", ct+"/snapshot", form{"snapname": "live"})
	lab.done("POST", ct+"/snapshot/live/rollback", nil)
	if st := lab.ok("GET", ct+"/status/current", nil).(map[string]any); st["status"] != "stopped" {
		t.Errorf("after the rollback: %v", st["status"])
	}
	begun := time.Now()
	lab.done("POST", ct+"/status/start", nil)
	if took := time.Since(begun); took < 300*time.Millisecond {
		t.Errorf("the first mount took %s", took)
	}
	lab.done("POST", ct+"/status/stop", nil)
	lab.s.lock()
	dirty := lab.s.st.Guests[504].Dirty
	lab.s.unlock()
	if dirty {
		t.Error("the second mount would wait too")
	}
}

func TestRollbackWithStartKeepsTheMigrationLock(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.DirtyMount, d.LockTimeout = 20*time.Second, 20*time.Millisecond }))
	ct := lab.running(505)
	lab.done("POST", ct+"/snapshot", form{"snapname": "live"})
	lab.done("POST", ct+"/snapshot/live/rollback", form{"start": "1"})
	lab.s.lock()
	lab.s.waitUntil(t.Context(), 10*time.Second, func() bool { return lab.s.st.Guests[505].phase == phaseStarting })
	lab.s.unlock()
	lab.fails("POST", ct+"/snapshot/live/rollback", nil, "can't lock file '/var/lock/pve-manager/pve-migrate-505' - got timeout")
	lab.fails("DELETE", ct+"/snapshot/live", nil, "Failed to obtain guest migration lock - replication running?")
	lab.fails("POST", ct+"/snapshot", form{"snapname": "more"}, "can't lock file '/run/lock/lxc/pve-config-505.lock' - got timeout")
}

func TestRollbackOverAResizeRestoresTheSize(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(506)
	lab.done("POST", ct+"/snapshot", form{"snapname": "small"})
	lab.done("PUT", ct+"/resize", form{"disk": "rootfs", "size": "+1G"})
	lab.option(ct, "rootfs", "local-btrfs:506/vm-506-disk-0.raw,size=2G")
	lab.done("POST", ct+"/snapshot/small/rollback", nil)
	lab.option(ct, "rootfs", "local-btrfs:506/vm-506-disk-0.raw,size=1G")
	lab.done("PUT", ct+"/resize", form{"disk": "rootfs", "size": "1536M"})
	lab.option(ct, "rootfs", "local-btrfs:506/vm-506-disk-0.raw,size=1536M")
}

func TestResizeRefusals(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(507)
	lab.done("PUT", ct+"/resize", form{"disk": "rootfs", "size": "3G"})
	lab.refused("PUT", ct+"/resize", form{"disk": "rootfs", "size": "2G"}, 500, "unable to shrink disk size")
	lab.refused("PUT", ct+"/resize", form{"disk": "rootfs", "size": "3G"}, 500, "disk is already at specified size")
	lab.badParameter("PUT", ct+"/resize", form{"disk": "rootfs", "size": "-1G"}, "size", "value does not match the regex pattern")
	lab.badParameter("PUT", ct+"/resize", form{"disk": "rootfs"}, "size", "property is missing and it is not optional")
	if r := lab.call("PUT", ct+"/resize", form{"disk": "mp3", "size": "+1G"}); r.status != 500 || r.reason != "format error" || len(r.errors) != 2 {
		t.Errorf("mount point that isn't set: %+v", r)
	}
}

func TestOnlyTheNewestSnapshotIsRolledBackOnZFS(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.s.lock()
	lab.s.st.Storages["tank"] = &storage{ID: "tank", Type: "zfspool", Content: []string{"rootdir"}, Total: 1 << 40}
	lab.s.unlock()
	lab.done("POST", "lxc", createForm("508", form{"rootfs": "tank:1"}))
	for _, name := range []string{"one", "two"} {
		lab.done("POST", "lxc/508/snapshot", form{"snapname": name})
	}
	lab.fails("POST", "lxc/508/snapshot/one/rollback", nil, "can't rollback, 'one' is not most recent snapshot on 'tank:subvol-508-disk-0'")
	lab.done("POST", "lxc/508/snapshot/two/rollback", nil)
}
