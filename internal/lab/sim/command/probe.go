package command

import (
	"net"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
)

// probe asks the lab's model of the firewall whether a packet would leave the guest: `probe udp 10.77.0.2 53` prints
// "open simulated" or "blocked simulated". It sends nothing, and says so.
func probe(c *shell.Call) int {
	if len(c.Argv) != 4 {
		return c.Usage("usage: probe tcp|udp address port")
	}
	passes, err := c.Machine.Network.Permits(c.Argv[1], net.JoinHostPort(c.Argv[2], c.Argv[3]))
	if err != nil {
		return c.Fail("%s", err)
	}
	if !passes {
		c.Out("blocked simulated\n")
		return 1
	}
	c.Out("open simulated\n")
	return 0
}
