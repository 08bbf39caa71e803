package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// lxcStart refuses only what runs already; everything else that is wrong shows in the task: a container that isn't
// there, a template, a lock, a missing bridge.
func (s *Server) lxcStart(c *call) (any, error) {
	if err := c.checkSkipLock(); err != nil {
		return nil, err
	}
	vmid := c.vmid()
	if g, err := c.guest(); err == nil && g.active() {
		return nil, failf("CT %d already running", vmid)
	}
	return c.startTask("vzstart", strconv.Itoa(vmid), func(t *task) error { return t.startGuest(vmid) })
}

// checkSkipLock: the option is root's alone.
func (c *call) checkSkipLock() error {
	if c.params.flag("skiplock") && !c.root() {
		return paramError("skiplock", "Only root may use this option.")
	}
	return nil
}

// requireActive is the server's refusal for a container that doesn't run. It doesn't look whether there is one: asked
// at the wrong node it says the same.
func (c *call) requireActive(word string) error {
	if g, err := c.guest(); err == nil && g.active() {
		return nil
	}
	return failf("%s %d not running", word, c.vmid())
}

// startGuest boots a container, holding its lock file all the while.
func (t *task) startGuest(vmid int) error {
	release, err := t.lockConfig(vmid)
	if err != nil {
		return err
	}
	defer release()
	return t.startLocked(vmid)
}

// startLocked is startGuest for a holder of the lock file.
func (t *task) startLocked(vmid int) error {
	s := t.s
	g, err := s.guestOn(t.Node, vmid)
	if err != nil {
		return err
	}
	switch {
	case g.isTemplate():
		return failf("you can't start a CT if it's a template")
	case g.active():
		return failf("CT %d already running", vmid)
	}
	if err := g.checkLock(); err != nil {
		return err
	}
	if err := s.applyPending(t.ctx, g); err != nil {
		return err
	}
	if err := s.checkBridges(g.Node, g.Config); err != nil {
		return err
	}
	if err := t.boot(g); err != nil {
		return err
	}
	if g.Systemd >= systemdNeedsNesting && parseFeatures(g.Config["features"])["nesting"] != "1" {
		t.warnf("Systemd %d detected. You may need to enable nesting.", g.Systemd)
	}
	return nil
}

// systemdNeedsNesting is the version from which a start without nesting ends with a warning.
const systemdNeedsNesting = 241

// boot takes a container from stopped to running. A little while passes before its monitor is seen.
func (t *task) boot(g *guest) error {
	s, before := t.s, t.s.delays().Start/4
	if err := t.sleep(before); err != nil {
		return err
	}
	g.phase = phaseStarting
	defer func() { g.phase = phaseSteady }()
	rest := s.delays().Start - before
	if g.Dirty {
		rest += s.delays().DirtyMount
	}
	if err := t.sleep(rest); err != nil {
		return err
	}
	if err := t.limitCgroup(g); err != nil {
		return err
	}
	err := s.configureGuest(t.ctx, g)
	if err == nil {
		err = s.mountGuest(t.ctx, g)
	}
	if err == nil {
		vmid := g.VMID
		err = s.inEngine(t.ctx, func(ctx context.Context, e engine.Engine) error { return e.Start(ctx, vmid) })
	}
	if err != nil {
		t.logf("%v", err)
		return failf("startup for container '%d' failed", g.VMID)
	}
	g.Running, g.StartedAt, g.PID, g.Dirty = true, s.now(), s.nextPID(), false
	s.dirty()
	return nil
}

// lxcStop takes a container down at once.
func (s *Server) lxcStop(c *call) (any, error) {
	if err := c.checkSkipLock(); err != nil {
		return nil, err
	}
	if err := c.requireActive("CT"); err != nil {
		return nil, err
	}
	vmid, overrule, skip := c.vmid(), c.params.flag("overrule-shutdown"), c.params.flag("skiplock")
	return c.startTask("vzstop", strconv.Itoa(vmid), func(t *task) error {
		lead := s.delays().Stop / 4
		if overrule && s.interruptShutdowns(vmid) {
			lead = 0 // init is on its way down already
		}
		return t.withGuest(vmid, func(g *guest) error {
			if !skip {
				if err := g.checkLock(); err != nil {
					return err
				}
			}
			if !g.active() {
				return nil
			}
			return t.killAfter(g, lead)
		})
	})
}

// interruptShutdowns ends the shutdown tasks of a container that still wait; false if there are none.
func (s *Server) interruptShutdowns(vmid int) bool {
	found := false
	for _, other := range s.st.Tasks {
		if other.running && other.Type == "vzshutdown" && other.ID == strconv.Itoa(vmid) {
			other.cancel()
			found = true
		}
	}
	return found
}

// withGuest runs a function about a container, holding its lock file.
func (t *task) withGuest(vmid int, do func(g *guest) error) error {
	release, err := t.lockConfig(vmid)
	if err != nil {
		return err
	}
	defer release()
	g, err := t.s.guestOn(t.Node, vmid)
	if err != nil {
		return err
	}
	return do(g)
}

// kill takes a running container down.
func (t *task) kill(g *guest) error { return t.killAfter(g, t.s.delays().Stop/4) }

// killAfter is kill with the time until init is gone; its monitor follows later.
func (t *task) killAfter(g *guest, lead delay) error {
	s := t.s
	if err := t.sleep(lead); err != nil {
		return err
	}
	vmid := g.VMID
	err := s.inEngine(s.ctx, func(ctx context.Context, e engine.Engine) error { return e.Kill(ctx, vmid) })
	if err != nil && !errors.Is(err, engine.ErrNotRunning) {
		return fmt.Errorf("stop of container '%d' failed: %w", vmid, err)
	}
	g.phase = phaseStopping
	t.sleepAnyway(s.delays().Stop * 3 / 4)
	return s.stopped(g)
}

// stopped is what follows when a container has gone down: what waited for that is applied.
func (s *Server) stopped(g *guest) error {
	g.Running, g.StartedAt, g.PID, g.phase = false, time.Time{}, 0, phaseSteady
	s.dirty()
	return s.applyPending(s.ctx, g)
}

// lxcShutdown asks the guest to go down; forceStop kills it after the timeout.
func (s *Server) lxcShutdown(c *call) (any, error) {
	if err := c.requireActive("CT"); err != nil {
		return nil, err
	}
	vmid, force := c.vmid(), c.params.flag("forceStop")
	timeout := 60
	if c.params.has("timeout") {
		timeout = c.params.num("timeout")
	}
	return c.startTask("vzshutdown", strconv.Itoa(vmid), func(t *task) error {
		return t.withGuest(vmid, func(g *guest) error {
			if err := g.checkLock(); err != nil {
				return err
			}
			if !g.active() {
				return nil
			}
			err := t.shutdown(g, timeout)
			switch {
			case errors.Is(err, errInterrupted):
				t.logf("command 'lxc-stop -n %d --timeout %d' failed: received interrupt", vmid, timeout)
				return errNoStatus
			case errors.Is(err, context.DeadlineExceeded) && force:
				return t.kill(g)
			case errors.Is(err, context.DeadlineExceeded):
				return failf("command 'lxc-stop -n %d --timeout %d' failed: exit code 1", vmid, timeout)
			}
			return err
		})
	})
}

// shutdown asks a guest to go down and waits until it has. The error is context.DeadlineExceeded when it doesn't.
func (t *task) shutdown(g *guest, seconds int) error {
	s := t.s
	if err := t.sleep(s.delays().Shutdown); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	vmid := g.VMID
	err := s.inEngine(ctx, func(ctx context.Context, e engine.Engine) error { return e.Stop(ctx, vmid) })
	switch {
	case t.ctx.Err() != nil && err != nil:
		return errInterrupted
	case err != nil && !errors.Is(err, engine.ErrNotRunning):
		return err
	}
	return s.stopped(g)
}

// lxcReboot shuts a container down and starts it again; what was pending is applied in between.
func (s *Server) lxcReboot(c *call) (any, error) {
	if err := c.requireActive("VM"); err != nil {
		return nil, err
	}
	vmid, timeout := c.vmid(), 60
	if c.params.has("timeout") {
		timeout = c.params.num("timeout")
	}
	return c.startTask("vzreboot", strconv.Itoa(vmid), func(t *task) error {
		return t.withGuest(vmid, func(g *guest) error {
			if err := g.checkLock(); err != nil {
				return err
			}
			if g.active() {
				if err := t.shutdown(g, timeout); err != nil {
					return err
				}
			}
			return t.startLocked(vmid)
		})
	})
}

// lxcSuspend and lxcResume are experimental on the real server, and fail there in the task for lack of the program.
func (s *Server) lxcSuspend(c *call) (any, error) {
	if err := c.requireActive("CT"); err != nil {
		return nil, err
	}
	return c.checkpoint("vzsuspend", "-s")
}

func (s *Server) lxcResume(c *call) (any, error) {
	if g, err := c.guest(); err == nil && g.active() {
		return nil, failf("CT %d already running", c.vmid())
	}
	return c.checkpoint("vzresume", "-r --foreground")
}

func (c *call) checkpoint(kind, flags string) (any, error) {
	vmid := c.vmid()
	return c.startTask(kind, strconv.Itoa(vmid), func(*task) error {
		return failf("command 'lxc-checkpoint -n %d %s -D /var/lib/vz/dump' failed: exit code 1", vmid, flags)
	})
}
