package guest

import (
	"context"
	"io"
	"io/fs"
	"time"
)

// FileInfo is what a guest says of a file.
type FileInfo struct {
	Path string
	Size int64
	// Mode has type and permission bits, setuid and its like included.
	Mode     fs.FileMode
	UID, GID uint32
	// Owner and Group are names from the guest's passwd and group files; the
	// decimal id where it has no name.
	Owner, Group string
	ModTime      time.Time
	// SHA256 is the content's hash in hex, when asked for and a regular file.
	SHA256 string
}

// Stat describes the file at path, following symbolic links. With hash, its
// content is streamed through SHA-256. A file that isn't there is an error that
// satisfies errors.Is(err, fs.ErrNotExist).
func (p *Pool) Stat(ctx context.Context, target Target, path string, hash bool) (FileInfo, error) {
	panic("todo")
}

// ReadFile returns the content of a file of at most limit bytes; a longer one
// is a *TooLargeError, not cut.
func (p *Pool) ReadFile(ctx context.Context, target Target, path string, limit int64) ([]byte, error) {
	panic("todo")
}

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

// WriteFile writes a file so that readers see the old content or the new,
// never a part: into a temporary file beside it, then renamed over it. A
// symbolic link at the path is replaced, not followed. It returns the file as
// read back, with its hash.
func (p *Pool) WriteFile(ctx context.Context, target Target, file File) (FileInfo, error) {
	panic("todo")
}

// Remove removes a file or an empty folder; one that isn't there is no error.
func (p *Pool) Remove(ctx context.Context, target Target, path string) error { panic("todo") }

// Mkdir makes a folder and those above it; one that is there gets mode and
// owner (as in File.Owner; empty leaves it).
func (p *Pool) Mkdir(ctx context.Context, target Target, path string, mode fs.FileMode, owner string) error {
	panic("todo")
}

// IsTmpfs says whether path, or the nearest folder above it that exists, lies
// in memory and so ends with the guest's run.
func (p *Pool) IsTmpfs(ctx context.Context, target Target, path string) (bool, error) { panic("todo") }

// TooLargeError says that a file is larger than what may be read.
type TooLargeError struct {
	Path        string
	Size, Limit int64 // bytes; Size is 0 when the guest doesn't know it
}

// NotTmpfsError says that a file meant for memory would land on a disk.
type NotTmpfsError struct {
	Path, Type string // Type is the file system's, "ext4"
}

func (e *TooLargeError) Error() string { panic("todo") }
func (e *NotTmpfsError) Error() string { panic("todo") }
