package server

import (
	"slices"
	"strings"
	"testing"
)

func TestVolumeIsHandedToAnotherContainerAndBack(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	holder, user := lab.clone(600), lab.running(601)
	lab.ok("PUT", holder+"/config", form{"mp0": "local-btrfs:1,mp=/ws,backup=1"})
	lab.engine.volumes["local-btrfs:600/vm-600-disk-1.raw"].content = "work"

	upid := lab.begin("POST", holder+"/move_volume", form{"volume": "mp0", "target-vmid": "601", "target-volume": "mp1"})
	if !strings.Contains(upid, ":move_volume:600-mp0>601-mp1:") {
		t.Errorf("UPID %s", upid)
	}
	_, log := lab.wait(upid)
	if !slices.Equal(log, []string{"moving volume 'mp0' from container '600' to '601'",
		"removing volume 'mp0' from container '600' config", "target container '601' updated with 'mp1'", "TASK OK"}) {
		t.Errorf("log %q", log)
	}
	const moved = "local-btrfs:601/vm-601-disk-1.raw"
	lab.option(holder, "mp0", nil)
	lab.option(user, "mp1", moved+",mp=/ws,backup=1,size=1G")
	if lab.engine.volumes[moved].content != "work" || lab.engine.see(601).mounts[moved].Path != "/ws" {
		t.Error("the running container hasn't got it")
	}
	lab.refused("POST", user+"/move_volume", form{"volume": "mp1", "target-vmid": "600", "target-volume": "mp5"}, 500,
		"Cannot move in-use volume while the source CT is running - detach or shutdown first")
	lab.done("POST", user+"/status/stop", nil)
	lab.done("POST", user+"/move_volume", form{"volume": "mp1", "target-vmid": "600", "target-volume": "mp5"})
	lab.option(holder, "mp5", "local-btrfs:600/vm-600-disk-1.raw,mp=/ws,backup=1,size=1G")
	if len(lab.engine.see(601).mounts) != 0 {
		t.Error("still mounted")
	}
}

func TestHandoverRefusals(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(602)
	lab.clone(603)
	lab.ok("PUT", ct+"/config", form{"mp0": "local-btrfs:1,mp=/ws", "mp1": "local-btrfs:1,mp=/x"})
	lab.ok("PUT", ct+"/config", form{"delete": "mp1"})
	lab.ok("PUT", "lxc/603/config", form{"mp0": "local-btrfs:1,mp=/ws"})
	for _, c := range []struct{ volume, vmid, target, reason string }{
		{"unused0", "603", "mp1", "Moving an unused volume to a used one is not possible"},
		{"rootfs", "603", "mp3", "Cannot move to/from 'rootfs'"},
		{"mp0", "9000", "mp0", "Can't move volumes from or to template CT"},
		{"mp0", "699", "mp0", "could not find CT 699"},
		{"mp9", "603", "mp1", "volume 'mp9' for container '602' does not exist"},
		{"mp0", "603", "mp0", "Target volume key 'mp0' is already in use for container '603'"},
	} {
		lab.refused("POST", ct+"/move_volume", form{"volume": c.volume, "target-vmid": c.vmid, "target-volume": c.target}, 500, c.reason)
	}
	lab.done("POST", ct+"/snapshot", form{"snapname": "snap"})
	lab.refused("POST", ct+"/move_volume", form{"volume": "mp0", "target-vmid": "603", "target-volume": "mp7"}, 500,
		"Cannot move volume used by a snapshot to another container")
	lab.as("limited").refused("POST", ct+"/move_volume", form{"volume": "mp0", "target-vmid": "603", "target-volume": "mp7"}, 403,
		"Permission check failed (/vms/602, VM.Config.Disk)")
	lab.done("POST", ct+"/move_volume", form{"volume": "unused0", "target-vmid": "603", "target-volume": "unused0"})
	lab.option("lxc/603", "unused0", "local-btrfs:603/vm-603-disk-2.raw")
}

func TestRootMovesToAnotherStorage(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.running(604)
	lab.refused("POST", ct+"/move_volume", form{"volume": "rootfs", "storage": "local-dir2"}, 500, "cannot move volumes of a running container")
	lab.done("POST", ct+"/status/stop", nil)
	lab.done("POST", ct+"/move_volume", form{"volume": "rootfs", "storage": "local-dir2"})
	lab.option(ct, "rootfs", "local-dir2:604/vm-604-disk-0.raw,size=1G")
	lab.option(ct, "unused0", "local-btrfs:604/vm-604-disk-0.raw")
	lab.done("POST", ct+"/move_volume", form{"volume": "rootfs", "storage": "local", "delete": "1"})
	lab.option(ct, "unused1", nil)
}

func TestMigrationMovesContainerAndVolumes(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, func(opt *Options) { opt.Nodes = 2 })
	ct := lab.running(605)
	lab.badParameter("POST", ct+"/migrate", form{"target": "pve1"}, "target", "target is local node.")
	lab.refused("POST", ct+"/migrate", form{"target": "pve2"}, 500, "can't migrate running container without --online or --restart")
	lab.done("POST", ct+"/migrate", form{"target": "pve2", "restart": "1"})
	lab.refused("GET", ct+"/config", nil, 500, "Configuration file 'nodes/pve1/lxc/605.conf' does not exist")
	lab.refused("POST", ct+"/status/stop", nil, 500, "CT 605 not running")
	if st := lab.ok("GET", "/nodes/pve2/lxc/605/status/current", nil).(map[string]any); st["status"] != "running" {
		t.Errorf("on the target: %v", st["status"])
	}
	lab.done("POST", "/nodes/pve2/lxc/605/status/stop", nil)
	lab.done("POST", "/nodes/pve2/lxc/605/migrate", form{"target": "pve1"})
	lab.done("POST", ct+"/status/start", nil)
	lab.refused("POST", "/nodes/pve2/lxc", createForm("605", nil), 500, "CT 605 already exists on node 'pve1'")
}

func TestBackupIsRestoredWithContentConfigurationAndVolumes(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.running(606)
	lab.ok("PUT", ct+"/config", form{"mp0": "local-btrfs:1,mp=/ws,backup=1", "mp1": "local-btrfs:1,mp=/scratch", "description": "mine"})
	lab.engine.write(606, "content")
	lab.engine.volumes["local-btrfs:606/vm-606-disk-1.raw"].content = "work"
	mac := parseNet(lab.config(ct, nil)["net0"].(string))["hwaddr"]

	lab.done("POST", "vzdump", form{"vmid": "606", "storage": "local", "mode": "stop", "compress": "0", "notes-template": "{{guestname}} saved"})
	if !lab.engine.see(606).running {
		t.Error("the container wasn't started again")
	}
	lab.s.lock()
	volid := ""
	for _, v := range lab.s.st.Volumes {
		if v.Content == "backup" {
			volid = v.VolID
			if v.Notes != "ct606 saved" || v.VMID != 606 || v.Format != "tar" {
				t.Errorf("the backup: %+v", v)
			}
		}
	}
	lab.s.unlock()
	text, _ := lab.ok("GET", "vzdump/extractconfig", form{"volume": volid}).(string)
	if !strings.Contains(text, "#mine\narch: amd64\n") {
		t.Errorf("its configuration:\n%s", text)
	}

	log := lab.done("POST", "lxc", form{"vmid": "607", "ostemplate": volid, "restore": "1", "storage": "local-btrfs", "hostname": "restored"})
	if log[0] != "recovering backed-up configuration from '"+volid+"'" {
		t.Errorf("log %q", log)
	}
	for key, want := range map[string]any{"hostname": "restored", "description": "mine\n", "mp1": nil, "memory": 128.0,
		"mp0": "local-btrfs:607/vm-607-disk-1.raw,mp=/ws,backup=1,size=1G"} {
		lab.option("lxc/607", key, want)
	}
	if lab.engine.read(607) != "content" || lab.engine.volumes["local-btrfs:607/vm-607-disk-1.raw"].content != "work" {
		t.Error("the content isn't the backup's")
	}
	if got := parseNet(lab.config("lxc/607", nil)["net0"].(string))["hwaddr"]; got != mac {
		t.Errorf("address %s, want the backup's %s", got, mac)
	}
	again := form{"vmid": "607", "ostemplate": volid, "restore": "1", "storage": "local-btrfs"}
	lab.refused("POST", "lxc", again, 500, "CT 607 already exists on node 'pve1'")
	again["force"], again["unique"] = "1", "1"
	lab.engine.write(607, "changed")
	lab.done("POST", "lxc", again)
	lab.option("lxc/607", "hostname", "ct606")
	if got := parseNet(lab.config("lxc/607", nil)["net0"].(string))["hwaddr"]; got == mac || lab.engine.read(607) != "content" {
		t.Errorf("address %s, content %q", got, lab.engine.read(607))
	}
}

func TestBackupFailuresShowInTheTask(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.fails("POST", "vzdump", form{"vmid": "9997", "storage": "local"}, "job errors")
	lab.fails("POST", "vzdump", form{"vmid": "9000", "storage": "nosuch"},
		"could not get storage information for 'nosuch': storage 'nosuch' does not exist")
}
