package pve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestAGetIsRepeatedUntilTheServerAnswers(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 502, 503, 504, 595, 596, 599} {
		var n atomic.Int32
		s := serve(t, func(w http.ResponseWriter, _ request) {
			if n.Add(1) < 4 {
				rawAnswer(w, status, "not now", "")
				return
			}
			data(w, map[string]string{"version": "9.2.11", "release": "9.2"})
		})
		c, clock := testClient(t, s.URL)
		if _, err := c.Version(t.Context()); err != nil {
			t.Errorf("%d: %v", status, err)
		}
		if len(clock.sleeps) != 3 || clock.sleeps[0] >= clock.sleeps[1] || clock.sleeps[1] >= clock.sleeps[2] {
			t.Errorf("%d: pauses %v, want three that grow", status, clock.sleeps)
		}
	}
}

func TestAGetIsRepeatedWhenTheConnectionBreaks(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(http.ResponseWriter){
		"no answer": drop,
		"answer that breaks off": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"data":`))
		},
	} {
		var n atomic.Int32
		s := serve(t, func(w http.ResponseWriter, _ request) {
			if n.Add(1) < 3 {
				broken(w)
				return
			}
			data(w, []any{})
		})
		c, _ := testClient(t, s.URL)
		if _, err := c.Nodes(t.Context()); err != nil || n.Load() != 3 {
			t.Errorf("%s: %v after %d requests", name, err, n.Load())
		}
	}
}

func TestRetriesEndAtTheirBound(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) { rawAnswer(w, 596, "Broken pipe", "") })
	c, clock := testClient(t, s.URL, func(cfg *Config) { cfg.RetryFor = 4 * time.Second })
	begin := clock.Now()
	_, err := c.Nodes(t.Context())
	if !Means(err, NodeUnreachable) {
		t.Errorf("got %v", err)
	}
	if waited := clock.Now().Sub(begin); waited > 4*time.Second || waited < 2*time.Second {
		t.Errorf("gave up after %s, want at most 4s", waited)
	}
	if !strings.Contains(err.Error(), "no TLS setting of the client changes it") {
		t.Errorf("a 596 must say that it is between the nodes: %v", err)
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	s := serve(t, func(w http.ResponseWriter, _ request) {
		if n.Add(1) == 1 {
			rawAnswer(w, 429, "Too Many Requests", "", "Retry-After: 7")
			return
		}
		data(w, []any{})
	})
	c, clock := testClient(t, s.URL)
	if _, err := c.Nodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(clock.sleeps) != 1 || clock.sleeps[0] != 7*time.Second {
		t.Errorf("pauses %v, want 7s", clock.sleeps)
	}
}

func TestA500IsNotRepeated(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) { refuse(w, 500, "CT is locked (backup)", nil) })
	c, _ := testClient(t, s.URL)
	_, err := c.LXCStatus(t.Context(), "pve1", 100)
	var e *Error
	if !errors.As(err, &e) || e.Meaning != Locked || e.LockedBy != "backup" || len(s.seen()) != 1 {
		t.Errorf("%v after %d requests", err, len(s.seen()))
	}
}

func TestAWriteThatMayHaveArrivedIsNeverRepeated(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter){
		"dropped": drop,
		"596":     func(w http.ResponseWriter) { rawAnswer(w, 596, "Broken pipe", "") },
		"503":     func(w http.ResponseWriter) { rawAnswer(w, 503, "Service Unavailable", "") },
	} {
		s := serve(t, func(w http.ResponseWriter, _ request) { answer(w) })
		c, _ := testClient(t, s.URL)
		for verb, call := range map[string]func() error{
			"clone": func() error { _, err := c.CloneLXC(t.Context(), "pve1", 9000, CloneOptions{NewID: 100}); return err },
			"start": func() error { _, err := c.StartLXC(t.Context(), "pve1", 100); return err },
			"update": func() error {
				return c.UpdateLXC(t.Context(), "pve1", 100, LXCUpdate{Set: map[string]string{"cores": "2"}})
			},
			"delete": func() error { _, err := c.DeleteLXC(t.Context(), "pve1", 100, DeleteOptions{}); return err },
		} {
			before := len(s.seen())
			err := call()
			if got := len(s.seen()) - before; got != 1 {
				t.Errorf("%s, %s: sent %d times", name, verb, got)
			}
			if !LostAnswer(err) {
				t.Errorf("%s, %s: the caller must learn that it may have been carried out: %v", name, verb, err)
			}
		}
	}
}

func TestAnAnswerThatSaysNoIsNotLost(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		&Error{Status: 500, Meaning: Locked}, &Error{Status: 400}, &Error{Status: 595}, &TransportError{Sent: false, Err: errors.New("refused")}, nil,
	} {
		if LostAnswer(err) {
			t.Errorf("%v counts as lost", err)
		}
	}
}

// A write whose connection never came up is as good as not tried.
func TestAWriteIsRepeatedWhileNothingListens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, clock := testClient(t, "http://"+address)
	_, err = c.StartLXC(t.Context(), "pve1", 100)
	var te *TransportError
	if !errors.As(err, &te) || te.Sent || te.Attempts < 3 {
		t.Errorf("got %#v: %v", te, err)
	}
	if LostAnswer(err) {
		t.Error("nothing was sent, so no answer is lost")
	}
	if len(clock.sleeps) < 2 {
		t.Errorf("pauses %v", clock.sleeps)
	}
}

func TestARequestHasATimeOfItsOwnAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	release := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, _ request) {
		if n.Add(1) == 1 {
			<-release
			return
		}
		data(w, []any{})
	})
	t.Cleanup(func() { close(release) }) // before the server closes
	c, _ := testClient(t, s.URL, func(cfg *Config) { cfg.RequestTimeout = 150 * time.Millisecond })
	if _, err := c.Nodes(t.Context()); err != nil || n.Load() != 2 {
		t.Errorf("%v after %d requests", err, n.Load())
	}
	if n.Store(0); true {
		_, err := c.StartLXC(t.Context(), "pve1", 100)
		if !LostAnswer(err) || !strings.Contains(err.Error(), "no answer in time (150ms)") || n.Load() != 1 {
			t.Errorf("a write out of time: %v after %d requests", err, n.Load())
		}
	}
}

func TestACallerThatGivesUpEndsTheRetries(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	because := errors.New("the user pressed ^C")
	s := serve(t, func(w http.ResponseWriter, _ request) {
		cancel(because)
		rawAnswer(w, 503, "Service Unavailable", "")
	})
	c, _ := testClient(t, s.URL)
	_, err := c.Nodes(ctx)
	if !errors.Is(err, because) || len(s.seen()) != 1 {
		t.Errorf("%v after %d requests", err, len(s.seen()))
	}
}
