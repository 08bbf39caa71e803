package guest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const bootIDFile = "/proc/sys/kernel/random/boot_id"

// BootID reads the guest's boot id, a UUID that is new after each start (LXC
// gives each container its own).
func (p *Pool) BootID(ctx context.Context, target Target) (string, error) {
	res, err := p.Exec(ctx, target, Command{Path: "cat", Args: []string{bootIDFile}, StdoutLimit: 256, StderrLimit: 1024})
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(res.Stdout))
	if res.ExitCode != 0 || id == "" {
		return "", &bootIDError{fmt.Sprintf("%s shows no boot id in %s (exit code %d): %s", target, bootIDFile, res.ExitCode, strings.TrimSpace(string(res.Stderr)))}
	}
	return id, nil
}

// bootIDError is an answer of a guest that is up, as opposed to none.
type bootIDError struct{ text string }

func (e *bootIDError) Error() string { return e.text }

// WaitReboot waits until the guest is up again with another boot id than old,
// by a machine of two states: down seen (or another boot id), then up. The
// error says how far it got. It is bounded by ctx and, once the guest was seen
// down, by Config.Timeout.
//
// A guest that stays reachable with the old boot id hasn't restarted, however
// long it takes; one that was seen down and comes up with the old id (its
// network went, not the guest) hasn't either.
func (p *Pool) WaitReboot(ctx context.Context, target Target, old string) (Ready, error) {
	w := &wait{timing: p.cfg.Timing, start: time.Now()}
	down := false
	for {
		id, err := p.probeBootID(ctx, target)
		var answer *bootIDError
		switch {
		case err == nil && id != old:
			return p.WaitReady(ctx, target) // over the connection just made
		case errors.As(err, &answer), hopeless(err):
			return Ready{}, fmt.Errorf("unable to see whether %s restarted: %w", target, err)
		case err != nil && ctx.Err() == nil:
			down = true
			p.Disconnect(target) // nothing of the old boot may be waited on any longer
			if _, err := p.WaitReady(ctx, target); err != nil {
				return Ready{}, fmt.Errorf("%s went down for its restart, but didn't come up: %w", target, err)
			}
			continue
		}
		timer := time.NewTimer(w.poll())
		select {
		case <-timer.C:
			continue
		case <-ctx.Done():
			timer.Stop()
		}
		waited := time.Since(w.start).Round(time.Millisecond)
		if down {
			return Ready{}, fmt.Errorf("%s did not restart within %s: it was out of reach for a time, but came back with the same boot id %s: %w", target, waited, old, ctx.Err())
		}
		return Ready{}, fmt.Errorf("%s did not restart within %s: it stayed up all the time with boot id %s: %w", target, waited, old, ctx.Err())
	}
}

// probeBootID is a BootID for a guest that may be on its way down, where an
// open connection just falls silent. There is no command to be stopped then,
// only a connection to be given up.
func (p *Pool) probeBootID(ctx context.Context, target Target) (string, error) {
	silent := time.AfterFunc(p.cfg.Timing.Probe, func() { p.Disconnect(target) })
	defer silent.Stop()
	return p.BootID(ctx, target)
}

// hopeless says that an error won't go away by waiting: a guest that comes up
// has the same host key as before.
func hopeless(err error) bool {
	var changed *HostKeyChanged
	var jump *JumpError
	return errors.As(err, &changed) || errors.As(err, &jump) && jump.Final ||
		errors.Is(err, ErrNoKey) || errors.Is(err, ErrClosed)
}
