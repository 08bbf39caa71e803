package bench

import (
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
)

func TestOnlyWaitingForATaskIsAPoll(t *testing.T) {
	t.Parallel()
	work, polls := split([]control.Request{
		{Method: "POST", Path: "/nodes/pve1/lxc/9000/clone"},
		{Method: "GET", Path: "/nodes/pve1/tasks/UPID:pve1:1:2:3:vzclone:9000:u@pve:/status"},
		{Method: "GET", Path: "/nodes/pve1/lxc/100000/config"},
		{Method: "DELETE", Path: "/nodes/pve1/tasks/UPID:pve1:1:2:3:vzclone:9000:u@pve:"},
	})
	if work != 3 || polls != 1 {
		t.Errorf("got %d requests and %d polls", work, polls)
	}
}

func TestCallsForDifferentGuestsAreOfOneKind(t *testing.T) {
	t.Parallel()
	got := describe([]control.Request{
		{Method: "GET", Path: "/nodes/pve1/lxc/100/config", Template: "/nodes/{node}/lxc/{vmid}/config"},
		{Method: "GET", Path: "/nodes/pve1/lxc/101/config", Template: "/nodes/{node}/lxc/{vmid}/config"},
	})
	if want := "2 x GET /nodes/{node}/lxc/{vmid}/config"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAFigureOutsideItsBoundIsShort(t *testing.T) {
	t.Parallel()
	m := atMost("x", 9, 8)
	m.Area = "fleet"
	if got := m.String(); got != "fleet x 9 <=8 SHORT" {
		t.Errorf("got %q", got)
	}
	if m := ratioAtMost("x", 1.3, 1.3); !m.OK {
		t.Error("the bound itself is within it")
	}
}

func TestPercentileIsOneOfTheValues(t *testing.T) {
	t.Parallel()
	values := []time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for p, want := range map[int]time.Duration{50: 5, 95: 10, 100: 10} {
		if got := percentile(values, p); got != want {
			t.Errorf("p%d is %d, want %d", p, got, want)
		}
	}
}

func TestTheSpanIsFromTheFirstBeginningToTheLastEnd(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	got := span([]control.Request{
		{At: noon.Add(time.Second), Millis: 5000}, // begins second, ends last
		{At: noon, Millis: 10},
		{At: noon.Add(2 * time.Second), Millis: 1},
	})
	if got != 6*time.Second {
		t.Errorf("got %s", got)
	}
	if span(nil) != 0 {
		t.Error("no requests take no time")
	}
}
