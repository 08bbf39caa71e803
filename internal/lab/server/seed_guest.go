package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// seedGuest adds a stopped container: its configuration, its root volume, its root in the engine.
func (s *Server) seedGuest(ctx context.Context, node string, vmid int, config map[string]string, root engine.RootSpec) error {
	g := &guest{VMID: vmid, Node: node, Config: map[string]string{}, Created: s.now()}
	for key, value := range config {
		g.Config[key] = value
	}
	volid, _, _ := strings.Cut(g.Config["rootfs"], ",")
	size := diskBytes(g.Config["rootfs"])
	if volid == "" || size == 0 {
		return fmt.Errorf("container %d: rootfs %q is not a volume with a size", vmid, g.Config["rootfs"])
	}
	s.st.Volumes[volumeKey(node, volid)] = &volume{
		VolID: volid, Node: node, Content: "rootdir", Format: "raw", Size: size, Used: 201269248, VMID: vmid, CTime: s.now().Unix(),
	}
	s.st.Guests[vmid] = g
	if s.engine == nil {
		return nil
	}
	root.Bytes = size
	return s.engine.CreateRoot(ctx, vmid, root)
}
