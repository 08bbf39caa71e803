//go:build linux

package guestinit

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/wire"
)

// A guest's init is this same program under another name, so it needs no helper binary, and a test binary can be one.
func init() {
	if len(os.Args) > 0 && os.Args[0] == Argv0 {
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, "init:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// run serves the supervisor until it is gone, and with it, as this is process 1, everything in the guest.
func run() error {
	control, err := wire.Conn(os.NewFile(ControlFD, "control"))
	if err != nil {
		return err
	}
	p := newProcesses()
	go func() {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM, syscall.SIGPWR, syscall.SIGINT, syscall.SIGUSR2)
		<-asked // poweroff, halt and reboot in the guest come as signals to process 1
		p.stopAll()
		os.Exit(0)
	}()
	wire.Serve(control, map[string]wire.Handler{
		CallSetup: wire.Do(func(_ context.Context, s Setup) error { return setUp(s) }),
		CallStart: wire.Do(func(_ context.Context, s Start) error { return p.start(s) }),
		CallExec:  p.exec,
		CallCount: wire.With(func(context.Context, struct{}) (int, error) { return count() }),
		CallPause: wire.Do(func(_ context.Context, stop bool) error {
			signal := unix.SIGCONT
			if stop {
				signal = unix.SIGSTOP
			}
			if err := unix.Kill(-1, signal); err != nil && err != unix.ESRCH {
				return err
			}
			return nil
		}),
		CallStop: wire.Do(func(context.Context, struct{}) error {
			p.stopAll()
			os.Exit(0)
			return nil
		}),
	})
	return nil
}
