package guest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// tree is a guest's file system: a temporary folder, with owners kept beside it
// as no test can rely on being root.
type tree struct {
	root *os.Root

	mu       sync.Mutex
	owners   map[string][2]uint32
	deny     map[string]error // by method, "Rename"
	requests []string         // "Method /path"
}

func newTree(t testing.TB, files map[string]string) *tree {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	tr := &tree{root: root, owners: map[string][2]uint32{}, deny: map[string]error{}}
	for name, content := range files {
		tr.put(t, name, content)
	}
	return tr
}

func (tr *tree) put(t testing.TB, name, content string) {
	t.Helper()
	if err := tr.root.MkdirAll(inside(path.Dir(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := tr.root.WriteFile(inside(name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (tr *tree) content(t testing.TB, name string) string {
	t.Helper()
	content, err := tr.root.ReadFile(inside(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// list names the entries of a folder.
func (tr *tree) list(t testing.TB, name string) []string {
	t.Helper()
	entries, err := fs.ReadDir(tr.root.FS(), inside(name))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func inside(name string) string {
	if rel := strings.TrimPrefix(path.Clean("/"+name), "/"); rel != "" {
		return rel
	}
	return "."
}

// serve is an SFTP subsystem on the tree.
func (tr *tree) serve(ch ssh.Channel) {
	server := sftp.NewRequestServer(ch, sftp.Handlers{FileGet: tr, FilePut: tr, FileCmd: tr, FileList: tr})
	_ = server.Serve()
}

func (tr *tree) note(r *sftp.Request) error {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.requests = append(tr.requests, r.Method+" "+r.Filepath)
	return tr.deny[r.Method]
}

func (tr *tree) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	if err := tr.note(r); err != nil {
		return nil, err
	}
	return tr.root.Open(inside(r.Filepath))
}

func (tr *tree) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	if err := tr.note(r); err != nil {
		return nil, err
	}
	flags, p := os.O_WRONLY, r.Pflags()
	if p.Creat {
		flags |= os.O_CREATE
	}
	if p.Excl {
		flags |= os.O_EXCL
	}
	if p.Trunc {
		flags |= os.O_TRUNC
	}
	return tr.root.OpenFile(inside(r.Filepath), flags, 0o644)
}

func (tr *tree) Filecmd(r *sftp.Request) error {
	if err := tr.note(r); err != nil {
		return err
	}
	name := inside(r.Filepath)
	switch r.Method {
	case "Setstat":
		flags := r.AttrFlags()
		if flags.Permissions {
			if err := tr.root.Chmod(name, r.Attributes().FileMode().Perm()); err != nil {
				return err
			}
		}
		if flags.UidGid {
			tr.mu.Lock()
			tr.owners[name] = [2]uint32{r.Attributes().UID, r.Attributes().GID}
			tr.mu.Unlock()
		}
		return nil
	case "Rename":
		if _, err := tr.root.Lstat(inside(r.Target)); err == nil {
			return errors.New("the target exists") // as SFTP 3 has it
		}
		return tr.rename(name, inside(r.Target))
	case "PosixRename":
		return tr.rename(name, inside(r.Target))
	case "Mkdir":
		return tr.root.Mkdir(name, 0o755)
	case "Remove", "Rmdir":
		return tr.root.Remove(name)
	}
	return sftp.ErrSSHFxOpUnsupported
}

func (tr *tree) PosixRename(r *sftp.Request) error { return tr.Filecmd(r) }

func (tr *tree) rename(from, to string) error {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.owners[to] = tr.owners[from]
	delete(tr.owners, from)
	return tr.root.Rename(from, to)
}

func (tr *tree) Filelist(r *sftp.Request) (sftp.ListerAt, error) { return tr.stat(r, tr.root.Stat) }

func (tr *tree) Lstat(r *sftp.Request) (sftp.ListerAt, error) { return tr.stat(r, tr.root.Lstat) }

func (tr *tree) stat(r *sftp.Request, stat func(string) (fs.FileInfo, error)) (sftp.ListerAt, error) {
	info, err := stat(inside(r.Filepath))
	if err != nil {
		return nil, err
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	ids := tr.owners[inside(r.Filepath)]
	return oneInfo{ownedInfo{info, &sftp.FileStat{UID: ids[0], GID: ids[1]}}}, nil
}

type ownedInfo struct {
	fs.FileInfo
	attr *sftp.FileStat
}

func (i ownedInfo) Sys() any    { return i.attr }
func (i ownedInfo) Uid() uint32 { return i.attr.UID }
func (i ownedInfo) Gid() uint32 { return i.attr.GID }

type oneInfo []fs.FileInfo

func (o oneInfo) ListAt(to []fs.FileInfo, offset int64) (int, error) {
	if offset >= int64(len(o)) {
		return 0, io.EOF
	}
	return copy(to, o[offset:]), io.EOF
}
