package guest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/pkg/sftp"
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
	if err := checkPath(path); err != nil {
		return FileInfo{}, err
	}
	var info FileInfo
	err := p.withSFTP(ctx, target, func(client *sftp.Client) (err error) {
		info, err = stat(client, path, hash)
		return err
	})
	if err != nil {
		return FileInfo{}, pathError(target, "read", path, err)
	}
	return info, nil
}

func stat(client *sftp.Client, path string, hash bool) (FileInfo, error) {
	attr, err := client.Stat(path)
	if err != nil {
		return FileInfo{}, err
	}
	known, err := readAccounts(client)
	if err != nil {
		return FileInfo{}, err
	}
	info := FileInfo{Path: path, Size: attr.Size(), Mode: attr.Mode(), ModTime: attr.ModTime()}
	if ids, ok := attr.Sys().(*sftp.FileStat); ok {
		info.UID, info.GID = ids.UID, ids.GID
	}
	info.Owner, info.Group = known.userName(info.UID), known.groupName(info.GID)
	if hash && attr.Mode().IsRegular() {
		info.SHA256, err = hashFile(client, path)
	}
	return info, err
}

func hashFile(client *sftp.Client, path string) (string, error) {
	f, err := client.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // read only
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ReadFile returns the content of a file of at most limit bytes; a longer one
// is a *TooLargeError, not cut.
func (p *Pool) ReadFile(ctx context.Context, target Target, path string, limit int64) ([]byte, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	var content []byte
	err := p.withSFTP(ctx, target, func(client *sftp.Client) (err error) {
		attr, err := client.Stat(path)
		if err != nil {
			return err
		}
		if attr.IsDir() {
			return errors.New("it is a folder")
		}
		if attr.Size() > limit {
			return &TooLargeError{Path: path, Size: attr.Size(), Limit: limit}
		}
		content, err = readSmall(client, path, limit)
		return err
	})
	if err != nil {
		return nil, pathError(target, "read", path, err)
	}
	return content, nil
}

// IsTmpfs says whether path, or the nearest folder above it that exists, lies
// in memory and so ends with the guest's run.
func (p *Pool) IsTmpfs(ctx context.Context, target Target, path string) (bool, error) {
	kind, err := p.fileSystem(ctx, target, path)
	return inMemory(kind), err
}

func (p *Pool) fileSystem(ctx context.Context, target Target, path string) (string, error) {
	if err := checkPath(path); err != nil {
		return "", err
	}
	var kind string
	err := p.withSFTP(ctx, target, func(client *sftp.Client) (err error) {
		kind, err = fileSystemOf(client, path)
		return err
	})
	if err == nil && kind != "" {
		return kind, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", pathError(target, "find the file system of", path, err)
	}
	// No /proc/mounts in there.
	res, err := p.Exec(ctx, target, Command{
		Script: `p=$1; while [ ! -e "$p" ]; do p=${p%/*}; p=${p:-/}; done; stat -f -c %T "$p"`, Args: []string{path},
	})
	if err != nil {
		return "", err
	}
	if kind = strings.TrimSpace(string(res.Stdout)); res.ExitCode != 0 || kind == "" {
		return "", fmt.Errorf("unable to find the file system of %s in %s: neither /proc/mounts nor stat -f tells: %s",
			path, target, strings.TrimSpace(string(res.Stderr)))
	}
	return kind, nil
}

// TooLargeError says that a file is larger than what may be read.
type TooLargeError struct {
	Path        string
	Size, Limit int64 // bytes; Size is 0 when the guest doesn't know it
}

func (e *TooLargeError) Error() string {
	if e.Size == 0 {
		return fmt.Sprintf("%s is larger than %d bytes", e.Path, e.Limit)
	}
	return fmt.Sprintf("%s has %d bytes, more than the %d that may be read", e.Path, e.Size, e.Limit)
}
