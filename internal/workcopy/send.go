package workcopy

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Source is a folder on this machine.
type Source struct {
	Dir string
	// Exclude are patterns as in .gitignore. They decide before the .gitignore files do; "!node_modules/" brings back
	// what is left out by default.
	Exclude []string
}

// Sent is what was sent.
type Sent struct {
	Files int
	Bytes int64
	// SHA256 stands for the whole: names, modes and contents.
	SHA256 string
}

// ready makes the working folder an empty one that belongs to the run: it must be missing, empty, or one that an earlier
// run filled, which is emptied but for its checkpoints. $1 is the folder, $2 the run's own.
const readyFolder = `dir=$1; state=$2
if [ -h "$dir" ] || { [ -e "$dir" ] && [ ! -d "$dir" ]; }; then say 122 "$dir is not a folder"; fi
mkdir -p "$dir" "$state" || exit 1
cd "$dir" || exit 1
if [ -f .sandbox-copy ] && [ ! -h .sandbox-copy ]; then
  for f in * .[!.]* ..?*; do
    case $f in .checkpoints) continue;; esac
    if [ -e "$f" ] || [ -h "$f" ]; then chmod -R u+rwX "./$f" 2>/dev/null; rm -rf "./$f" || exit 1; fi
  done
else
  for f in * .[!.]* ..?*; do
    case $f in .checkpoints|lost+found) continue;; esac
    if [ -e "$f" ] || [ -h "$f" ]; then say 121 "$dir holds $f and more that no run put there: name an empty or missing folder as working_dir"; fi
  done
fi
: > .sandbox-copy || exit 1
`

// keepBase copies the working folder, without what is git's and ours, into the run's own folder. Reflinks where the file
// system has them, never hard links: a write in place would change both.
const keepBase = `base=$state/base
if [ -e "$base" ]; then chmod -R u+rwX "$base"; rm -rf "$base" || exit 1; fi
mkdir "$base" || exit 1
copy() { cp -a --reflink=auto "$1" "$2" 2>/dev/null || { rm -rf "$2"; cp -a "$1" "$2"; }; }
for f in * .[!.]* ..?*; do
  case $f in .git|.checkpoints|.sandbox-copy|lost+found) continue;; esac
  if [ -e "$f" ] || [ -h "$f" ]; then copy "./$f" "$base/$f" || exit 1; fi
done
`

// own gives a working folder that isn't there yet, or an empty one of root's, to the run's user. It is done as the user
// who is logged in, so a folder that is reached through a link is left alone.
const own = `user=$1; dir=$2; state=$3
for d in "$dir" "$state"; do
  if [ ! -e "$d" ] && [ ! -h "$d" ]; then
    up=$d; while [ ! -e "$up" ]; do up=${up%/*}; up=${up:-/}; done
    [ "$(cd "$up" && pwd -P)" = "$up" ] || say 122 "$up is reached through a link"
    mkdir -p "$d" && chown "$user": "$d" || exit 1
  elif [ -d "$d" ] && [ ! -h "$d" ] && [ "$(cd "$d" && pwd -P)" = "$d" ] && [ "$(stat -c %u "$d")" = 0 ] && [ -z "$(ls -A "$d" | grep -v '^lost+found$')" ]; then
    chown "$user": "$d" || exit 1
  fi
done
`

// give runs own where the user isn't the one who is logged in.
func (p Place) give(ctx context.Context) error {
	if err := p.check(); err != nil {
		return err
	}
	if p.User == "" {
		return nil
	}
	_, err := p.run(ctx, call{verb: "make the working folder", script: own, args: []string{p.User, p.Dir, p.State}, root: true})
	return err
}

// Send makes the working folder a copy of a folder on this machine, and keeps what it was like. The folder is streamed
// through tar: one round trip, whatever the number of files.
func Send(ctx context.Context, p Place, source Source) (Sent, error) {
	root, err := os.OpenRoot(source.Dir)
	if err != nil {
		return Sent{}, fmt.Errorf("unable to open the source folder: %w", err)
	}
	defer func() { _ = root.Close() }()
	ignore, err := Around(source.Dir, source.Exclude)
	if err != nil {
		return Sent{}, fmt.Errorf("unable to read what the source folder ignores: %w", err)
	}
	list, err := walk(ctx, root, ignore)
	if err != nil {
		return Sent{}, fmt.Errorf("unable to read the source folder %s: %w", source.Dir, err)
	}
	if err := p.give(ctx); err != nil {
		return Sent{}, err
	}
	sent := Sent{Files: len(list)}
	out, in := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := pack(root, list, in, &sent)
		_ = in.CloseWithError(err) // never fails, by its documentation
		packed <- err
	}()
	_, err = p.run(ctx, call{
		verb: "send the source folder", stdin: out, args: []string{p.Dir, p.State}, limit: 1 << 10,
		script: "needs tar cp mkdir\n" + readyFolder + "rm -f \"$state/commit\"\ntar -xf - || exit 1\n" + keepBase,
	})
	_ = out.CloseWithError(io.ErrClosedPipe) // ends pack where the guest stopped reading
	if packErr := <-packed; packErr != nil && !errors.Is(packErr, io.ErrClosedPipe) {
		return Sent{}, fmt.Errorf("unable to read the source folder %s: %w", source.Dir, packErr)
	}
	if err != nil {
		return Sent{}, err
	}
	return sent, nil
}

// pack writes a list of files as a tar stream.
func pack(root *os.Root, list []entry, w io.Writer, sent *Sent) error {
	buffered := bufio.NewWriterSize(w, 256<<10)
	out := tar.NewWriter(buffered)
	whole := sha256.New()
	for _, e := range list {
		sum := sha256.New()
		if err := packEntry(root, e, out, sum); err != nil {
			return err
		}
		sent.Bytes += e.size
		fmt.Fprintf(whole, "%s %x %s\x00", e.mode.git(), sum.Sum(nil), e.path)
	}
	sent.SHA256 = hex.EncodeToString(whole.Sum(nil))
	if err := out.Close(); err != nil {
		return err
	}
	return buffered.Flush()
}

func packEntry(root *os.Root, e entry, out *tar.Writer, sum io.Writer) error {
	h := &tar.Header{Name: "./" + e.path, Mode: int64(e.mode.perm()), Size: e.size, ModTime: e.info.ModTime(), Typeflag: tar.TypeReg}
	if e.mode == symlink {
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.target, 0o777
		_, _ = io.WriteString(sum, e.target)
		return out.WriteHeader(h)
	}
	f, err := root.Open(filepath.FromSlash(e.path))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(f, e.size))
	if err == nil && n < e.size {
		err = fmt.Errorf("%s was cut short while it was read", e.path)
	}
	return err
}
