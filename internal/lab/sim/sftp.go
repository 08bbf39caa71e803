package sim

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/pkg/sftp"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// sftp serves the subsystem as the session's user.
func (ss *session) sftp() {
	m := ss.server.machine
	p := m.Spawn(ss.ctx, machine.Spawn{PPID: 90, Cred: m.Cred(ss.user), Argv: []string{"/usr/lib/openssh/sftp-server"}})
	defer p.Exit()
	h := &files{fs: m.FS, cred: p.Cred, home: ss.user.Home}
	server := sftp.NewRequestServer(ss.channel, sftp.Handlers{FileGet: h, FilePut: h, FileCmd: h, FileList: h}, sftp.WithStartDirectory(ss.user.Home))
	err := server.Serve()
	status := 0
	if err != nil && !errors.Is(err, io.EOF) {
		status = 1
	}
	ss.exit(status)
}

// files answers SFTP requests from a machine's file system.
type files struct {
	fs   *vfs.FS
	cred vfs.Cred
	home string
}

// answer gives an error the code that OpenSSH's server gives it.
func answer(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return sftp.ErrSSHFxNoSuchFile
	case errors.Is(err, fs.ErrPermission):
		return sftp.ErrSSHFxPermissionDenied
	}
	return sftp.ErrSSHFxFailure
}

// Fileread opens for reading.
func (h *files) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	f, err := h.fs.Open(h.cred, r.Filepath, os.O_RDONLY, 0)
	if err != nil {
		return nil, answer(err)
	}
	return f, nil
}

// Filewrite opens for writing.
func (h *files) Filewrite(r *sftp.Request) (io.WriterAt, error) { return h.OpenFile(r) }

// OpenFile opens for writing and reading.
func (h *files) OpenFile(r *sftp.Request) (sftp.WriterAtReaderAt, error) {
	p, flags := r.Pflags(), os.O_WRONLY
	if p.Read {
		flags = os.O_RDWR
	}
	for flag, set := range map[int]bool{os.O_CREATE: p.Creat, os.O_TRUNC: p.Trunc, os.O_EXCL: p.Excl} {
		if set {
			flags |= flag
		}
	}
	f, err := h.fs.Open(h.cred, r.Filepath, flags, 0o644)
	if err != nil {
		return nil, answer(err)
	}
	return f, nil
}

// Filecmd changes names and attributes.
func (h *files) Filecmd(r *sftp.Request) error {
	switch r.Method {
	case "Mkdir":
		return answer(h.fs.Mkdir(h.cred, r.Filepath, 0o755))
	case "Rmdir":
		return answer(h.fs.Rmdir(h.cred, r.Filepath))
	case "Remove":
		return answer(h.fs.Unlink(h.cred, r.Filepath))
	case "Symlink":
		return answer(h.fs.Symlink(h.cred, r.Filepath, r.Target))
	case "Link":
		return answer(h.fs.Link(h.cred, r.Filepath, r.Target))
	case "Rename": // SFTP version 3: refuses a target that exists
		if _, err := h.fs.Lstat(h.cred, r.Target); err == nil {
			return sftp.ErrSSHFxFailure
		}
		return answer(h.fs.Rename(h.cred, r.Filepath, r.Target))
	case "Setstat":
		return answer(h.setstat(r))
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename replaces a target that exists.
func (h *files) PosixRename(r *sftp.Request) error {
	return answer(h.fs.Rename(h.cred, r.Filepath, r.Target))
}

func (h *files) setstat(r *sftp.Request) error {
	what, to := r.AttrFlags(), r.Attributes()
	if what.Size {
		if err := h.fs.Truncate(h.cred, r.Filepath, int64(to.Size)); err != nil {
			return err
		}
	}
	if what.Permissions {
		if err := h.fs.Chmod(h.cred, r.Filepath, to.FileMode()); err != nil {
			return err
		}
	}
	if what.Acmodtime {
		if err := h.fs.Chtimes(h.cred, r.Filepath, to.ModTime()); err != nil {
			return err
		}
	}
	if what.UidGid {
		return h.fs.Chown(h.cred, r.Filepath, int(to.UID), int(to.GID), true)
	}
	return nil
}

// StatVFS describes the file system of a path.
func (h *files) StatVFS(r *sftp.Request) (*sftp.StatVFS, error) {
	m, err := h.fs.MountOf(h.cred, r.Filepath)
	if err != nil {
		return nil, answer(err)
	}
	used, size := m.Tree.Usage()
	const block = 4096
	free := uint64(max(0, size-used)) / block
	return &sftp.StatVFS{Bsize: block, Frsize: block, Blocks: uint64(size) / block, Bfree: free, Bavail: free, Namemax: 255}, nil
}

// list is a directory's or a file's description.
type list []*vfs.Info

// ListAt copies a part of it.
func (l list) ListAt(to []os.FileInfo, from int64) (int, error) {
	n := 0
	for n < len(to) && int(from)+n < len(l) {
		to[n] = l[int(from)+n]
		n++
	}
	if n < len(to) {
		return n, io.EOF
	}
	return n, nil
}

// Filelist lists a directory or describes a file.
func (h *files) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	if r.Method == "List" {
		all, err := h.fs.ReadDir(h.cred, r.Filepath)
		return list(all), answer(err)
	}
	in, err := h.fs.Stat(h.cred, r.Filepath)
	if err != nil {
		return nil, answer(err)
	}
	return list{in}, nil
}

// Lstat describes a link itself.
func (h *files) Lstat(r *sftp.Request) (sftp.ListerAt, error) {
	in, err := h.fs.Lstat(h.cred, r.Filepath)
	if err != nil {
		return nil, answer(err)
	}
	return list{in}, nil
}

// RealPath resolves links; what doesn't exist is only made absolute.
func (h *files) RealPath(name string) (string, error) {
	if !path.IsAbs(name) {
		name = path.Join(h.home, name)
	}
	if real, err := h.fs.RealPath(h.cred, name); err == nil {
		return real, nil
	}
	return path.Clean(name), nil
}

// Readlink reads a link.
func (h *files) Readlink(name string) (string, error) {
	target, err := h.fs.Readlink(h.cred, name)
	return target, answer(err)
}
