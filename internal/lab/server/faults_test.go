package server

import (
	"net/http"
	"testing"
	"time"
)

func (lab *ctLab) fault(f Fault) int {
	lab.t.Helper()
	id, err := lab.s.faults.add(f)
	if err != nil {
		lab.t.Fatal(err)
	}
	return id
}

// lost sends a request whose connection must be cut.
func (lab *ctLab) lost(method, path string) {
	lab.t.Helper()
	req, err := http.NewRequestWithContext(lab.t.Context(), method, lab.s.URL()+"/api2/json"+path, nil)
	if err != nil {
		lab.t.Fatal(err)
	}
	req.Header.Set("Authorization", "PVEAPIToken="+lab.tokens["admin"])
	if res, err := lab.client.Do(req); err == nil {
		_ = res.Body.Close()
		lab.t.Errorf("%s %s: answered %s", method, path, res.Status)
	}
}

func TestAFaultHitsTheNthMatchingRequest(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.fault(Fault{Method: "POST", Pattern: `^/pools$`, Nth: 2, Kind: FaultStatus, Status: 596, Reason: "Connection timed out"})
	lab.ok("GET", "/pools", nil)
	lab.ok("POST", "/pools", form{"poolid": "a"})
	lab.refused("POST", "/pools", form{"poolid": "b"}, 596, "Connection timed out")
	lab.ok("POST", "/pools", form{"poolid": "b"})
}

func TestADroppedRequestIsNotExecutedALostAnswerIs(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", "/pools", form{"poolid": "a"})
	lab.fault(Fault{Method: "DELETE", Kind: FaultDropBefore})
	lab.lost("DELETE", "/pools/a")
	lab.ok("GET", "/pools/a", nil)
	lab.fault(Fault{Method: "DELETE", Nth: 2, Kind: FaultDropAfter})
	lab.ok("POST", "/pools", form{"poolid": "b"})
	lab.ok("DELETE", "/pools/b", nil)
	lab.lost("DELETE", "/pools/a")
	lab.refused("GET", "/pools/a", nil, 500, "pool 'a' does not exist")
}

func TestARequestIsHeldUntilItIsReleased(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	id := lab.fault(Fault{Method: "POST", Pattern: "^/pools$", Kind: FaultHold})
	done := make(chan reply)
	go func() { done <- lab.call("POST", "/pools", form{"poolid": "held"}) }()
	if state, err := lab.s.controlWait([]byte(`{"id":1,"held":1}`)); err != nil {
		t.Fatal(state, err)
	}
	lab.refused("GET", "/pools/held", nil, 500, "pool 'held' does not exist")
	if !lab.s.faults.releaseHeld(id) {
		t.Error("no such fault")
	}
	if r := <-done; r.status != 200 {
		t.Error(r)
	}
	lab.ok("GET", "/pools/held", nil)
}

func TestAHeldRequestCanBeDropped(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", "/pools", form{"poolid": "a"})
	id := lab.fault(Fault{Method: "DELETE", Kind: FaultHoldDrop})
	gone := make(chan struct{})
	go func() { defer close(gone); lab.lost("DELETE", "/pools/a") }()
	if state, err := lab.s.controlWait([]byte(`{"id":1,"held":1}`)); err != nil {
		t.Fatal(state, err)
	}
	lab.s.faults.releaseHeld(id)
	<-gone
	lab.ok("GET", "/pools/a", nil)
}

func TestATaskFailsWhenItIsTold(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.s.faults.addTask(TaskFault{Type: "vzclone", Nth: 2, Exit: "unable to create image"})
	lab.clone(100)
	lab.fails("POST", "lxc/9000/clone", form{"newid": "101"}, "unable to create image")
	lab.clone(102)
}

func TestAResetLetsGoAndBringsBack(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.fault(Fault{Pattern: "pools", Count: -1, Kind: FaultStatus, Status: 503, Reason: "busy"})
	lab.refused("GET", "/pools", nil, 503, "busy")
	lab.refused("GET", "/pools", nil, 503, "busy")
	lab.s.lock()
	lab.s.st.Nodes[0].Away = true
	lab.s.opt.Delays.Start = time.Hour
	lab.s.unlock()
	if _, err := lab.s.controlReset(nil); err != nil {
		t.Fatal(err)
	}
	lab.ok("GET", "/pools", nil)
	lab.running(100)
}

func TestTheRequestLogCounts(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.s.requests.reset()
	lab.ok("GET", "/version", nil)
	lab.ok("GET", "lxc/9000/config", nil)
	report := lab.s.requests.report()
	if report.Total != 2 || report.Connections != 1 || report.MaxInFlight != 1 {
		t.Errorf("%+v", report)
	}
	last := report.Entries[1]
	if last.Template != "/nodes/{node}/lxc/{vmid}/config" || last.Path != "/nodes/pve1/lxc/9000/config" || last.Status != 200 || last.N != 2 {
		t.Errorf("%+v", last)
	}
}

func TestTheControlAPINeedsItsSecret(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	if res, _ := lab.raw("POST", "/lab/reset", "", map[string]string{SecretHeader: "wrong"}); res.StatusCode != http.StatusForbidden {
		t.Error(res.Status)
	}
	if res, body := lab.raw("POST", "/lab/requests", "", map[string]string{SecretHeader: lab.s.Secret()}); res.StatusCode != http.StatusOK {
		t.Error(res.Status, body)
	}
}
