//go:build linux

package ns

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// outputPatience is how long a command's output is read after its end. What the command wrote itself is there at once;
// processes that it left behind may hold the streams open for ever.
const outputPatience = 100 * time.Millisecond

// streams are the pipes between a command in a guest and the caller's readers and writers.
type streams struct {
	theirs []*os.File // stdin, stdout, stderr, for the command
	input  *os.File
	output []*os.File
	copied sync.WaitGroup
}

func openStreams(cmd engine.Command) (_ *streams, err error) {
	s := &streams{}
	defer func() {
		if err != nil {
			s.finish()
		}
	}()
	if cmd.Stdin == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, err
		}
		s.theirs = append(s.theirs, null)
	} else {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		s.theirs, s.input = append(s.theirs, read), write
		// Not waited for: the caller's reader may never end, and whatever it gives after the command's end is lost anyway.
		go func() {
			_, _ = io.Copy(write, cmd.Stdin)
			_ = write.Close()
		}()
	}
	for i, to := range []io.Writer{cmd.Stdout, cmd.Stderr} {
		if to == nil {
			to = io.Discard
		}
		if i == 1 && same(cmd.Stdout, cmd.Stderr) { // one writer is written to by one goroutine
			one, err := unix.FcntlInt(s.theirs[1].Fd(), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				return nil, err
			}
			s.theirs = append(s.theirs, os.NewFile(uintptr(one), "output"))
			break
		}
		read, write, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		s.theirs, s.output = append(s.theirs, write), append(s.output, read)
		s.copied.Go(func() { _, _ = io.Copy(to, read) })
	}
	return s, nil
}

// finish reads what is left of the output and closes everything.
func (s *streams) finish() {
	for _, f := range s.theirs {
		_ = f.Close()
	}
	if s.input != nil {
		_ = s.input.Close()
	}
	for _, f := range s.output {
		_ = f.SetReadDeadline(time.Now().Add(outputPatience))
	}
	s.copied.Wait()
	for _, f := range s.output {
		_ = f.Close()
	}
}

// same says whether two writers are one. Writers of types that can't be compared are two.
func same(a, b io.Writer) (equal bool) {
	defer func() {
		if recover() != nil {
			equal = false
		}
	}()
	return a != nil && a == b
}

func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
