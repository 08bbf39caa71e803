//go:build linux

package filetree

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Unpack makes a tar stream's files in a folder, which exists, with owners shifted by base. Device nodes are left out: a
// guest gets those it may use when it starts. Names that lead out of the folder are refused.
func Unpack(ctx context.Context, r io.Reader, dir string, base int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	u := &unpacker{root: root, base: base}
	err = errors.Join(u.all(ctx, tar.NewReader(r)), root.Close())
	if err != nil {
		return fmt.Errorf("unpack a file tree: %w", err)
	}
	return nil
}

type unpacker struct {
	root    *os.Root
	base    int
	folders []*tar.Header
}

func (u *unpacker) all(ctx context.Context, in *tar.Reader) error {
	if err := errors.Join(u.root.Chmod(".", 0o755), u.root.Lchown(".", u.base, u.base)); err != nil {
		return err
	}
	for {
		h, err := in.Next()
		if err == io.EOF { //nolint:errorlint // as the package documents
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = u.entry(h, in)
		}
		if err != nil {
			if h != nil {
				err = fmt.Errorf("%s: %w", h.Name, err)
			}
			return err
		}
	}
	for _, h := range u.folders {
		if err := u.root.Chtimes(local(h.Name), h.ModTime, h.ModTime); err != nil {
			return err
		}
	}
	return nil
}

// local is a name inside the folder, "." for the folder itself.
func local(name string) string {
	if name = strings.TrimPrefix(path.Clean("/"+name), "/"); name == "" {
		return "."
	}
	return filepath.FromSlash(name)
}

func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	name := local(h.Name)
	if err := u.parents(name); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeDir {
		if err := u.root.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := u.root.Mkdir(name, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		u.folders = append(u.folders, h)
	case tar.TypeReg:
		if err := u.file(name, content); err != nil {
			return err
		}
	case tar.TypeSymlink:
		if err := u.root.Symlink(h.Linkname, name); err != nil {
			return err
		}
		return u.root.Lchown(name, h.Uid+u.base, h.Gid+u.base)
	case tar.TypeLink:
		return u.root.Link(local(h.Linkname), name)
	case tar.TypeFifo:
		return nil // Root can't make one, and no image or backup that is worth keeping depends on one
	default:
		return nil
	}
	return u.attributes(name, h)
}

func (u *unpacker) file(name string, content io.Reader) error {
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// parents makes folders that the stream didn't bring.
func (u *unpacker) parents(name string) error {
	dir := filepath.Dir(name)
	if dir == "." {
		return nil
	}
	if _, err := u.root.Stat(dir); err == nil {
		return nil
	}
	if err := u.parents(dir); err != nil {
		return err
	}
	if err := u.root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return u.root.Lchown(dir, u.base, u.base)
}

func (u *unpacker) attributes(name string, h *tar.Header) error {
	if err := u.root.Lchown(name, h.Uid+u.base, h.Gid+u.base); err != nil {
		return err
	}
	f, err := u.root.Open(name)
	if err != nil {
		return err
	}
	fd := int(f.Fd())
	// The bits above 0777 come last: a change of the owner clears them.
	err = unix.Fchmod(fd, uint32(h.Mode)&0o7777)
	for key, value := range h.PAXRecords {
		if attribute, ok := strings.CutPrefix(key, "SCHILY.xattr."); ok && err == nil && !strings.HasPrefix(attribute, "trusted.") {
			err = ignoreUnsupported(unix.Fsetxattr(fd, attribute, []byte(value), 0))
		}
	}
	if h.Typeflag == tar.TypeReg && err == nil {
		err = u.root.Chtimes(name, h.ModTime, h.ModTime)
	}
	return errors.Join(err, f.Close())
}
