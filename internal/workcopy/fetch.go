package workcopy

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// member is one file or link on its way out of a guest.
type member struct {
	name string
	mode mode
	// size is what the header says; content gives no more than that.
	size    int64
	target  string
	content io.Reader
}

// argsMost is how many bytes of names go into one call: well below what a kernel takes as arguments.
const argsMost = 96 << 10

// tarOut sends each name with its own content, also where two are one file (busybox' tar can't, and such are refused).
const tarOut = `needs tar
cd "$1" || exit 1
shift
if tar --version 2>/dev/null | grep -q GNU; then set -- --hard-dereference --no-recursion "$@"; fi
tar -cf - "$@" 2>/dev/null || :
`

// errEnough ends a stream that the receiver has seen enough of.
var errEnough = errors.New("enough")

// fetch streams files of a folder out of the guest through tar, and gives each to take in no certain order. What tar
// sends beyond the names that were asked for is refused, as are kinds other than files and links, and sizes over
// biggest. A file that went away is just not there.
func (p Place) fetch(ctx context.Context, verb, dir string, names []string, biggest int64, take func(member) error) error {
	for len(names) > 0 {
		n, bytes := 0, 0
		for n < len(names) && (n == 0 || bytes+len(names[n]) < argsMost) {
			bytes += len(names[n]) + 3
			n++
		}
		if err := p.fetchSome(ctx, verb, dir, names[:n], biggest, take); err != nil {
			return err
		}
		names = names[n:]
	}
	return nil
}

func (p Place) fetchSome(ctx context.Context, verb, dir string, names []string, biggest int64, take func(member) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	asked := make(map[string]bool, len(names))
	args := []string{dir}
	for _, name := range names {
		asked[name] = true
		args = append(args, "./"+name)
	}
	out, in := io.Pipe()
	received := make(chan error, 1)
	go func() {
		err := receive(tar.NewReader(out), asked, biggest, take)
		if err == nil {
			_, err = io.Copy(io.Discard, io.LimitReader(out, 1<<20)) // the padding at the end
		}
		if err != nil {
			cancel(errEnough) // the command is stopped, however much it would still send
		}
		_ = out.CloseWithError(errEnough) // never fails, by its documentation
		received <- err
	}()
	// A file that vanished makes tar fail after the others were sent.
	_, err := p.run(ctx, call{verb: verb, script: tarOut, args: args, stdout: in})
	_ = in.Close() // never fails, by its documentation
	got := <-received
	switch {
	case got != nil && !errors.Is(got, io.ErrUnexpectedEOF):
		return fmt.Errorf("unable to %s: %w", verb, got)
	case err != nil:
		return err
	case got != nil:
		return fmt.Errorf("unable to %s: what the guest sends ends in the middle", verb)
	}
	return nil
}

// receive reads a tar stream that nobody vouches for.
func receive(in *tar.Reader, asked map[string]bool, biggest int64, take func(member) error) error {
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		m := member{name: strings.TrimPrefix(h.Name, "./"), size: h.Size, mode: plain, content: in}
		if !asked[m.name] {
			return refused("the guest sends %q, which it wasn't asked for", h.Name)
		}
		delete(asked, m.name) // each once
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") {
				return refused("%q is sent as a sparse file", m.name)
			}
		}
		switch h.Typeflag {
		case tar.TypeReg:
			if h.Size > biggest || h.Size < 0 {
				return refused("%q has %d bytes, more than the %d that may come", m.name, h.Size, biggest)
			}
			if h.Mode&0o6000 != 0 {
				return refused("%q is setuid or setgid", m.name)
			}
			if h.Mode&0o100 != 0 {
				m.mode = executable
			}
		case tar.TypeSymlink:
			m.mode, m.target, m.size = symlink, h.Linkname, 0
		case tar.TypeLink:
			return refused("%q is a hard link", m.name)
		default:
			return refused("%q is neither a file nor a link", m.name)
		}
		if err := take(m); err != nil {
			return err
		}
	}
}
