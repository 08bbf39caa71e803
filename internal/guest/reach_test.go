package guest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

func TestWhatAGuestReachesIsTriedFromInside(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	inside, listener := l.start(t, 101), l.start(t, 102)
	ready, err := l.pool.WaitReady(t.Context(), inside)
	if err != nil {
		t.Fatal(err)
	}
	inside.HostKey = ready.HostKey
	listening, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		_, _ = l.engine.Exec(listening, 102, engine.Command{Argv: []string{"nc", "-l", "-k", "-p", "9999"}, Stdin: strings.NewReader("")})
	}()
	for {
		if conn, err := l.engine.Dial(t.Context(), listener.Address+":9999"); err == nil {
			_ = conn.Close()
			break
		}
		time.Sleep(time.Millisecond) // a test's own listener
	}
	l.engine.SetFilter(func(c engine.Connection) engine.Verdict {
		switch {
		case c.From != 101:
			return engine.Accepted
		case c.Dest.Port() == 81:
			return engine.Dropped
		case c.Dest.Port() == 82:
			return engine.Rejected
		}
		return engine.Accepted
	})
	for address, want := range map[string]guest.Reach{
		listener.Address + ":9999": guest.ReachOpen,
		listener.Address + ":80":   guest.ReachRefused, // nobody listens
		listener.Address + ":81":   guest.ReachSilent,
		listener.Address + ":82":   guest.ReachRefused,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		got, err := l.pool.ReachFrom(ctx, inside, address)
		cancel()
		if got != want || err != nil {
			t.Errorf("%s from inside: %s, %v; want %s", address, got, err, want)
		}
	}
	// From here it is seen through the jump host, which the filter isn't about.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if got, err := l.pool.ReachFromHere(ctx, listener.Address+":9999"); got != guest.ReachOpen || err != nil {
		t.Errorf("from here: %s, %v", got, err)
	}
}
