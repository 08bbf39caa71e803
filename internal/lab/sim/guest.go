package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/tree"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// guest is a container: its trees and, while it runs, its machine.
type guest struct {
	id     int
	engine *Engine

	mu             sync.Mutex
	root           *tree.Tree
	snapshots      []*snapshot
	volumes        map[string]engine.Mount
	config         engine.Config
	sharedHostKeys bool // clones keep the SSH host keys
	plain          bool // nothing but a unit in the root makes host keys at boot, and clones keep them
	destroyed      bool

	machine *machine.Machine // nil when stopped
	host    *host            // its place in the network, with machine
}

func (e *Engine) newGuest(id int, root *tree.Tree) *guest {
	return &guest{id: id, engine: e, root: root, volumes: map[string]engine.Mount{}}
}

func (g *guest) name() string { return engine.Guest(g.id) }

// CreateRoot makes a guest from a base image.
func (e *Engine) CreateRoot(ctx context.Context, id int, spec engine.RootSpec) error {
	if err := e.free(ctx, id); err != nil {
		return err
	}
	base, err := e.image(spec.Image)
	if err != nil {
		return err
	}
	root := base.Copy()
	size := spec.Bytes
	if size == 0 {
		size = defaultRootBytes
	}
	root.Resize(size)
	if len(spec.AuthorizedKeys) > 0 {
		f := vfs.New(&vfs.Mount{Path: "/", Tree: root})
		err := errors.Join(f.MkdirAll(vfs.Root, "/root/.ssh", 0o700),
			f.WriteFile(vfs.Root, "/root/.ssh/authorized_keys", []byte(strings.Join(spec.AuthorizedKeys, "\n")+"\n"), 0o600))
		if err != nil {
			return fmt.Errorf("guest %d: authorized keys: %w", id, err)
		}
	}
	g := e.newGuest(id, root)
	g.sharedHostKeys, g.plain = spec.SharedHostKeys, spec.Plain
	if g.plain {
		if err := e.ensureHostKey(vfs.New(&vfs.Mount{Path: "/", Tree: root})); err != nil {
			return fmt.Errorf("guest %d: host key: %w", id, err)
		}
	}
	return e.enter(g)
}

// Clone copies a root. Both kinds of clone share content until it changes.
func (e *Engine) Clone(ctx context.Context, spec engine.CloneSpec) error {
	if err := e.free(ctx, spec.To); err != nil {
		return err
	}
	from, err := e.find(ctx, spec.From)
	if err != nil {
		return err
	}
	source := from.root
	if spec.Snapshot != "" {
		s := from.snapshot(spec.Snapshot)
		if s == nil {
			from.mu.Unlock()
			return engine.Refuse(fmt.Sprintf("snapshot %q of guest %d", spec.Snapshot, spec.From), engine.ErrNotFound)
		}
		source = s.root
	}
	g := e.newGuest(spec.To, source.Copy())
	g.sharedHostKeys, g.plain = from.sharedHostKeys, from.plain
	from.mu.Unlock()
	if err := clearMachineID(g.root); err != nil {
		return fmt.Errorf("guest %d: machine id: %w", spec.To, err)
	}
	if !g.plain && !g.sharedHostKeys && !e.options.SharedHostKeys {
		if err := dropHostKeys(g.root); err != nil {
			return fmt.Errorf("guest %d: host keys: %w", spec.To, err)
		}
	}
	return e.enter(g)
}

// Configure replaces the configuration; a running guest's network follows at once.
func (e *Engine) Configure(ctx context.Context, id int, cfg engine.Config) error {
	if err := check(cfg); err != nil {
		return fmt.Errorf("guest %d: %w", id, err)
	}
	g, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	cfg.NICs, cfg.DNSServers = slices.Clone(cfg.NICs), slices.Clone(cfg.DNSServers)
	g.config = cfg
	if g.machine != nil {
		g.machine.Configure(cfg)
		e.network.plug(g.host, cfg.NICs)
		if err := writeResolver(g.machine.FS, cfg); err != nil {
			return fmt.Errorf("guest %d: %w", id, err)
		}
	}
	e.changed()
	return nil
}

// Start boots.
func (e *Engine) Start(ctx context.Context, id int) error {
	g, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if g.machine != nil {
		return engine.Refuse(g.name(), engine.ErrRunning)
	}
	return g.boot()
}

// Stop shuts down.
func (e *Engine) Stop(ctx context.Context, id int) error { return e.halt(ctx, id) }

// Kill takes the guest down at once.
func (e *Engine) Kill(ctx context.Context, id int) error { return e.halt(ctx, id) }

func (e *Engine) halt(ctx context.Context, id int) error {
	g, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if g.machine == nil {
		return engine.Refuse(g.name(), engine.ErrNotRunning)
	}
	g.down(ctx)
	return nil
}

// Reboot is down and up.
func (e *Engine) Reboot(ctx context.Context, id int) error {
	g, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if g.machine == nil {
		return engine.Refuse(g.name(), engine.ErrNotRunning)
	}
	g.down(ctx)
	return g.boot()
}

// down ends the machine; the guest is locked.
func (g *guest) down(ctx context.Context) {
	if g.machine == nil {
		return
	}
	g.engine.network.unplug(g.host)
	g.machine.Halt(ctx)
	g.machine, g.host = nil, nil
	g.engine.changed()
}

// Inspect reports.
func (e *Engine) Inspect(ctx context.Context, id int) (engine.Status, error) {
	g, err := e.find(ctx, id)
	if err != nil {
		return engine.Status{}, err
	}
	defer g.mu.Unlock()
	s := engine.Status{Volumes: maps.Clone(g.volumes)}
	s.RootBytes, s.RootSize = g.root.Usage()
	for _, snap := range g.snapshots {
		s.Snapshots = append(s.Snapshots, snap.name)
	}
	if m := g.machine; m != nil {
		s.Running, s.BootID, s.StartedAt = true, m.BootID, m.StartedAt
		s.Processes, s.MemoryBytes = len(m.Processes()), m.MemoryUsed()
	}
	return s, nil
}

// ResizeRoot sets the root's size.
func (e *Engine) ResizeRoot(ctx context.Context, id int, bytes int64) error {
	g, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	g.root.Resize(bytes)
	e.changed()
	return nil
}

// Destroy removes a stopped guest.
func (e *Engine) Destroy(ctx context.Context, id int) error {
	g, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if g.machine != nil {
		return engine.Refuse(g.name(), engine.ErrRunning)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for name := range g.volumes {
		if v := e.volumes[name]; v != nil {
			v.guest = 0
		}
	}
	g.destroyed = true
	delete(e.guests, id)
	e.changed()
	return nil
}

// Exec runs a command as root, without SSH.
func (e *Engine) Exec(ctx context.Context, id int, cmd engine.Command) (int, error) {
	g, err := e.find(ctx, id)
	if err != nil {
		return 0, err
	}
	m := g.machine
	g.mu.Unlock()
	if m == nil {
		return 0, engine.Refuse(g.name(), engine.ErrNotRunning)
	}
	if len(cmd.Argv) == 0 {
		return 0, fmt.Errorf("%s: empty command: %w", g.name(), engine.ErrInvalid)
	}
	u, ok := m.User("root")
	if !ok {
		u = machine.User{Name: "root", Home: "/root", Shell: "/bin/sh"}
	}
	in, stop, err := stdin(m.Down, cmd.Stdin)
	if err != nil {
		return 0, err
	}
	defer stop()
	run, cancel := context.WithCancelCause(m.Down)
	defer context.AfterFunc(ctx, func() { cancel(machine.Killed(machine.SIGKILL)) })()
	out, errw := shell.NewStream(orDiscard(cmd.Stdout)), shell.NewStream(orDiscard(cmd.Stderr))
	status := e.programs.Run(run, m, shell.Program{Argv: cmd.Argv, Env: append(shell.UserEnv(u), cmd.Env...), Dir: "/", Umask: 0o022,
		Cred: m.Cred(u), PPID: 1, Stdin: in, Stdout: out, Stderr: errw})
	out.Cut(io.ErrClosedPipe)
	errw.Cut(io.ErrClosedPipe)
	if err := ctx.Err(); err != nil {
		return status, err
	}
	if m.Down.Err() != nil {
		return status, engine.Refuse(g.name()+" went down", engine.ErrNotRunning)
	}
	return status, nil
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}
