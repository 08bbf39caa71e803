package redact

import (
	"io"
	"sync"
)

// scan is one pass over a text.
type scan struct {
	index *index
	mark  string
	final bool // nothing follows
}

// redact appends text without secrets to out, and returns what is left of text because what follows may make a secret of
// it. Secrets that overlap become one mark.
func (s scan) redact(out, text []byte) (redacted, rest []byte) {
	plain := 0 // begin of what is to be kept
	for i := 0; i < len(text); {
		n, unfinished := s.index.at(text[i:])
		if unfinished && !s.final {
			return append(out, text[plain:i]...), text[i:]
		}
		if n == 0 {
			i++
			continue
		}
		end := i + n
		for k := i + 1; k < end; k++ {
			n, unfinished := s.index.at(text[k:])
			if unfinished && !s.final {
				return append(out, text[plain:i]...), text[i:]
			}
			end = max(end, k+n)
		}
		out = append(append(out, text[plain:i]...), s.mark...)
		i, plain = end, end
	}
	return append(out, text[plain:]...), nil
}

// Writer takes the known values out of a stream, wherever its chunks begin and end, and writes the rest on. What may be
// the beginning of a secret is held until it is known whether it is one, all else goes on at once. Shapes are not looked
// for: they need the whole text. Close writes what is held. It is safe for concurrent use.
type Writer struct {
	mu      sync.Mutex
	to      io.Writer
	scan    scan
	held    []byte
	scratch []byte
	err     error
}

// Writer returns a Writer to w.
func (r *Redactor) Writer(w io.Writer) *Writer {
	return &Writer{to: w, scan: scan{index: &r.known, mark: Mark}}
}

// Write takes the next chunk; an error is that of the writer behind it, at this or an earlier chunk.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	if len(w.scan.index.begins) == 0 {
		_, w.err = w.to.Write(p)
	} else {
		w.held = append(w.held, p...)
		w.pass()
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// pass writes what is known to be no secret.
func (w *Writer) pass() {
	out, rest := w.scan.redact(w.scratch[:0], w.held)
	w.scratch = out
	w.held = append(w.held[:0], rest...)
	if len(out) > 0 {
		_, w.err = w.to.Write(out)
	}
}

// Close writes what is still held. It doesn't close the writer behind it.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.scan.final = true
		w.pass()
	}
	return w.err
}
