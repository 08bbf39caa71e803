package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// Guests are the containers as the node knows them: what pct and /etc/pve/lxc need.
type Guests interface {
	// Exec runs a program in a running container as root.
	Exec(ctx context.Context, id int, cmd engine.Command) (int, error)
	// ConfigFiles are the configuration files by vmid, and WriteConfigFile takes one that was edited.
	ConfigFiles() map[int]string
	WriteConfigFile(vmid int, text string) error
	// VolumePath is where a volume's file is or would be, and MoveFile makes one volume's file another's.
	VolumePath(volid string) (path string, there bool, err error)
	MoveFile(from, to string) error
}

// configFolder is where a node shows the containers' configuration files.
const configFolder = "/etc/pve/lxc"

// pct runs programs in containers and moves files: exec, push and pull, as `man pct` has them.
func (n *Node) pct(c *shell.Call) int {
	if n.options.Guests == nil {
		return c.Fail("this node has no containers")
	}
	if len(c.Argv) < 3 {
		return c.Usage("pct exec <vmid> -- <command>, pct push <vmid> <file> <destination>, pct pull <vmid> <path> <destination>")
	}
	vmid, err := strconv.Atoi(c.Argv[2])
	if err != nil {
		return c.Usage("vmid: type check ('integer') failed - got '%s'", c.Argv[2])
	}
	if _, there := n.options.Guests.ConfigFiles()[vmid]; !there {
		return c.Fail("Configuration file 'nodes/%s/lxc/%d.conf' does not exist", c.Machine.Hostname(), vmid)
	}
	args := c.Argv[3:]
	switch {
	case c.Argv[1] == "exec" && len(args) > 1 && args[0] == "--":
		return n.enter(c, vmid, args[1:], c.In, c.Stdout)
	case c.Argv[1] == "push" && len(args) == 2:
		f, err := c.Open(args[0], 0, 0)
		if err != nil {
			return c.FailFile(args[0], err)
		}
		defer func() { _ = f.Close() }()
		return n.enter(c, vmid, []string{"sh", "-c", `cat >"$1"`, "sh", args[1]}, f, io.Discard)
	case c.Argv[1] == "pull" && len(args) == 2:
		var out strings.Builder
		if code := n.enter(c, vmid, []string{"cat", "--", args[0]}, strings.NewReader(""), &out); code != 0 {
			return code
		}
		if err := c.Machine.FS.WriteFile(c.Cred, c.Path(args[1]), []byte(out.String()), 0o644); err != nil {
			return c.FailFile(args[1], err)
		}
		return 0
	}
	return c.Usage("unknown command, or parameters that it doesn't take: %s", strings.Join(c.Argv[1:], " "))
}

func (n *Node) enter(c *shell.Call, vmid int, argv []string, in io.Reader, out io.Writer) int {
	code, err := n.options.Guests.Exec(c, vmid, engine.Command{Argv: argv, Stdin: in, Stdout: out, Stderr: c.Stderr})
	if errors.Is(err, engine.ErrNotRunning) {
		return c.Fail("CT %d not running", vmid)
	}
	if err != nil && code == 0 {
		c.Fail("%v", err)
		return 255
	}
	return code
}

// showConfigs puts the configuration files where the node has them, and returns what they say.
func (n *Node) showConfigs(m *sim.Standalone) (map[string]string, error) {
	shown := map[string]string{}
	if n.options.Guests == nil {
		return shown, nil
	}
	if err := m.FS.MkdirAll(vfs.Root, configFolder, 0o755); err != nil {
		return nil, err
	}
	for id, text := range n.options.Guests.ConfigFiles() {
		shown[fmt.Sprintf("%d.conf", id)] = text
	}
	old, err := m.FS.ReadDir(vfs.Root, configFolder)
	if err != nil {
		return nil, err
	}
	for _, in := range old {
		if _, still := shown[in.Name()]; !still {
			err = errors.Join(err, m.FS.Unlink(vfs.Root, path.Join(configFolder, in.Name())))
		}
	}
	for name, text := range shown {
		err = errors.Join(err, m.FS.WriteFile(vfs.Root, path.Join(configFolder, name), []byte(text), 0o640))
	}
	return shown, err
}

// takeConfigs hands on the files that a command has changed.
func (n *Node) takeConfigs(m *sim.Standalone, shown map[string]string) error {
	var errs []error
	for name, was := range shown {
		text, err := m.FS.ReadFile(vfs.Root, path.Join(configFolder, name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && string(text) == was {
			continue
		}
		id, convErr := strconv.Atoi(strings.TrimSuffix(name, ".conf"))
		if err := errors.Join(err, convErr); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, n.options.Guests.WriteConfigFile(id, string(text)))
	}
	return errors.Join(errs...)
}
