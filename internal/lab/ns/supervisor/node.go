//go:build linux

package supervisor

import (
	"context"
	"fmt"
	"net"
)

// nodePorts are those at which a Proxmox node answers its guests: SSH, SPICE's proxy, the API.
var nodePorts = []int{22, 3128, 8006}

// listenAsNode answers at a node's usual ports, so that a guest that reaches the node can tell. Nobody is served: a
// connection ends as soon as it is made.
func (n *network) listenAsNode() error {
	for _, port := range nodePorts {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return fmt.Errorf("the node's port %d: %w", port, err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = c.Close()
			}
		}()
	}
	return nil
}
