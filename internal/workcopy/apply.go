package workcopy

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Apply makes the changes in a folder on this machine. All of them are checked before the first is made: each path must
// be as it was when the run began (or all of them as the run left them: then there is nothing to do), and no folder on the way to one may be a link; else the error is ErrNotClean or
// ErrRefused and nothing was touched. Files are written through os.Root, beside their place first and then renamed. When
// writing fails in the middle, what was done is undone.
func Apply(ctx context.Context, dir string, c Changes) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	a := &applier{root: root}
	if done, err := a.all(c.List); err != nil || done {
		return err // applied earlier, by a process that couldn't tell
	}
	for _, change := range c.List {
		if err := a.check(change); err != nil {
			return fmt.Errorf("nothing was applied to %s: %w", dir, err)
		}
	}
	defer a.sweep()
	for _, change := range c.List {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("nothing was applied to %s: %w", dir, err)
		}
		if err := a.stage(change); err != nil {
			return fmt.Errorf("nothing was applied to %s: %w", dir, err)
		}
	}
	// Removals first: a folder may have to give way to a file.
	for _, last := range []bool{false, true} {
		for i, change := range c.List {
			if (change.new.mode == absent) == last {
				continue
			}
			if err := a.commit(i, change); err != nil {
				return fmt.Errorf("applying to %s failed, what was done is undone: %w", dir, errors.Join(err, a.undo()))
			}
		}
	}
	return nil
}

type applier struct {
	root   *os.Root
	staged []string // temporary files by index of the change; "" for a removal
	undos  []func() error
}

// all says whether every path is as the changes leave it.
func (a *applier) all(list []Change) (bool, error) {
	for _, change := range list {
		if bad := checkName(change.Path); bad != nil {
			return false, nil //nolint:nilerr // check says it
		}
		if have, err := a.read(change.Path); err != nil || !have.equal(change.new) {
			return false, err
		}
	}
	return len(list) > 0, nil
}

// check compares what is there with what the change was made from.
func (a *applier) check(c Change) error {
	if err := checkName(c.Path); err != nil {
		return err
	}
	for i, b := range []byte(c.Path) {
		if b != '/' {
			continue
		}
		info, err := a.root.Lstat(filepath.FromSlash(c.Path[:i]))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return refused("%s can't be written: its folder %s is a link", c.Path, c.Path[:i])
		}
	}
	if c.new.mode == symlink {
		if err := checkLink(c.Path, string(c.new.content)); err != nil {
			return err
		}
	}
	have, err := a.read(c.Path)
	if err != nil {
		return err
	}
	if have.equal(c.old) {
		return nil
	}
	// On systems without execute bits only contents can be compared.
	if !executableBits && have.mode != absent && have.mode != symlink && c.old.mode != symlink && bytes.Equal(have.content, c.old.content) {
		return nil
	}
	switch {
	case have.mode == absent:
		return fmt.Errorf("%s is gone: %w", c.Path, ErrNotClean)
	case c.old.mode == absent:
		return fmt.Errorf("%s is there already: %w", c.Path, ErrNotClean)
	}
	return fmt.Errorf("%s was changed meanwhile: %w", c.Path, ErrNotClean)
}

// read is what a path holds now. A folder in its place counts as absent where a file is to be made of it by other
// changes: making the file fails if it isn't empty by then.
func (a *applier) read(name string) (version, error) {
	e, ok, err := look(a.root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotDir):
		return version{}, nil
	case errors.Is(err, ErrRefused):
		return version{mode: symlink, content: []byte("\x00outside")}, nil
	case err != nil:
		return version{}, err
	case !ok:
		return version{}, nil
	case e.mode == symlink:
		return version{symlink, []byte(e.target)}, nil
	}
	content, err := a.root.ReadFile(filepath.FromSlash(name))
	return version{e.mode, content}, err
}

// stage writes the new content into a temporary file at the top of the folder, which is on the same file system as a rule.
func (a *applier) stage(c Change) error {
	a.staged = append(a.staged, "")
	if c.new.mode == absent {
		return nil
	}
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails, by its documentation
	temp := ".sandbox-" + hex.EncodeToString(random)
	if c.new.mode == symlink {
		if err := a.root.Symlink(filepath.FromSlash(string(c.new.content)), temp); err != nil {
			return err
		}
		a.staged[len(a.staged)-1] = temp
		return nil
	}
	f, err := a.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, c.new.mode.perm())
	if err != nil {
		return err
	}
	a.staged[len(a.staged)-1] = temp
	_, err = f.Write(c.new.content)
	return errors.Join(err, f.Close())
}

// commit puts a staged file in its place, or removes the old one, and notes how to undo that.
func (a *applier) commit(i int, c Change) error {
	local := filepath.FromSlash(c.Path)
	if c.new.mode == absent {
		if err := a.root.Remove(local); err != nil {
			return err
		}
		a.undos = append(a.undos, func() error { return a.restore(c) })
		a.removeEmpty(path.Dir(c.Path))
		return nil
	}
	if folder := path.Dir(c.Path); folder != "." {
		if err := a.root.MkdirAll(filepath.FromSlash(folder), 0o755); err != nil {
			return err
		}
	}
	if c.old.mode != absent && (c.old.mode == symlink) != (c.new.mode == symlink) {
		if err := a.root.Remove(local); err != nil {
			return err
		}
	}
	if err := a.root.Rename(a.staged[i], local); err != nil {
		return err
	}
	a.staged[i] = ""
	a.undos = append(a.undos, func() error { return a.restore(c) })
	return nil
}

// removeEmpty removes folders that a removal left empty, as git does, from the innermost up.
func (a *applier) removeEmpty(folder string) {
	for ; folder != "."; folder = path.Dir(folder) {
		if a.root.Remove(filepath.FromSlash(folder)) != nil {
			return // it isn't empty
		}
	}
}

// restore brings back the old version.
func (a *applier) restore(c Change) error {
	local := filepath.FromSlash(c.Path)
	if err := a.root.Remove(local); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if c.old.mode == absent {
		a.removeEmpty(path.Dir(c.Path))
		return nil
	}
	if folder := path.Dir(c.Path); folder != "." {
		if err := a.root.MkdirAll(filepath.FromSlash(folder), 0o755); err != nil {
			return err
		}
	}
	if c.old.mode == symlink {
		return a.root.Symlink(filepath.FromSlash(string(c.old.content)), local)
	}
	return a.root.WriteFile(local, c.old.content, c.old.mode.perm())
}

func (a *applier) undo() error {
	var errs []error
	for i := len(a.undos) - 1; i >= 0; i-- {
		errs = append(errs, a.undos[i]())
	}
	return errors.Join(errs...)
}

// sweep removes temporary files that weren't put in place.
func (a *applier) sweep() {
	for _, temp := range a.staged {
		if strings.HasPrefix(temp, ".sandbox-") {
			_ = a.root.Remove(temp) // best effort: the error to tell is another
		}
	}
}
