package shell

import (
	"io"
	"sync"
)

// Stream is a session's output. Like a pipe it stays open while a background job that writes to it runs, so a session
// can end when the last writer has gone, as sshd's do.
type Stream struct {
	w io.Writer

	mu     sync.Mutex
	holds  map[int]bool
	closed chan struct{}
	done   bool
}

// NewStream makes a stream that writes to w.
func NewStream(w io.Writer) *Stream {
	return &Stream{w: w, holds: map[int]bool{}, closed: make(chan struct{})}
}

// Write writes on.
func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	w := s.w
	s.mu.Unlock()
	return w.Write(p)
}

// Cut makes further writes fail with err.
func (s *Stream) Cut(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w = broken{err}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// Done says that the main program has ended; the returned channel is closed when no background job writes any more.
func (s *Stream) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	s.check()
	return s.closed
}

func (s *Stream) check() {
	if s.done && len(s.holds) == 0 {
		select {
		case <-s.closed:
		default:
			close(s.closed)
		}
	}
}

func hold(w io.Writer, pid int) {
	if s, ok := w.(*Stream); ok {
		s.mu.Lock()
		s.holds[pid] = true
		s.mu.Unlock()
	}
}

func release(w io.Writer, pid int) {
	if s, ok := w.(*Stream); ok {
		s.mu.Lock()
		delete(s.holds, pid)
		s.check()
		s.mu.Unlock()
	}
}
