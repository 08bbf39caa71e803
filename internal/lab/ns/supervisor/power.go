//go:build linux

package supervisor

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/guestinit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/wire"
)

// services run in every guest. A readiness probe now and then must not use up sshd's places for logins under way.
var services = [][]string{{"/usr/sbin/sshd", "-D", "-e", "-o", "MaxStartups=500", "-o", "UseDNS=no"}}

func (s *Supervisor) start(ctx context.Context, id int) error {
	g, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if g.running != nil {
		return engine.Refuse(g.name(), engine.ErrRunning)
	}
	return s.boot(ctx, g)
}

// boot starts a stopped guest, which is locked: root, init, mounts, limits, network, services, in this order, so that no
// program of the guest runs before its limits and its network are as configured.
func (s *Supervisor) boot(ctx context.Context, g *guest) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s doesn't boot: %w", g.name(), err)
		}
	}()
	root, err := s.mountRoot(g.id, g.root)
	if err != nil {
		return err
	}
	if err := s.prepareFiles(root, g); err != nil {
		s.unmountRoot(g.id)
		return err
	}
	r, err := s.spawn(g.id)
	if err != nil {
		s.unmountRoot(g.id)
		return err
	}
	r.root, r.bootID = root, newBootID()
	g.running = r
	if err := s.bringUp(ctx, g, r); err != nil {
		s.down(g)
		return err
	}
	go s.watch(g, r)
	return s.saved(g)
}

func (s *Supervisor) bringUp(ctx context.Context, g *guest, r *running) error {
	var err error
	if r.limits, err = s.limits.Guest(g.id, r.pid()); err != nil {
		return err
	}
	if err := r.limits.Limit(g.config.Limits); err != nil {
		return err
	}
	setup := guestinit.Setup{Root: r.root, Hostname: shortName(g.config.Hostname), BootID: r.bootID}
	if _, err := r.init.Call(ctx, guestinit.CallSetup, setup, nil); err != nil {
		return err
	}
	for name, at := range g.volumes {
		v, ok := s.volumeNamed(name)
		if !ok {
			return engine.Refuse(volumeName(name), engine.ErrNotFound)
		}
		if err := s.mountVolume(r, v, at); err != nil {
			return fmt.Errorf("%s: %w", volumeName(name), err)
		}
	}
	r.host = s.network.host(g.id, r.pid())
	s.network.named(r.host, g.config)
	if err := s.network.plug(r.host, g.config.NICs); err != nil {
		return err
	}
	if err := s.writeResolver(r.root, g.config); err != nil {
		return err
	}
	_, err = r.init.Call(ctx, guestinit.CallStart, guestinit.Start{Services: services}, nil)
	return err
}

// watch notices a guest that goes down by itself, as after poweroff.
func (s *Supervisor) watch(g *guest, r *running) {
	<-r.ended
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running == r {
		s.down(g)
	}
}

// down ends what a guest, which is locked, has while it runs.
func (s *Supervisor) down(g *guest) {
	r := g.running
	if r == nil {
		return
	}
	r.kill()
	if r.host != nil {
		s.network.unplug(r.host)
	}
	r.limits.Close()
	s.unmountRoot(g.id)
	g.running = nil
	g.used = usage{}
}

func (s *Supervisor) stop(ctx context.Context, id int) error {
	g, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if g.running == nil {
		return engine.Refuse(g.name(), engine.ErrNotRunning)
	}
	return s.shutDown(ctx, g)
}

// shutDown asks a guest's init to end; the guest is locked.
func (s *Supervisor) shutDown(ctx context.Context, g *guest) error {
	r := g.running
	go func() { _, _ = r.init.Call(context.WithoutCancel(ctx), guestinit.CallStop, struct{}{}, nil) }() // its end is the answer
	select {
	case <-r.ended:
	case <-ctx.Done():
		return fmt.Errorf("%s doesn't shut down: %w", g.name(), ctx.Err())
	}
	s.down(g)
	return nil
}

func (s *Supervisor) kill(ctx context.Context, id int) error {
	g, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if g.running == nil {
		return engine.Refuse(g.name(), engine.ErrNotRunning)
	}
	s.down(g)
	return nil
}

func (s *Supervisor) reboot(ctx context.Context, id int) error {
	g, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if g.running == nil {
		return engine.Refuse(g.name(), engine.ErrNotRunning)
	}
	if err := s.shutDown(ctx, g); err != nil {
		return err
	}
	return s.boot(ctx, g)
}

// exec hands a command to a guest's init. The guest isn't locked meanwhile, so that it can be stopped.
func (s *Supervisor) exec(ctx context.Context, c *wire.Call) (any, error) {
	var x Exec
	if err := c.Args(&x); err != nil {
		return nil, err
	}
	g, err := s.find(ctx, x.ID)
	if err != nil {
		return nil, err
	}
	r := g.running
	g.mu.Unlock()
	if r == nil {
		return nil, engine.Refuse(g.name(), engine.ErrNotRunning)
	}
	var code int
	_, err = r.init.Call(ctx, guestinit.CallExec, guestinit.Exec{Argv: x.Argv, Env: slices.Clone(x.Env)}, &code, c.Files...)
	select {
	case <-r.ended:
		if err != nil && ctx.Err() == nil {
			return nil, engine.Refuse(g.name()+" went down", engine.ErrNotRunning)
		}
	default:
	}
	return code, err
}

func newBootID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
