// Package remote is how hardening and audit reach a system: by running POSIX
// shell scripts in it as root. Who calls them brings the way: SSH, a Packer
// communicator, a container engine, a chroot.
package remote

import (
	"context"
	"io"
)

// DefaultLimit is how many bytes of each output stream a Result keeps.
const DefaultLimit = 1 << 20

// Script is shell code to run.
type Script struct {
	// Text is POSIX sh, of at most some ten KiB. It holds no secrets.
	Text string
	// Args are its positional parameters, without line breaks.
	Args []string
	// Stdin is what it reads; nil is an empty input. Files go in this way.
	Stdin io.Reader
	// Limit is how many bytes of standard output the result keeps, and as many of
	// standard error; 0 is DefaultLimit. What is beyond is read and thrown away.
	Limit int
}

// Result is how a script ended.
type Result struct {
	ExitCode       int
	Stdout, Stderr []byte
	// Truncated says that standard output was longer than the limit.
	Truncated bool
}

// Runner runs scripts in one system, as root, one after the other. A script that
// ran is no error, whatever its exit code; an error means that nobody knows how
// it ended, or that it didn't begin.
type Runner interface {
	Run(ctx context.Context, s Script) (Result, error)
}

// Capture keeps the first bytes that are written to it and counts the rest.
type Capture struct {
	limit     int
	kept      []byte
	truncated bool
}

// NewCapture keeps limit bytes; DefaultLimit for 0.
func NewCapture(limit int) *Capture {
	if limit == 0 {
		limit = DefaultLimit
	}
	return &Capture{limit: limit}
}

// Write never fails: a writer that did would end the command in mid-sentence.
func (c *Capture) Write(p []byte) (int, error) {
	room := c.limit - len(c.kept)
	if len(p) > room {
		c.truncated = true
		c.kept = append(c.kept, p[:max(room, 0)]...)
		return len(p), nil
	}
	c.kept = append(c.kept, p...)
	return len(p), nil
}

// Bytes is what was kept.
func (c *Capture) Bytes() []byte { return c.kept }

// Truncated says whether there was more.
func (c *Capture) Truncated() bool { return c.truncated }
