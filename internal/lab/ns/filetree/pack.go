//go:build linux

package filetree

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Pack writes a folder's content as a tar stream, with owners as the guest sees them: base is the id that its root has
// outside.
func Pack(ctx context.Context, dir string, base int, w io.Writer) error {
	out := tar.NewWriter(w)
	p := &packer{ctx: ctx, dir: dir, base: base, out: out, seen: map[inode]string{}}
	if err := errors.Join(filepath.WalkDir(dir, p.entry), out.Close()); err != nil {
		return fmt.Errorf("pack a file tree: %w", err)
	}
	return nil
}

type packer struct {
	ctx  context.Context
	dir  string
	base int
	out  *tar.Writer
	seen map[inode]string
}

func (p *packer) entry(path string, d fs.DirEntry, err error) error {
	if err == nil {
		err = p.ctx.Err()
	}
	if err != nil {
		return err
	}
	info, err := d.Info()
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&fs.ModeSocket != 0 {
		return nil
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(p.dir, path)
	if err != nil {
		return err
	}
	h.Name, h.Format = "./"+name, tar.FormatPAX
	if info.IsDir() {
		h.Name += "/"
	}
	h.Uid, h.Gid, h.Uname, h.Gname = int(stat.Uid)-p.base, int(stat.Gid)-p.base, "", ""
	if h.Uid < 0 || h.Gid < 0 { // an owner from outside: nobody, as the guest sees it
		h.Uid, h.Gid = nobody, nobody
	}
	if !info.IsDir() && stat.Nlink > 1 {
		id := inode{stat.Dev, stat.Ino}
		if first := p.seen[id]; first != "" {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
		} else {
			p.seen[id] = h.Name
		}
	}
	if err := p.out.WriteHeader(h); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(p.out, f)
	return errors.Join(err, f.Close())
}

// nobody is the id that the kernel shows for owners that a user namespace doesn't map.
const nobody = 65534
