package workcopy

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Wanted is a file, or several by pattern, to be brought out of a working folder.
type Wanted struct {
	// Pattern is a path below the working folder, with *, ?, [a-z] and ** as in .gitignore; a folder's name stands for all
	// that is in it.
	Pattern string
	// Destination is a path on this machine: a folder, with paths below it as in the working folder; the file's own path
	// where the pattern is one file's and neither a slash at the end nor a folder that is there says otherwise.
	Destination string
	// MaxBytes bounds all files of the pattern together; 0 is DefaultArtifactBytes.
	MaxBytes int64
}

// Bounds of what one pattern brings out.
const (
	DefaultArtifactBytes = 100 << 20
	artifactFiles        = 10_000
)

// Brought is a file that was brought out.
type Brought struct {
	Path        string // in the working folder
	Destination string // on this machine
	Size        int64  // bytes
	SHA256      string
}

// CheckPattern refuses patterns that could name something outside of the working folder.
func CheckPattern(pattern string) error {
	return checkName(strings.TrimSuffix(pattern, "/"))
}

const verbBring = "bring out files"

// BringOut copies files of the working folder to this machine. Links, devices, pipes, setuid files, and what is over the
// bounds stay where they are and are told as left out; so is a pattern without a match. Each file is written beside its
// place and renamed.
func BringOut(ctx context.Context, p Place, wanted []Wanted) ([]Brought, []LeftOut, error) {
	var all []Brought
	var left []LeftOut
	taken := map[string]string{}
	for _, w := range wanted {
		if err := CheckPattern(w.Pattern); err != nil {
			return all, left, fmt.Errorf("unable to %s: %w", verbBring, err)
		}
		b := &bringer{place: p, wanted: w, taken: taken}
		if b.wanted.MaxBytes == 0 {
			b.wanted.MaxBytes = DefaultArtifactBytes
		}
		err := b.bring(ctx)
		all, left = append(all, b.brought...), append(left, b.left...)
		if err != nil {
			return all, left, err
		}
	}
	return all, left, nil
}

type bringer struct {
	place   Place
	wanted  Wanted
	taken   map[string]string // destinations by their lower-case form, for file systems that don't tell
	folder  string            // on this machine, that all files lie below
	single  string            // name in folder, for a destination that is a file
	root    *os.Root
	total   int64
	brought []Brought
	left    []LeftOut
}

func (b *bringer) leave(name, format string, a ...any) {
	b.left = append(b.left, LeftOut{name, fmt.Sprintf(format, a...)})
}

// errFull ends a stream whose files together are too large.
var errFull = errors.New("over the limit")

func (b *bringer) bring(ctx context.Context) error {
	pattern := strings.TrimSuffix(b.wanted.Pattern, "/")
	list, err := b.place.list(ctx, verbBring, b.place.Dir, b.wanted.MaxBytes, never, literalPrefix(pattern))
	if err != nil {
		return err
	}
	var names []string
	exact := false
	for _, name := range list.names(kindFile, kindExec, kindLink, kindBig, kindSetID, kindSpecial) {
		if !matchesBelow(pattern, name) {
			continue
		}
		if err := checkName(name); err != nil {
			b.leave(name, "%v", err)
			continue
		}
		switch list[name] {
		case kindLink:
			b.leave(name, "it is a link")
		case kindSpecial:
			b.leave(name, "it is a pipe, socket or device")
		case kindSetID:
			b.leave(name, "it is setuid or setgid")
		case kindBig:
			b.leave(name, "it is larger than %d bytes (max_bytes)", b.wanted.MaxBytes)
		default:
			names, exact = append(names, name), exact || name == pattern
			continue
		}
	}
	if len(names) == 0 {
		if len(b.left) == 0 {
			b.leave(b.wanted.Pattern, "nothing matches it")
		}
		return nil
	}
	if len(names) > artifactFiles {
		for _, name := range names[artifactFiles:] {
			b.leave(name, "it is one of more than %d files of %s", artifactFiles, b.wanted.Pattern)
		}
		names = names[:artifactFiles]
	}
	b.folder = filepath.FromSlash(b.wanted.Destination)
	if exact && len(names) == 1 && !strings.HasSuffix(b.wanted.Destination, "/") && !isFolder(b.folder) {
		b.folder, b.single = filepath.Split(b.folder)
		b.folder = orDot(b.folder)
	}
	if err := os.MkdirAll(b.folder, 0o755); err != nil { //nolint:gosec // what a build makes is not secret
		return fmt.Errorf("unable to make the folder for artifacts: %w", err)
	}
	if b.root, err = os.OpenRoot(b.folder); err != nil {
		return fmt.Errorf("unable to open the folder for artifacts: %w", err)
	}
	defer func() { _ = b.root.Close() }()
	got := map[string]bool{}
	err = b.place.fetch(ctx, verbBring, b.place.Dir, names, b.wanted.MaxBytes, func(m member) error {
		if b.total += m.size; b.total > b.wanted.MaxBytes {
			return errFull
		}
		got[m.name] = true
		return b.write(m)
	})
	if errors.Is(err, errFull) {
		for _, name := range names {
			if !got[name] {
				b.leave(name, "files of %s have more than %d bytes together (max_bytes)", b.wanted.Pattern, b.wanted.MaxBytes)
			}
		}
		return nil
	}
	return err
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// write puts one file in its place.
func (b *bringer) write(m member) (err error) {
	if m.mode == symlink {
		return refused("%q became a link", m.name)
	}
	name := m.name
	if b.single != "" {
		name = b.single
	}
	local := filepath.FromSlash(name)
	destination := filepath.Join(b.folder, local)
	if other, is := b.taken[strings.ToLower(destination)]; is {
		b.leave(m.name, "its destination %s is that of %s", destination, other)
		return nil
	}
	b.taken[strings.ToLower(destination)] = m.name
	if err := b.root.MkdirAll(filepath.Dir(local), 0o755); err != nil {
		return fmt.Errorf("unable to write the artifact %s: %w", destination, err)
	}
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails, by its documentation
	temp := filepath.Join(filepath.Dir(local), ".sandbox-"+hex.EncodeToString(random))
	f, err := b.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, m.mode.perm())
	if err != nil {
		return fmt.Errorf("unable to write the artifact %s: %w", destination, err)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), m.content)
	err = errors.Join(err, f.Close())
	if err == nil && n != m.size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = b.root.Rename(temp, local)
	}
	if err != nil {
		_ = b.root.Remove(temp) // the error to tell is the one before
		var onDisk *fs.PathError
		if errors.As(err, &onDisk) {
			err = fmt.Errorf("unable to write the artifact %s: %w", destination, err)
		}
		return err
	}
	b.brought = append(b.brought, Brought{Path: m.name, Destination: destination, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// literalPrefix is the part of a pattern before its first wildcard, cut at a slash; all of it where it has none.
func literalPrefix(pattern string) string {
	at := strings.IndexAny(pattern, `*?[`)
	if at < 0 {
		return pattern
	}
	if slash := strings.LastIndexByte(pattern[:at], '/'); slash >= 0 {
		return pattern[:slash]
	}
	return ""
}

// matchesBelow says whether a pattern matches a path or a folder above it.
func matchesBelow(pattern, name string) bool {
	for at := name; at != "."; at = path.Dir(at) {
		if wildmatch(pattern, at) {
			return true
		}
	}
	return false
}
