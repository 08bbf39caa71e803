package server

import (
	"testing"
	"time"
)

func TestPowerRefusals(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	stopped, running := lab.clone(400), lab.running(401)
	lab.refused("POST", stopped+"/status/stop", nil, 500, "CT 400 not running")
	lab.refused("POST", stopped+"/status/shutdown", nil, 500, "CT 400 not running")
	lab.refused("POST", stopped+"/status/reboot", nil, 500, "VM 400 not running")
	lab.refused("POST", "lxc/999/status/stop", nil, 500, "CT 999 not running")
	lab.refused("POST", running+"/status/start", nil, 500, "CT 401 already running")
	lab.refused("POST", running+"/status/resume", nil, 500, "CT 401 already running")
	lab.refused("DELETE", running, nil, 500, "unable to destroy CT 401 - container is running")
	lab.fails("POST", running+"/status/suspend", nil, "command 'lxc-checkpoint -n 401 -s -D /var/lib/vz/dump' failed: exit code 1")
	lab.fails("POST", "lxc/999/status/start", nil, "Configuration file 'nodes/pve1/lxc/999.conf' does not exist")
	lab.badParameter("POST", stopped+"/status/start", form{"skiplock": "1"}, "skiplock", "Only root may use this option.")
	lab.as("viewer").refused("POST", stopped+"/status/start", nil, 403, "Permission check failed (/vms/400, VM.PowerMgmt)")
}

func TestStartAndStopShowInTheStatus(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(402)
	status := func() map[string]any { return lab.ok("GET", ct+"/status/current", nil).(map[string]any) }
	if st := status(); st["status"] != "stopped" || st["uptime"] != 0.0 || st["pid"] != nil || st["maxdisk"] != float64(1<<30) {
		t.Errorf("stopped: %v", st)
	}
	lab.done("POST", ct+"/status/start", nil)
	if st := status(); st["status"] != "running" || st["pid"] == nil || st["pressurecpusome"] != "0.00" || st["maxdisk"] != 1020702720.0 {
		t.Errorf("running: %v", st)
	}
	lab.done("POST", ct+"/status/shutdown", form{"timeout": "20"})
	if st := status(); st["status"] != "stopped" || lab.engine.see(402).running {
		t.Errorf("after the shutdown: %v", st)
	}
}

func TestSecondStartWaitsForTheFirstAndFails(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.Start, d.LockTimeout = 2*time.Second, 20*time.Second }))
	ct := lab.clone(403)
	first := lab.begin("POST", ct+"/status/start", nil)
	lab.s.lock()
	held := lab.s.waitUntil(t.Context(), 10*time.Second, func() bool { return lab.s.fileLocks["/run/lock/lxc/pve-config-403.lock"] })
	lab.s.unlock()
	if !held {
		t.Fatal("the first start takes no lock")
	}
	second := lab.begin("POST", ct+"/status/start", nil)
	if exit, _ := lab.wait(first); exit != "OK" {
		t.Errorf("first start: %s", exit)
	}
	exit, log := lab.wait(second)
	if exit != "CT 403 already running" || log[0] != "trying to acquire lock..." || log[1] != " OK" {
		t.Errorf("second start: %s %q", exit, log)
	}
}

func TestCallsTimeOutAtTheLockOfAStart(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.Start, d.LockTimeout = 20*time.Second, 20*time.Millisecond }))
	ct := lab.clone(404)
	lab.begin("POST", ct+"/status/start", nil)
	lab.s.lock()
	lab.s.waitUntil(t.Context(), 10*time.Second, func() bool { return lab.s.fileLocks[guestLockPath(404)] })
	lab.s.unlock()
	const timeout = "can't lock file '/run/lock/lxc/pve-config-404.lock' - got timeout"
	lab.refused("PUT", ct+"/config", form{"memory": "256"}, 500, timeout)
	lab.fails("POST", ct+"/snapshot", form{"snapname": "snap"}, timeout)
}

func TestOverruledShutdownEndsWithoutStatus(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.Shutdown, d.LockTimeout = 20*time.Second, 20*time.Second }))
	ct := lab.running(405)
	shutdown := lab.begin("POST", ct+"/status/shutdown", form{"timeout": "20", "forceStop": "1"})
	lab.s.lock()
	lab.s.waitUntil(t.Context(), 10*time.Second, func() bool { return lab.s.fileLocks[guestLockPath(405)] })
	lab.s.unlock()
	lab.done("POST", ct+"/status/stop", form{"overrule-shutdown": "1"})
	exit, log := lab.wait(shutdown)
	if exit != "unexpected status" || log[len(log)-1] != "command 'lxc-stop -n 405 --timeout 20' failed: received interrupt" {
		t.Errorf("shutdown ended with %q, %q", exit, log)
	}
	if lab.engine.see(405).running {
		t.Error("it still runs")
	}
}

func TestInterfacesShowALeaseOnlyAfterAWhile(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.DHCP = time.Hour }))
	stopped := lab.clone(406)
	if data := lab.ok("GET", stopped+"/interfaces", nil); data != nil {
		t.Errorf("stopped: %v", data)
	}
	if data := lab.ok("GET", "lxc/998/interfaces", nil); data != nil {
		t.Errorf("not there: %v", data)
	}
	ct := lab.running(407)
	eth0 := func() map[string]any { return lab.ok("GET", ct+"/interfaces", nil).([]any)[1].(map[string]any) }
	if iface := eth0(); iface["inet"] != nil || iface["name"] != "eth0" {
		t.Errorf("before the lease: %v", iface)
	}
	lab.s.lock()
	lab.s.jump.Add(int64(2 * time.Hour))
	lab.s.unlock()
	address := eth0()["ip-addresses"].([]any)[0].(map[string]any)
	if address["ip-address"] != "10.10.10.77" || address["prefix"] != "24" || address["ip-address-type"] != "inet" {
		t.Errorf("after it: %v", address)
	}
}

func TestDestroyRemovesEveryTrace(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.done("POST", "lxc/9000/clone", form{"newid": "408", "pool": "labpool"})
	const ct = "lxc/408"
	lab.ok("PUT", ct+"/config", form{"mp0": "local-btrfs:1,mp=/data"})
	lab.done("POST", ct+"/snapshot", form{"snapname": "snap"})
	lab.done("POST", ct+"/status/start", nil)
	log := lab.done("DELETE", ct, form{"force": "1", "purge": "1", "destroy-unreferenced-disks": "1"})
	if log[0] != "forced to stop CT 408 before destroying!" || log[1] != "purging CT 408 from related configurations.." {
		t.Errorf("log %q", log)
	}
	lab.refused("DELETE", ct, nil, 500, "Configuration file 'nodes/pve1/lxc/408.conf' does not exist")
	lab.s.lock()
	defer lab.s.unlock()
	for _, v := range lab.s.st.Volumes {
		if v.VMID == 408 {
			t.Errorf("volume %s is left", v.VolID)
		}
	}
	if lab.engine.see(408) != nil || len(lab.engine.volumes) != 0 || lab.s.st.Pools["labpool"].Guests[408] {
		t.Error("something is left")
	}
}

func TestDestroyOfAManagedContainerNeedsPurge(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(409)
	lab.s.lock()
	lab.s.st.HA["ct:409"] = &haResource{SID: "ct:409", Options: map[string]string{}}
	lab.s.unlock()
	lab.refused("DELETE", ct, nil, 500, "unable to remove CT 409 - used in HA resources and purge parameter not set.")
	lab.done("DELETE", ct, form{"purge": "1"})
}

func TestOrderedTaskFailureLeavesNoLock(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.s.faults.addTask(TaskFault{Type: "vzclone", Nth: 1, Count: 1, Exit: "no space left"})
	lab.fails("POST", "lxc/9000/clone", form{"newid": "410"}, "no space left")
	lab.clone(410)
}

func TestStartOfSystemdWithoutNestingEndsWithAWarning(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.s.lock()
	(&Seeder{s: lab.s}).TemplateFile("local:vztmpl/debian-12-standard_12.12-1_amd64.tar.zst", 1000)
	lab.s.unlock()
	lab.done("POST", "lxc", createForm("411", form{"ostemplate": "local:vztmpl/debian-12-standard_12.12-1_amd64.tar.zst"}))
	exit, log := lab.wait(lab.begin("POST", "lxc/411/status/start", nil))
	if exit != "WARNINGS: 1" || log[0] != "WARN: Systemd 252 detected. You may need to enable nesting." {
		t.Errorf("start ended with %q, %q", exit, log)
	}
	lab.done("POST", "lxc/411/status/stop", nil)
	lab.ok("PUT", "lxc/411/config", form{"features": "nesting=1"})
	lab.done("POST", "lxc/411/status/start", nil)
}

func TestARawLineForAControllerThatTheNodeLacksFailsTheStart(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(412)
	raw := func(key, value string) {
		lab.s.lock()
		defer lab.s.unlock()
		lab.s.st.Guests[412].Raw = [][2]string{{key, value}}
	}
	raw("lxc.cgroup2.pids.max", "4096")
	lab.done("POST", ct+"/status/start", nil)
	lab.done("POST", ct+"/status/stop", nil)
	raw("lxc.cgroup2.pid.max", "4096") // a slip of the pen is one, too
	exit, log := lab.wait(lab.begin("POST", ct+"/status/start", nil))
	if exit != "startup for container '412' failed" || log[0] != `cgfsng_setup_limits: 3536 No such file or directory - Failed to set "pid.max" to "4096"` {
		t.Errorf("start ended with %q, %q", exit, log)
	}
	if lab.engine.see(412) == nil || lab.ok("GET", ct+"/status/current", nil).(map[string]any)["status"] != "stopped" {
		t.Error("the container runs, or is gone")
	}
}
