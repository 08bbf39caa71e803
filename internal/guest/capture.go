package guest

import (
	"io"
	"sync"
)

// capture takes one output stream: it passes everything on as it comes and
// keeps a bounded part. It never fails, so that a command is not held up, or
// ended by SIGPIPE, by a consumer that went away.
type capture struct {
	mu     sync.Mutex // a cancelled run may read while output still comes
	stream io.Writer
	limit  int
	tail   bool
	kept   []byte
	total  int64
}

func newCapture(stream io.Writer, limit int, tail bool) *capture {
	switch {
	case limit == 0:
		limit = DefaultOutputLimit
	case limit < 0:
		limit = 0
	}
	return &capture{stream: stream, limit: limit, tail: tail}
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.keep(p)
	stream := c.stream
	c.mu.Unlock()
	if stream != nil {
		if _, err := stream.Write(p); err != nil {
			c.mu.Lock()
			c.stream = nil
			c.mu.Unlock()
		}
	}
	return len(p), nil
}

func (c *capture) keep(p []byte) {
	c.total += int64(len(p))
	if !c.tail {
		c.kept = append(c.kept, p[:min(len(p), c.limit-len(c.kept))]...)
		return
	}
	c.kept = append(c.kept, p[max(0, len(p)-c.limit):]...)
	// Trimmed at twice the limit, not at each write: bytes are moved once.
	if len(c.kept) > 2*c.limit {
		c.kept = append(c.kept[:0], c.kept[len(c.kept)-c.limit:]...)
	}
}

// result returns a copy of what is kept, and whether there was more.
func (c *capture) result() (kept []byte, truncated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept = c.kept[max(0, len(c.kept)-c.limit):]
	return append([]byte(nil), kept...), c.total > int64(c.limit)
}
