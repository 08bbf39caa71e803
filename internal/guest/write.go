package guest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/pkg/sftp"
)

// File is a file to be written.
type File struct {
	Path    string // absolute
	Content io.Reader
	// Mode is the permission bits (setuid and its like allowed); 0 means 0644.
	Mode fs.FileMode
	// Owner is "user", "user:group" or ":group", by name or number; empty means
	// the user who is logged in. A user alone brings its primary group.
	Owner string
	// MakeDirs creates missing folders above it (0755).
	MakeDirs bool
	// TmpfsOnly refuses to write onto anything that outlives a stop of the
	// guest: for secrets. The error is a *NotTmpfsError.
	TmpfsOnly bool
}

// NotTmpfsError says that a file meant for memory would land on a disk.
type NotTmpfsError struct {
	Path, Type string // Type is the file system's, "ext4"
}

func (e *NotTmpfsError) Error() string {
	return fmt.Sprintf("%s lies on a disk (%s), where a secret would outlive the run and enter snapshots and backups: choose a path in memory, such as /run or /dev/shm", e.Path, e.Type)
}

// WriteFile writes a file so that readers see the old content or the new,
// never a part: into a temporary file beside it, then renamed over it. A
// symbolic link at the path is replaced, not followed. It returns the file as
// read back, with its hash.
//
// When the connection is lost, the file is the old or the new one, and a
// temporary file (.NAME.sandbox-…, mode 0600 until it is complete) may stay.
func (p *Pool) WriteFile(ctx context.Context, target Target, file File) (FileInfo, error) {
	if err := checkPath(file.Path); err != nil {
		return FileInfo{}, err
	}
	if file.TmpfsOnly {
		kind, err := p.fileSystem(ctx, target, path.Dir(file.Path))
		if err != nil {
			return FileInfo{}, err
		}
		if !inMemory(kind) {
			return FileInfo{}, &NotTmpfsError{Path: file.Path, Type: kind}
		}
	}
	own, err := p.ownerOf(ctx, target, file.Owner)
	if err != nil {
		return FileInfo{}, err
	}
	w := atomicWrite{path: path.Clean(file.Path), content: file.Content, mode: file.Mode, owner: own, makeDirs: file.MakeDirs}
	if w.mode == 0 {
		w.mode = 0o644
	}
	w.nameTemp()
	var info FileInfo
	err = p.withSFTP(ctx, target, func(client *sftp.Client) (err error) {
		info, err = w.do(client)
		return err
	})
	if err != nil {
		p.sweep(ctx, target, w.temp)
		return FileInfo{}, pathError(target, "write", file.Path, err)
	}
	return info, nil
}

// ownerOf resolves an owner, before a session is opened for the work itself:
// asking the guest may take one of its own.
func (p *Pool) ownerOf(ctx context.Context, target Target, text string) (owner, error) {
	if text == "" {
		return owner{}, nil
	}
	known, err := p.accountsOf(ctx, target)
	if err != nil {
		return owner{}, err
	}
	return p.resolveOwner(ctx, target, known, text)
}

func (p *Pool) accountsOf(ctx context.Context, target Target) (accounts, error) {
	var known accounts
	err := p.withSFTP(ctx, target, func(client *sftp.Client) (err error) {
		known, err = readAccounts(client)
		return err
	})
	if err != nil {
		return accounts{}, fmt.Errorf("unable to read the users of %s: %w", target, err)
	}
	return known, nil
}

// sweep removes a temporary file that an interrupted write left, where the
// guest can still be reached; a caller's cancellation doesn't cancel this.
func (p *Pool) sweep(ctx context.Context, target Target, temp string) {
	if ctx.Err() == nil {
		return // the write removed it itself
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.Timing.Probe)
	defer cancel()
	_ = p.Remove(ctx, target, temp) // best effort: the error to tell is the one before
}

// atomicWrite is one file on its way into a guest.
type atomicWrite struct {
	path, temp string
	content    io.Reader
	mode       fs.FileMode
	owner      owner
	makeDirs   bool
}

func (w *atomicWrite) nameTemp() {
	random := make([]byte, 6)
	_, _ = rand.Read(random) // never fails, by its documentation
	base := path.Base(w.path)
	// File names end at 255 bytes in every file system that a guest has.
	w.temp = path.Join(path.Dir(w.path), "."+base[:min(len(base), 200)]+".sandbox-"+hex.EncodeToString(random))
}

func (w *atomicWrite) do(client *sftp.Client) (FileInfo, error) {
	if w.makeDirs {
		if err := client.MkdirAll(path.Dir(w.path)); err != nil {
			return FileInfo{}, fmt.Errorf("its folder can't be made: %w", err)
		}
	}
	if attr, err := client.Lstat(w.path); err == nil && attr.IsDir() {
		return FileInfo{}, errors.New("a folder is there")
	}
	sum := sha256.New()
	err := w.fill(client, sum)
	if err == nil {
		err = replace(client, w.temp, w.path)
	}
	if err != nil {
		_ = client.Remove(w.temp) // nothing to add to the error
		return FileInfo{}, err
	}
	info, err := stat(client, w.path, true)
	if err != nil {
		return FileInfo{}, fmt.Errorf("it was written, but can't be read back: %w", err)
	}
	if want := hex.EncodeToString(sum.Sum(nil)); info.SHA256 != want {
		return FileInfo{}, fmt.Errorf("what is read back (sha256 %s) isn't what was written (%s): something else in the guest writes this file", info.SHA256, want)
	}
	return info, nil
}

// fill makes the temporary file complete: content, then owner, then mode, since
// a change of owner clears the setuid bits.
func (w *atomicWrite) fill(client *sftp.Client, sum hash.Hash) (err error) {
	f, err := client.OpenFile(w.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	// Before the first byte of content: it may be secret.
	if err := f.Chmod(0o600); err != nil {
		return fmt.Errorf("mode: %w", err)
	}
	if w.content != nil {
		if _, err := io.Copy(f, io.TeeReader(w.content, sum)); err != nil {
			return err
		}
	}
	if w.owner.setUID || w.owner.setGID {
		if err := chown(f, w.owner); err != nil {
			return fmt.Errorf("owner: %w", err)
		}
	}
	if err := f.Chmod(w.mode); err != nil {
		return fmt.Errorf("mode: %w", err)
	}
	if _, ok := client.HasExtension("fsync@openssh.com"); ok {
		if err := f.Sync(); err != nil {
			return fmt.Errorf("fsync: %w", err)
		}
	}
	return nil
}

// chown sets the ids that are asked for. SFTP 3 sets both at once, so the other
// is read first.
func chown(f *sftp.File, o owner) error {
	if !o.setUID || !o.setGID {
		attr, err := f.Stat()
		if err != nil {
			return err
		}
		if have, ok := attr.Sys().(*sftp.FileStat); ok {
			if !o.setUID {
				o.uid = have.UID
			}
			if !o.setGID {
				o.gid = have.GID
			}
		}
	}
	return f.Chown(int(o.uid), int(o.gid))
}

// replace renames over an existing file: at once where the server has OpenSSH's
// extension; else SFTP's own rename, which refuses when the target exists, so
// that for a moment there is no file.
func replace(client *sftp.Client, from, to string) error {
	if _, ok := client.HasExtension("posix-rename@openssh.com"); ok {
		return client.PosixRename(from, to)
	}
	if err := client.Rename(from, to); err == nil {
		return nil
	}
	if err := client.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return client.Rename(from, to)
}

// Remove removes a file or an empty folder; one that isn't there is no error. A
// symbolic link is removed itself.
func (p *Pool) Remove(ctx context.Context, target Target, path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	err := p.withSFTP(ctx, target, func(client *sftp.Client) error {
		attr, err := client.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case attr.IsDir():
			return client.RemoveDirectory(path)
		}
		return client.Remove(path)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pathError(target, "remove", path, err)
	}
	return nil
}

// Mkdir makes a folder and those above it; one that is there gets mode and
// owner (as in File.Owner). Mode 0 is 0755 for a new folder and leaves one that
// is there; an empty owner leaves it.
func (p *Pool) Mkdir(ctx context.Context, target Target, name string, mode fs.FileMode, ownerName string) error {
	if err := checkPath(name); err != nil {
		return err
	}
	own, err := p.ownerOf(ctx, target, ownerName)
	if err != nil {
		return err
	}
	err = p.withSFTP(ctx, target, func(client *sftp.Client) error {
		return mkdir(client, path.Clean(name), mode, own)
	})
	if err != nil {
		return pathError(target, "make the folder", name, err)
	}
	return nil
}

func mkdir(client *sftp.Client, name string, mode fs.FileMode, own owner) error {
	attr, err := client.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if mode == 0 {
			mode = 0o755
		}
		if err := client.MkdirAll(name); err != nil {
			return err
		}
		if attr, err = client.Stat(name); err != nil {
			return err
		}
	case err != nil:
		return err
	case !attr.IsDir():
		return errors.New("a file is there")
	}
	if have, ok := attr.Sys().(*sftp.FileStat); ok && (own.setUID || own.setGID) {
		if !own.setUID {
			own.uid = have.UID
		}
		if !own.setGID {
			own.gid = have.GID
		}
		if own.uid != have.UID || own.gid != have.GID {
			if err := client.Chown(name, int(own.uid), int(own.gid)); err != nil {
				return fmt.Errorf("owner: %w", err)
			}
		}
	}
	if mode == 0 {
		return nil
	}
	if err := client.Chmod(name, mode); err != nil {
		return fmt.Errorf("mode: %w", err)
	}
	return nil
}
