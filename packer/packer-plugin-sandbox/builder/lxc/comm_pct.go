package lxc

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	packersdk "github.com/hashicorp/packer-plugin-sdk/packer"
)

// pctCommunicator runs commands and moves files by `pct exec` on the node. Everything goes over standard input and
// output, byte for byte; directories go as tar streams.
type pctCommunicator struct {
	node *node
	vmid int
}

var _ packersdk.Communicator = (*pctCommunicator)(nil)

// Start starts a command.
func (c *pctCommunicator) Start(ctx context.Context, cmd *packersdk.RemoteCmd) error {
	run := pctCommand(c.vmid)
	run.Stdin = io.MultiReader(strings.NewReader(header(cmd.Command)), orEmpty(cmd.Stdin))
	run.Stdout, run.Stderr = cmd.Stdout, cmd.Stderr
	run.StdoutLimit, run.StderrLimit = -1, -1
	go func() {
		res, err := c.node.pool.Exec(ctx, c.node.target, run)
		if err != nil {
			if cmd.Stderr != nil {
				_, _ = fmt.Fprintln(cmd.Stderr, err) // who reads it has gone, or hears it
			}
			cmd.SetExited(packersdk.CmdDisconnect)
			return
		}
		cmd.SetExited(res.ExitCode)
	}()
	return nil
}

func orEmpty(r io.Reader) io.Reader {
	if r == nil {
		return strings.NewReader("")
	}
	return r
}

// script runs one of our own scripts.
func (c *pctCommunicator) script(text string, stdin io.Reader, stdout io.Writer) error {
	run := pctCommand(c.vmid)
	run.Stdin = io.MultiReader(strings.NewReader(header(text)), orEmpty(stdin))
	run.Stdout, run.StdoutLimit = stdout, -1
	res, err := c.node.pool.Exec(context.Background(), c.node.target, run)
	if err != nil {
		return err
	}
	if res.ExitCode != 0 {
		return fmt.Errorf("exit status %d: %s", res.ExitCode, strings.TrimSpace(string(res.Stderr)))
	}
	return nil
}

// Upload writes a file.
func (c *pctCommunicator) Upload(dst string, r io.Reader, info *os.FileInfo) error {
	mode := "0644"
	if info != nil && *info != nil {
		mode = fmt.Sprintf("%#o", (*info).Mode().Perm())
	}
	text := fmt.Sprintf("set -eu; dst=%s; cat >\"$dst\"; chmod %s \"$dst\"", word(dst), mode)
	if err := c.script(text, r, nil); err != nil {
		return fmt.Errorf("upload %s: %w", dst, err)
	}
	return nil
}

// Download reads a file.
func (c *pctCommunicator) Download(src string, w io.Writer) error {
	if err := c.script("exec cat -- "+word(src), nil, w); err != nil {
		return fmt.Errorf("download %s: %w", src, err)
	}
	return nil
}

// UploadDir copies a directory: itself into dst, or with a slash at its end what is in it.
func (c *pctCommunicator) UploadDir(dst, src string, exclude []string) error {
	under := ""
	if !strings.HasSuffix(src, "/") {
		under = filepath.Base(src)
	}
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := pack(w, filepath.Clean(src), under, exclude)
		w.CloseWithError(err)
		packed <- err
	}()
	err := c.script(fmt.Sprintf("set -eu; mkdir -p %[1]s; exec tar -xf - -C %[1]s", word(dst)), r, nil)
	_ = r.Close()
	if err := errors.Join(err, <-packed); err != nil {
		return fmt.Errorf("upload the directory %s: %w", src, err)
	}
	return nil
}

// DownloadDir copies a directory here.
func (c *pctCommunicator) DownloadDir(src, dst string, exclude []string) error {
	script := fmt.Sprintf("set -eu; d=%s; cd \"$(dirname \"$d\")\"; exec tar -cf - \"$(basename \"$d\")\"", word(strings.TrimSuffix(src, "/")))
	if strings.HasSuffix(src, "/") {
		script = fmt.Sprintf("set -eu; cd %s; exec tar -cf - .", word(src))
	}
	r, w := io.Pipe()
	ran := make(chan error, 1)
	go func() {
		err := c.script(script, nil, w)
		w.CloseWithError(err)
		ran <- err
	}()
	err := unpack(r, dst, exclude)
	_, _ = io.Copy(io.Discard, r) // let the other side end
	if err := errors.Join(err, <-ran); err != nil {
		return fmt.Errorf("download the directory %s: %w", src, err)
	}
	return nil
}

// word makes one shell word.
func word(text string) string { return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'" }

// pack writes a directory as a tar stream; names begin with under.
func pack(w io.Writer, dir, under string, exclude []string) error {
	out := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if excluded(rel, exclude) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
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
		h.Name = filepath.ToSlash(filepath.Join(under, rel))
		h.Uid, h.Gid, h.Uname, h.Gname = 0, 0, "root", "root"
		if err := out.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
			return err
		}
		f, err := os.Open(path) //nolint:gosec // the user's own directory
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		_, err = io.Copy(out, f)
		return err
	})
	if err != nil {
		return err
	}
	return out.Close()
}

func excluded(rel string, exclude []string) bool {
	for _, pattern := range exclude {
		if match, err := filepath.Match(pattern, rel); err == nil && match || rel == filepath.Clean(pattern) {
			return true
		}
	}
	return false
}

// unpackLimit bounds what a container may send, in bytes.
const unpackLimit = 16 << 30

// unpack writes a tar stream under dir. It comes out of a container: nothing in it may lead out of dir.
func unpack(r io.Reader, dir string, exclude []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as cp would
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	in := tar.NewReader(io.LimitReader(r, unpackLimit))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Clean(h.Name)
		if name == "." || excluded(name, exclude) {
			continue
		}
		if !filepath.IsLocal(name) {
			return fmt.Errorf("the container sent %q, which leads out of the directory", h.Name)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(name, 0o755)
		case tar.TypeReg:
			err = unpackFile(root, name, fs.FileMode(h.Mode).Perm(), in)
		default:
			continue // links and devices are not taken out of a container
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, name string, mode fs.FileMode, r io.Reader) (err error) {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(f, r)
	return err
}
