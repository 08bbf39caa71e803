package node

import (
	"errors"
	"path"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// pvesm prints where a volume's file is. In a lab that file holds its volume's id and nothing else: enough to be moved.
func (n *Node) pvesm(c *shell.Call) int {
	if n.options.Guests == nil || len(c.Argv) != 3 || c.Argv[1] != "path" {
		return c.Usage("pvesm path <volume>")
	}
	volid := c.Argv[2]
	file, there, err := n.options.Guests.VolumePath(volid)
	if err != nil {
		return c.Fail("%v", err)
	}
	if there {
		err := errors.Join(c.Machine.FS.MkdirAll(vfs.Root, path.Dir(file), 0o755), c.Machine.FS.WriteFile(vfs.Root, file, []byte(volid), 0o644))
		if err != nil {
			return c.FailFile(file, err)
		}
	}
	n.mu.Lock()
	n.files[volid] = file
	n.mu.Unlock()
	c.Out("%s\n", file)
	return 0
}

// takeFiles hands on what a command has moved to where another volume's file belongs.
func (n *Node) takeFiles(m *sim.Standalone) error {
	n.mu.Lock()
	files := n.files
	n.files = map[string]string{}
	n.mu.Unlock()
	var errs []error
	for volid, file := range files {
		if text, err := m.FS.ReadFile(vfs.Root, file); err == nil && string(text) != volid {
			errs = append(errs, n.options.Guests.MoveFile(string(text), volid))
		}
	}
	return errors.Join(errs...)
}
