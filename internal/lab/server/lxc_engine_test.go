package server

import (
	"context"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// recordingEngine is an engine without guests: it keeps what it was told, and refuses what an engine must refuse. A
// guest's tree is one string, so that copies and rollbacks can be told apart.
type recordingEngine struct {
	mu      sync.Mutex
	guests  map[int]*recordedGuest
	volumes map[string]*recordedVolume
}

type recordedGuest struct {
	running   bool
	config    engine.Config
	tree      string
	snapshots map[string]string
	mounts    map[string]engine.Mount
	keys      []string
}

type recordedVolume struct {
	bytes   int64
	content string
}

var _ engine.Engine = (*recordingEngine)(nil)

func newRecordingEngine() *recordingEngine {
	return &recordingEngine{guests: map[int]*recordedGuest{}, volumes: map[string]*recordedVolume{}}
}

func (e *recordingEngine) with(id int, do func(g *recordedGuest) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.guests[id]
	if g == nil {
		return engine.Refuse(engine.Guest(id), engine.ErrNotFound)
	}
	return do(g)
}

// write changes a guest's tree, as somebody inside would.
func (e *recordingEngine) write(id int, tree string) {
	_ = e.with(id, func(g *recordedGuest) error { g.tree = tree; return nil })
}

// read is a guest's tree, "" if there is no guest.
func (e *recordingEngine) read(id int) (tree string) {
	_ = e.with(id, func(g *recordedGuest) error { tree = g.tree; return nil })
	return tree
}

// see is a copy of what the engine knows of a guest; nil if it has none.
func (e *recordingEngine) see(id int) *recordedGuest {
	e.mu.Lock()
	defer e.mu.Unlock()
	if g := e.guests[id]; g != nil {
		seen := *g
		seen.mounts = maps.Clone(g.mounts)
		return &seen
	}
	return nil
}

func (e *recordingEngine) add(id int, tree string, keys []string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.guests[id] != nil {
		return engine.Refuse(engine.Guest(id), engine.ErrExists)
	}
	e.guests[id] = &recordedGuest{tree: tree, snapshots: map[string]string{}, mounts: map[string]engine.Mount{}, keys: keys}
	return nil
}

func (e *recordingEngine) Name() string     { return "recording" }
func (e *recordingEngine) Images() []string { return []string{"debian"} }
func (e *recordingEngine) Close() error     { return nil }

func (e *recordingEngine) CreateRoot(_ context.Context, id int, spec engine.RootSpec) error {
	return e.add(id, "fresh", spec.AuthorizedKeys)
}

func (e *recordingEngine) Clone(_ context.Context, spec engine.CloneSpec) error {
	var tree string
	err := e.with(spec.From, func(g *recordedGuest) error {
		tree = g.tree
		if spec.Snapshot != "" {
			tree = g.snapshots[spec.Snapshot]
		}
		return nil
	})
	if err != nil {
		return err
	}
	return e.add(spec.To, tree, nil)
}

func (e *recordingEngine) Configure(_ context.Context, id int, cfg engine.Config) error {
	return e.with(id, func(g *recordedGuest) error { g.config = cfg; return nil })
}

func (e *recordingEngine) Start(_ context.Context, id int) error {
	return e.with(id, func(g *recordedGuest) error {
		if g.running {
			return engine.Refuse(engine.Guest(id), engine.ErrRunning)
		}
		g.running = true
		return nil
	})
}

func (e *recordingEngine) Stop(ctx context.Context, id int) error { return e.Kill(ctx, id) }

func (e *recordingEngine) Kill(_ context.Context, id int) error {
	return e.with(id, func(g *recordedGuest) error {
		if !g.running {
			return engine.Refuse(engine.Guest(id), engine.ErrNotRunning)
		}
		g.running = false
		return nil
	})
}

func (e *recordingEngine) Reboot(context.Context, int) error { return nil }

func (e *recordingEngine) Inspect(_ context.Context, id int) (out engine.Status, err error) {
	err = e.with(id, func(g *recordedGuest) error {
		out = engine.Status{Running: g.running, Volumes: maps.Clone(g.mounts), StartedAt: time.Now()}
		return nil
	})
	return out, err
}

func (e *recordingEngine) List() []int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.guests))
}

func (e *recordingEngine) Snapshot(_ context.Context, id int, name string, _ ...string) error {
	return e.with(id, func(g *recordedGuest) error { g.snapshots[name] = g.tree; return nil })
}

func (e *recordingEngine) Rollback(_ context.Context, id int, name string) error {
	return e.with(id, func(g *recordedGuest) error {
		if g.running {
			return engine.Refuse(engine.Guest(id), engine.ErrRunning)
		}
		g.tree = g.snapshots[name]
		return nil
	})
}

func (e *recordingEngine) DeleteSnapshot(_ context.Context, id int, name string) error {
	return e.with(id, func(g *recordedGuest) error { delete(g.snapshots, name); return nil })
}

func (e *recordingEngine) ResizeRoot(context.Context, int, int64) error { return nil }

func (e *recordingEngine) Destroy(_ context.Context, id int) error {
	err := e.with(id, func(g *recordedGuest) error {
		if g.running {
			return engine.Refuse(engine.Guest(id), engine.ErrRunning)
		}
		return nil
	})
	if err == nil {
		e.mu.Lock()
		delete(e.guests, id)
		e.mu.Unlock()
	}
	return err
}

func (e *recordingEngine) withVolume(name string, do func(v *recordedVolume) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := e.volumes[name]
	if v == nil {
		return engine.Refuse(name, engine.ErrNotFound)
	}
	return do(v)
}

func (e *recordingEngine) AllocVolume(_ context.Context, name string, bytes int64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.volumes[name] != nil {
		return engine.Refuse(name, engine.ErrExists)
	}
	e.volumes[name] = &recordedVolume{bytes: bytes}
	return nil
}

func (e *recordingEngine) CopyVolume(_ context.Context, from, to string) error {
	var copied recordedVolume
	err := e.withVolume(from, func(v *recordedVolume) error { copied = *v; return nil })
	if err == nil {
		e.mu.Lock()
		e.volumes[to] = &copied
		e.mu.Unlock()
	}
	return err
}

func (e *recordingEngine) RenameVolume(_ context.Context, from, to string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.volumes[from] == nil {
		return engine.Refuse(from, engine.ErrNotFound)
	}
	e.volumes[to] = e.volumes[from]
	delete(e.volumes, from)
	return nil
}

func (e *recordingEngine) ResizeVolume(_ context.Context, name string, bytes int64) error {
	return e.withVolume(name, func(v *recordedVolume) error { v.bytes = bytes; return nil })
}

func (e *recordingEngine) AttachVolume(_ context.Context, id int, name string, at engine.Mount) error {
	if err := e.withVolume(name, func(*recordedVolume) error { return nil }); err != nil {
		return err
	}
	return e.with(id, func(g *recordedGuest) error { g.mounts[name] = at; return nil })
}

func (e *recordingEngine) DetachVolume(_ context.Context, id int, name string) error {
	return e.with(id, func(g *recordedGuest) error { delete(g.mounts, name); return nil })
}

func (e *recordingEngine) DestroyVolume(_ context.Context, name string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.volumes[name] == nil {
		return engine.Refuse(name, engine.ErrNotFound)
	}
	delete(e.volumes, name)
	return nil
}

func (e *recordingEngine) Interfaces(_ context.Context, id int) (out []engine.Interface, err error) {
	err = e.with(id, func(g *recordedGuest) error {
		out = []engine.Interface{{Name: "lo", MAC: "00:00:00:00:00:00", Addresses: []string{"127.0.0.1/8", "::1/128"}}}
		for _, nic := range g.config.NICs {
			iface := engine.Interface{Name: nic.Name, MAC: strings.ToLower(nic.MAC)}
			if nic.IPv4 == "dhcp" {
				iface.Addresses = []string{"10.10.10.77/24"}
			} else if nic.IPv4 != "" {
				iface.Addresses = []string{nic.IPv4}
			}
			out = append(out, iface)
		}
		return nil
	})
	return out, err
}

func (e *recordingEngine) Dial(context.Context, string) (net.Conn, error) {
	return nil, engine.ErrInvalid
}

func (e *recordingEngine) Exec(context.Context, int, engine.Command) (int, error) { return 0, nil }

func (e *recordingEngine) Export(_ context.Context, id int, _ string, w io.Writer) error {
	return e.with(id, func(g *recordedGuest) error { _, err := io.WriteString(w, g.tree); return err })
}

func (e *recordingEngine) Import(_ context.Context, id int, r io.Reader) error {
	tree, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return e.add(id, string(tree), nil)
}
