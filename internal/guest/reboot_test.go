//go:build unix

package guest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// bootingGuest is a guest whose boot id the test sets.
func bootingGuest(t *testing.T) (*server, *Pool, Target, *atomic.Value) {
	t.Helper()
	var id atomic.Value
	id.Store("old\n")
	s, p, target := guestAndPool(t, func(s *server) {
		s.exec = func(_ string, ch *execChannel) {
			_, _ = ch.Write([]byte(id.Load().(string)))
			if id.Load() == "" {
				_, _ = ch.Stderr().Write([]byte("cat: no such file"))
				ch.exit(1)
				return
			}
			ch.exit(0)
		}
	})
	return s, p, target, &id
}

func TestBootIDIsReadFromTheGuest(t *testing.T) {
	t.Parallel()
	_, p, target, id := bootingGuest(t)
	if got, err := p.BootID(t.Context(), target); err != nil || got != "old" {
		t.Errorf("got %q, %v", got, err)
	}
	id.Store("")
	if _, err := p.BootID(t.Context(), target); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
}

func TestWaitRebootSeesTheGuestGoDownAndComeUpWithANewBootID(t *testing.T) {
	t.Parallel()
	s, p, target, id := bootingGuest(t)
	address := s.address()
	done := make(chan error)
	go func() {
		_, err := p.WaitReboot(t.Context(), target, "old")
		done <- err
	}()
	awaitCommands(s, 2) // it is up, with the old id
	s.stop()
	id.Store("new\n")
	s.listen(address)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got, err := p.BootID(t.Context(), target); err != nil || got != "new" {
		t.Errorf("got %q, %v", got, err)
	}
}

func awaitCommands(s *server, n int32) {
	for s.commands.Load() < n {
		time.Sleep(time.Millisecond)
	}
}

func TestWaitRebootTakesANewBootIDWithoutHavingSeenTheGuestDown(t *testing.T) {
	t.Parallel()
	_, p, target, _ := bootingGuest(t)
	if _, err := p.WaitReboot(t.Context(), target, "older"); err != nil {
		t.Error(err)
	}
}

func TestWaitRebootIsNotFooledByABrokenConnection(t *testing.T) {
	t.Parallel()
	s, p, target, _ := bootingGuest(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := p.WaitReboot(ctx, target, "old")
		done <- err
	}()
	awaitCommands(s, 1)
	s.cut() // the network, not the guest
	awaitCommands(s, s.commands.Load()+2)
	cancel()
	err := <-done
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "did not restart") {
		t.Errorf("got %v", err)
	}
}

func TestWaitRebootSaysHowFarItGot(t *testing.T) {
	t.Parallel()
	t.Run("stayed up", func(t *testing.T) {
		t.Parallel()
		s, p, target, _ := bootingGuest(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { awaitCommands(s, 2); cancel() }()
		if _, err := p.WaitReboot(ctx, target, "old"); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stayed up") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("stayed down", func(t *testing.T) {
		t.Parallel()
		s, p, target, _ := bootingGuest(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		s.stop()
		if _, err := p.WaitReboot(ctx, target, "old"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "went down") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("without a boot id", func(t *testing.T) {
		t.Parallel()
		_, p, target, id := bootingGuest(t)
		id.Store("")
		if _, err := p.WaitReboot(t.Context(), target, "old"); err == nil || !strings.Contains(err.Error(), "unable to see") {
			t.Errorf("got %v", err)
		}
	})
}

func TestWaitRebootNoticesAGuestThatFellSilent(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	s := startServer(t, public, func(s *server) {
		s.exec = func(_ string, ch *execChannel) {
			_, _ = ch.Write([]byte("new\n"))
			ch.exit(0)
		}
	})
	timing := quick
	timing.Probe = 30 * time.Millisecond
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}, Timing: timing})
	target := s.target("1")
	if _, err := p.WaitReady(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	s.mute.Store(true) // no FIN, no answer: the container was stopped hard
	done := make(chan error)
	go func() {
		_, err := p.WaitReboot(t.Context(), target, "old")
		done <- err
	}()
	for s.logins.Load() < 2 { // it has given the connection up
		time.Sleep(time.Millisecond)
	}
	s.mute.Store(false)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
