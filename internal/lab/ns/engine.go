//go:build linux

package ns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/image"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/supervisor"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/wire"
)

// Engine implements engine.Engine.
type Engine struct {
	options Options
	clock   engine.Clock
	log     *slog.Logger
	process *process
	calls   *wire.Client
	conns   conns

	closing sync.Once
	closed  error
}

var _ engine.Engine = (*Engine)(nil)

// New starts a lab's supervisor, with the guests and volumes of Options.Folder, all of them stopped.
func New(o Options) (engine.Engine, error) {
	e := &Engine{options: o, clock: o.Clock, log: o.Log}
	if e.clock == nil {
		e.clock = engine.SystemClock{}
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	cache, err := cacheFolder(o.Cache)
	if err != nil {
		return nil, err
	}
	e.options.Cache = cache
	open, release, err := prepare(e.options)
	if err != nil {
		return nil, err
	}
	if e.process, err = launch(release); err != nil {
		return nil, fmt.Errorf("engine ns: %w", err)
	}
	e.calls = wire.NewClient(e.process.control)
	var opened supervisor.Opened
	if _, err := e.calls.Call(context.Background(), supervisor.CallOpen, open, &opened); err != nil {
		return nil, errors.Join(fmt.Errorf("engine ns: %w", err), e.process.end())
	}
	for _, note := range opened.Notes {
		e.log.Warn("engine ns: " + note)
	}
	return e, nil
}

// Check says why there can be no such engine on this machine, nil if there can be: it starts an empty lab and ends it.
func Check() error {
	e, err := New(Options{})
	if err != nil {
		return err
	}
	return e.Close()
}

// Name is "ns".
func (e *Engine) Name() string { return "ns" }

// Images lists the base images.
func (e *Engine) Images() []string { return image.Names() }

// call makes a call without a result.
func (e *Engine) call(ctx context.Context, method string, args any) error {
	_, err := e.calls.Call(ctx, method, args, nil)
	return err
}

// CreateRoot makes a guest from a base image, which is built if this is its first use on this machine.
func (e *Engine) CreateRoot(ctx context.Context, id int, spec engine.RootSpec) error {
	name := spec.Image
	if name == "" {
		name = e.options.Image
	}
	built, err := image.Ensure(ctx, imageFolder(e.options.Cache), name, e.log)
	if err != nil {
		return fmt.Errorf("%s: %w", engine.Guest(id), err)
	}
	return e.call(ctx, supervisor.CallCreateRoot, supervisor.CreateRoot{ID: id, Spec: spec, Image: supervisor.Image{Key: built.Key, Tar: built.Key + ".tar"}})
}

// Clone copies a root. Both kinds of clone share content until it changes.
func (e *Engine) Clone(ctx context.Context, spec engine.CloneSpec) error {
	return e.call(ctx, supervisor.CallClone, spec)
}

// Configure replaces the configuration; a running guest's network and limits follow at once.
func (e *Engine) Configure(ctx context.Context, id int, cfg engine.Config) error {
	return e.call(ctx, supervisor.CallConfigure, supervisor.Configure{ID: id, Config: cfg})
}

// Start boots.
func (e *Engine) Start(ctx context.Context, id int) error {
	return e.call(ctx, supervisor.CallStart, id)
}

// Stop shuts down.
func (e *Engine) Stop(ctx context.Context, id int) error {
	return e.down(id, e.call(ctx, supervisor.CallStop, id))
}

// Kill takes the guest down at once.
func (e *Engine) Kill(ctx context.Context, id int) error {
	return e.down(id, e.call(ctx, supervisor.CallKill, id))
}

// Reboot is down and up.
func (e *Engine) Reboot(ctx context.Context, id int) error {
	return e.down(id, e.call(ctx, supervisor.CallReboot, id))
}

// down cuts the connections of a guest that went down.
func (e *Engine) down(id int, err error) error {
	if err == nil {
		e.conns.cut(id)
	}
	return err
}

// Inspect reports.
func (e *Engine) Inspect(ctx context.Context, id int) (engine.Status, error) {
	var status supervisor.Status
	_, err := e.calls.Call(ctx, supervisor.CallInspect, id, &status)
	if err == nil && status.Running {
		status.StartedAt = e.clock.Now().Add(-status.Age)
	}
	return status.Status, err
}

// List returns the ids of all guests, ascending.
func (e *Engine) List() []int {
	var ids []int
	_, _ = e.calls.Call(context.Background(), supervisor.CallList, struct{}{}, &ids) // a closed engine has none
	return ids
}

// Snapshot keeps the root and volumes under a name.
func (e *Engine) Snapshot(ctx context.Context, id int, name string, volumes ...string) error {
	return e.call(ctx, supervisor.CallSnapshot, supervisor.Snapshot{ID: id, Name: name, Volumes: volumes})
}

// Rollback puts a snapshot's content back.
func (e *Engine) Rollback(ctx context.Context, id int, name string) error {
	return e.call(ctx, supervisor.CallRollback, supervisor.Snapshot{ID: id, Name: name})
}

// DeleteSnapshot forgets a snapshot.
func (e *Engine) DeleteSnapshot(ctx context.Context, id int, name string) error {
	return e.call(ctx, supervisor.CallDeleteSnapshot, supervisor.Snapshot{ID: id, Name: name})
}

// ResizeRoot sets the root's size, which is only reported.
func (e *Engine) ResizeRoot(ctx context.Context, id int, bytes int64) error {
	return e.call(ctx, supervisor.CallResizeRoot, supervisor.Size{ID: id, Bytes: bytes})
}

// Destroy removes a stopped guest.
func (e *Engine) Destroy(ctx context.Context, id int) error {
	return e.call(ctx, supervisor.CallDestroy, id)
}

// Interfaces lists lo and the NICs of a running guest.
func (e *Engine) Interfaces(ctx context.Context, id int) ([]engine.Interface, error) {
	var all []engine.Interface
	_, err := e.calls.Call(ctx, supervisor.CallInterfaces, id, &all)
	return all, err
}

// Dial connects from the lab's node. The connection is a socket of the lab's network in this process' hands.
func (e *Engine) Dial(ctx context.Context, address string) (net.Conn, error) {
	var dialed supervisor.Dialed
	files, err := e.calls.Call(ctx, supervisor.CallDial, address, &dialed)
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, fmt.Errorf("dial %s: %d sockets came back", address, len(files))
	}
	conn, err := net.FileConn(files[0])
	if err = errors.Join(err, files[0].Close()); err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("dial %s: %T is no TCP connection", address, conn), conn.Close())
	}
	return e.conns.add(dialed.Guest, tcp), nil
}

// SetRules replaces the packet filter's rules, all at once: a text for `nft -f` as package nftrules makes it.
func (e *Engine) SetRules(ctx context.Context, text string) error {
	return e.call(ctx, supervisor.CallSetRules, text)
}

// Contacts are the connections and datagrams that have reached the outside (Options.Outside), oldest first.
func (e *Engine) Contacts(ctx context.Context) ([]engine.Contact, error) {
	var all []engine.Contact
	_, err := e.calls.Call(ctx, supervisor.CallContacts, struct{}{}, &all)
	return all, err
}

// Exec runs a command as root, without SSH.
func (e *Engine) Exec(ctx context.Context, id int, cmd engine.Command) (int, error) {
	if len(cmd.Argv) == 0 {
		return 0, fmt.Errorf("%s: empty command: %w", engine.Guest(id), engine.ErrInvalid)
	}
	streams, err := openStreams(cmd)
	if err != nil {
		return 0, err
	}
	var code int
	_, err = e.calls.Call(ctx, supervisor.CallExec, supervisor.Exec{ID: id, Argv: cmd.Argv, Env: cmd.Env}, &code, streams.theirs...)
	streams.finish()
	return code, err
}

// Export writes a root as a tar stream.
func (e *Engine) Export(ctx context.Context, id int, snapshot string, w io.Writer) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	copied := make(chan error, 1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		_, err := io.Copy(w, read)
		if err != nil {
			cancel(err) // nobody reads on: the other side must not wait for it
		}
		copied <- errors.Join(err, read.Close())
	}()
	_, err = e.calls.Call(ctx, supervisor.CallExport, supervisor.Archive{ID: id, Snapshot: snapshot}, nil, write)
	return errors.Join(err, write.Close(), <-copied)
}

// Import makes a guest from a tar stream.
func (e *Engine) Import(ctx context.Context, id int, r io.Reader) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(write, r)
		copied <- errors.Join(err, write.Close())
	}()
	_, err = e.calls.Call(ctx, supervisor.CallImport, supervisor.Archive{ID: id}, nil, read)
	err = errors.Join(err, read.Close()) // a writer that nobody reads from ends now
	if failed := <-copied; err == nil && failed != nil && !errors.Is(failed, os.ErrClosed) && !isBrokenPipe(failed) {
		err = fmt.Errorf("%s: import: %w", engine.Guest(id), failed)
	}
	return err
}

// Close takes everything down and frees what the engine holds.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		defer cancel()
		e.closed = errors.Join(e.call(ctx, supervisor.CallClose, struct{}{}), e.process.end())
		e.conns.cutAll()
	})
	return e.closed
}

// closePatience bounds how long a lab may take to go down before it is killed.
const closePatience = 20 * time.Second
