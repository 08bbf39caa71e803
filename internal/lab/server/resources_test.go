package server

import (
	"testing"
	"time"
)

// resource is a guest in /cluster/resources.
func (lab *ctLab) resource(vmid float64) map[string]any {
	lab.t.Helper()
	for _, entry := range lab.ok("GET", "/cluster/resources", form{"type": "vm"}).([]any) {
		if e := entry.(map[string]any); e["vmid"] == vmid {
			return e
		}
	}
	return nil
}

func TestClusterResourcesAreAsOldAsTheLastRound(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.StatLoop = time.Hour }))
	lab.clone(100)
	if r := lab.resource(100); r["status"] != "unknown" || r["name"] != nil {
		t.Error("before any round:", r)
	}
	round := func() { lab.s.lock(); lab.s.statRound(); lab.s.unlock() }
	round()
	if r := lab.resource(100); r["status"] != "stopped" || r["name"] != "ct100" || r["maxmem"] != float64(128<<20) {
		t.Error("after a round:", r)
	}
	lab.done("POST", "lxc/100/status/start", nil)
	if r := lab.resource(100); r["status"] != "stopped" {
		t.Error("at once:", r)
	}
	if s := lab.ok("GET", "lxc/100/status/current", nil).(map[string]any); s["status"] != "running" {
		t.Error("the container itself:", s)
	}
	round()
	if r := lab.resource(100); r["status"] != "running" {
		t.Error("after the next round:", r)
	}
	lab.done("DELETE", "lxc/100", form{"force": "1"})
	if r := lab.resource(100); r != nil {
		t.Error("deleted:", r)
	}
}

func TestGuestsOfANodeThatIsAwayAreUnknown(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, func(o *Options) { o.Nodes = 2 })
	lab.s.lock()
	lab.s.st.Guests[9000].Node = "pve2"
	lab.s.statRound()
	lab.s.findNode("pve2").Away = true
	lab.s.unlock()
	if r := lab.resource(9000); r["status"] != "unknown" || r["node"] != "pve2" {
		t.Error(r)
	}
}

func TestNextIDReservesNothing(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	if a, b := lab.ok("GET", "/cluster/nextid", nil), lab.ok("GET", "/cluster/nextid", nil); a != "100" || b != "100" {
		t.Error(a, b)
	}
	lab.badParameter("GET", "/cluster/nextid", form{"vmid": "9000"}, "vmid", "VM 9000 already exists")
}
