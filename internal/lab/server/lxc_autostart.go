package server

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// autostart is what each node does after it has booted: its onboot guests are started one after the other, in the order
// of their startup option, which may ask for time before the next one.
func (s *Server) autostart() {
	for _, n := range s.st.Nodes {
		if ids := s.onBoot(n.Name); len(ids) > 0 {
			s.startTask(n.Name, "startall", "", rootUser, func(t *task) error { return t.startAll(ids) })
		}
	}
}

// onBoot are a node's guests that start with it, in order.
func (s *Server) onBoot(node string) []int {
	var ids []int
	for _, vmid := range s.guestsOn(node) {
		if g := s.st.Guests[vmid]; g.Config["onboot"] == "1" && !g.isTemplate() {
			ids = append(ids, vmid)
		}
	}
	order := func(vmid int) int { return startupNumber(s.st.Guests[vmid], "order", math.MaxInt) }
	slices.SortStableFunc(ids, func(a, b int) int { return cmp.Compare(order(a), order(b)) })
	return ids
}

// startAll starts guests. One that fails doesn't keep the others down.
func (t *task) startAll(ids []int) error {
	s := t.s
	for _, vmid := range ids {
		g, err := s.guestOn(t.Node, vmid)
		if err != nil || g.active() {
			continue
		}
		t.logf("Starting CT %d", vmid)
		started := s.findTask(s.startTask(t.Node, "vzstart", strconv.Itoa(vmid), t.User, func(t *task) error { return t.startGuest(vmid) }))
		if !s.waitUntil(t.ctx, time.Hour, func() bool { return !started.running }) {
			return errInterrupted
		}
		if started.Exit != "OK" {
			t.logf("%s", started.Exit)
		}
		if err := t.sleep(s.guestSeconds(startupNumber(g, "up", 0))); err != nil {
			return err
		}
	}
	return nil
}

// guestSeconds are seconds of a guest's option, as much shorter as everything else in this lab is.
func (s *Server) guestSeconds(n int) time.Duration {
	return time.Duration(float64(n) * float64(time.Second) * s.delays().Start.Seconds() / Real().Start.Seconds())
}

// startupNumber is a number of the startup option, "order=2,up=5"; a bare number is the order.
func startupNumber(g *guest, key string, otherwise int) int {
	for _, part := range strings.Split(g.Config["startup"], ",") {
		name, value, named := strings.Cut(part, "=")
		if !named {
			name, value = "order", part
		}
		if n, err := strconv.Atoi(value); err == nil && name == key {
			return n
		}
	}
	return otherwise
}
