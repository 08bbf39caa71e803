package workcopy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// mode is what a working copy knows of a file, as git does.
type mode uint8

const (
	absent mode = iota
	plain       // 0644
	executable
	symlink
)

func (m mode) git() string {
	return map[mode]string{plain: "100644", executable: "100755", symlink: "120000"}[m]
}

func (m mode) perm() fs.FileMode {
	if m == executable {
		return 0o755
	}
	return 0o644
}

// entry is a file or link of a folder on this machine.
type entry struct {
	path   string // relative, with slashes
	mode   mode
	size   int64
	target string // of a link
	info   fs.FileInfo
}

// walk lists a folder on this machine as far as ignore lets it: files and links in the order of their names. Sockets,
// pipes and devices aren't part of a working copy. A link that leads out of the folder is refused.
func walk(ctx context.Context, root *os.Root, ignore *Ignore) ([]entry, error) {
	var list []entry
	var visit func(folder string) error
	visit = func(folder string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := root.ReadFile(inFolder(folder, ".gitignore"))
		switch {
		case err == nil:
			ignore.Add(folder, string(text))
		case !errors.Is(err, fs.ErrNotExist):
			if info, lerr := root.Lstat(inFolder(folder, ".gitignore")); lerr != nil || info.Mode().IsRegular() {
				return err
			}
		}
		entries, err := fs.ReadDir(root.FS(), orDot(folder))
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := path.Join(folder, e.Name())
			if ignore.Ignored(name, e.IsDir()) {
				continue
			}
			if e.IsDir() {
				if err := visit(name); err != nil {
					return err
				}
				continue
			}
			found, ok, err := look(root, name)
			if err != nil {
				return err
			}
			if ok {
				list = append(list, found)
			}
		}
		return nil
	}
	if err := visit(""); err != nil {
		return nil, err
	}
	return list, nil
}

func orDot(folder string) string {
	if folder == "" {
		return "."
	}
	return folder
}

func inFolder(folder, name string) string { return filepath.FromSlash(path.Join(folder, name)) }

// look describes one file; ok is false for what no working copy holds.
func look(root *os.Root, name string) (e entry, ok bool, err error) {
	local := filepath.FromSlash(name)
	info, err := root.Lstat(local)
	if err != nil {
		return entry{}, false, err
	}
	e = entry{path: name, mode: plain, size: info.Size(), info: info}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if e.target, err = root.Readlink(local); err != nil {
			return entry{}, false, err
		}
		e.target = filepath.ToSlash(e.target)
		e.mode, e.size = symlink, 0
		if err := checkLink(name, e.target); err != nil {
			return entry{}, false, fmt.Errorf("%w; leave it out (exclude), or link to a file in the folder", err)
		}
		// Through other links a path may lead elsewhere than its text says.
		if _, err := root.Stat(local); err != nil && !errors.Is(err, fs.ErrNotExist) && strings.Contains(err.Error(), "escapes") {
			return entry{}, false, refused("link %q leads out of the folder, to %q", name, e.target)
		}
		return e, true, nil
	case !info.Mode().IsRegular():
		return entry{}, false, nil
	case info.Mode().Perm()&0o100 != 0:
		e.mode = executable
	}
	return e, true, nil
}
