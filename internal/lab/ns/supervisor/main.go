//go:build linux

package supervisor

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	// A guest's init is this binary too; without the import it wouldn't know.
	_ "github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/guestinit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/wire"
)

// A supervisor is this same program under another name, so it needs no helper binary, and a test binary can be one.
func init() {
	if len(os.Args) == 0 || os.Args[0] != Argv0 {
		return
	}
	var err error
	if len(os.Args) > 1 && os.Args[1] == Wait {
		err = waitForMap()
	} else {
		err = run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// waitForMap waits for the map of the user namespace, then starts over: only a program that is executed as a mapped root
// has a root's capabilities.
func waitForMap() error {
	ready := os.NewFile(ReadyFD, "ready")
	if _, err := io.Copy(io.Discard, ready); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", []string{Argv0}, os.Environ())
}

// run serves until the outer half is gone. Its end takes the whole process namespace along.
func run() error {
	control, err := wire.Conn(os.NewFile(ControlFD, "control"))
	if err != nil {
		return err
	}
	unix.CloseOnExec(ReadyFD)
	unix.CloseOnExec(LockFD)
	s := newSupervisor()
	handlers := s.handlers()
	for name, h := range handlers {
		if name != CallOpen && name != CallRemove {
			handlers[name] = s.afterOpen(h)
		}
	}
	wire.Serve(control, handlers)
	s.close()
	return nil
}

// afterOpen holds a call back until the lab is open.
func (s *Supervisor) afterOpen(h wire.Handler) wire.Handler {
	return func(ctx context.Context, c *wire.Call) (any, error) {
		select {
		case <-s.opened:
			return h(ctx, c)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ids is for calls that need nothing but a guest's number.
func ids(do func(context.Context, int) error) wire.Handler { return wire.Do(do) }

func (s *Supervisor) handlers() map[string]wire.Handler {
	return map[string]wire.Handler{
		CallOpen:           wire.With(s.open),
		CallClose:          wire.Do(func(context.Context, struct{}) error { s.close(); return nil }),
		CallList:           wire.With(func(context.Context, struct{}) ([]int, error) { return s.list(), nil }),
		CallCreateRoot:     wire.Do(s.createRoot),
		CallClone:          wire.Do(s.clone),
		CallConfigure:      wire.Do(s.configure),
		CallStart:          ids(s.start),
		CallStop:           ids(s.stop),
		CallKill:           ids(s.kill),
		CallReboot:         ids(s.reboot),
		CallInspect:        wire.With(s.inspect),
		CallSnapshot:       wire.Do(s.snapshot),
		CallRollback:       wire.Do(s.rollback),
		CallDeleteSnapshot: wire.Do(s.deleteSnapshot),
		CallResizeRoot:     wire.Do(s.resizeRoot),
		CallDestroy:        ids(s.destroy),
		CallAllocVolume:    wire.Do(s.allocVolume),
		CallCopyVolume:     wire.Do(s.copyVolume),
		CallRenameVolume:   wire.Do(s.renameVolume),
		CallResizeVolume:   wire.Do(s.resizeVolume),
		CallAttachVolume:   wire.Do(s.attachVolume),
		CallDetachVolume:   wire.Do(s.detachVolume),
		CallDestroyVolume:  wire.Do(s.destroyVolume),
		CallInterfaces:     wire.With(s.interfaces),
		CallDial:           s.dial,
		CallExec:           s.exec,
		CallExport:         s.export,
		CallImport:         s.importRoot,
		CallSetRules:       wire.Do(s.setRules),
		CallRemove:         wire.Do(func(_ context.Context, folder string) error { return os.RemoveAll(folder) }),
		CallContacts: wire.With(func(context.Context, struct{}) ([]engine.Contact, error) {
			if s.outside == nil {
				return nil, nil
			}
			return s.outside.list(), nil
		}),
	}
}
