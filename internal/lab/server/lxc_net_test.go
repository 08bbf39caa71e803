package server

import "testing"

func TestARunningContainerGetsNoVLANOnABridgeWithoutPhysicalInterface(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.running(410)
	const net = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:19:FC:39,ip=dhcp,type=veth"
	lab.ok("PUT", ct+"/config", form{"net0": net})
	lab.badParameter("PUT", ct+"/config", form{"net0": net + ",tag=7", "memory": "256"}, "net0",
		"unable to hotplug net0: no physical interface on bridge 'vmbr0'\n\n")
	lab.option(ct, "net0", net)
	lab.option(ct, "memory", 128.0) // nothing of the change is kept
	lab.done("POST", ct+"/status/stop", nil)
	lab.ok("PUT", ct+"/config", form{"net0": net + ",tag=7"})
	lab.ok("POST", "network", form{"iface": "vmbr9", "type": "bridge", "bridge_ports": "eno1"})
	lab.done("PUT", "network", nil)
	other := lab.running(411)
	lab.ok("PUT", other+"/config", form{"net0": "name=eth0,bridge=vmbr9,ip=dhcp,tag=7"})
}
