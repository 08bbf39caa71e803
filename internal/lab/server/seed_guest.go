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

// Crowd adds n stopped containers of somebody else, of which lists and configurations are all there is.
func (d *Seeder) Crowd(node string, first, n int) {
	for vmid := first; vmid < first+n; vmid++ {
		d.s.st.Guests[vmid] = &guest{VMID: vmid, Node: node, Created: d.s.now(), Config: map[string]string{
			"arch": "amd64", "cores": "2", "memory": "2048", "hostname": fmt.Sprintf("tenant-%d", vmid), "ostype": "debian", "unprivileged": "1",
			"rootfs": fmt.Sprintf("local-dir2:%d/vm-%d-disk-0.raw,size=8G", vmid, vmid), "tags": "tenant",
			"net0": fmt.Sprintf("name=eth0,bridge=vmbr0,hwaddr=BC:24:12:%02X:%02X:%02X,ip=dhcp,type=veth", vmid>>16&0xff, vmid>>8&0xff, vmid&0xff),
		}}
	}
}
