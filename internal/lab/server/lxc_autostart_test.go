package server

import (
	"context"
	"slices"
	"testing"
	"time"
)

func TestGuestsWithOnbootStartWithTheirNodeInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := newCTLab(t, func(opt *Options) { opt.Dir = dir })
	for vmid, startup := range map[int]string{700: "order=2", 701: "order=1,up=1", 702: "", 703: "none"} {
		params := form{"onboot": "1", "startup": startup}
		if startup == "" {
			delete(params, "startup")
		}
		if startup == "none" {
			params = form{"onboot": "0"}
		}
		first.ok("PUT", first.clone(vmid)+"/config", params)
	}
	first.done("POST", "lxc/703/status/start", nil)
	if err := first.s.Close(); err != nil {
		t.Fatal(err)
	}
	_ = first.engine.Kill(context.Background(), 703) // the power cut

	again := newCTLab(t, func(opt *Options) { opt.Dir, opt.Engine = dir, first.engine })
	again.s.lock()
	defer again.s.unlock()
	var all *task
	for _, task := range again.s.st.Tasks {
		if task.Type == "startall" {
			all = task
		}
	}
	if all == nil {
		t.Fatal("no startall task")
	}
	if !again.s.waitUntil(t.Context(), 20*time.Second, func() bool { return !all.running }) {
		t.Fatal("startall still runs")
	}
	if want := []string{"Starting CT 701", "Starting CT 700", "Starting CT 702", "TASK OK"}; !slices.Equal(all.Lines, want) {
		t.Errorf("log %q", all.Lines)
	}
	if again.s.st.Guests[703].Running {
		t.Error("a guest without onboot was started")
	}
}
