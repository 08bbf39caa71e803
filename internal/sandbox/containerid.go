package sandbox

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseContainerID reads "vmid" or "node/vmid" (also Proxmox VE's own
// "lxc/vmid", whose node is then empty). The node is empty when the text names
// none.
func ParseContainerID(text string) (node string, vmid int, err error) {
	id := text
	if before, after, ok := strings.Cut(text, "/"); ok {
		node, id = before, after
		if node == "lxc" {
			node = ""
		} else if !validNodeName(node) {
			return "", 0, fmt.Errorf("%q is neither \"vmid\" nor \"node/vmid\": %q is no node's name", text, node)
		}
	}
	vmid, err = strconv.Atoi(id)
	if err != nil || strconv.Itoa(vmid) != id {
		return "", 0, fmt.Errorf("%q is neither \"vmid\" nor \"node/vmid\": %q is no id", text, id)
	}
	if vmid < MinVMID || vmid > MaxVMID {
		return "", 0, fmt.Errorf("%q: Proxmox VE's ids lie between %d and %d", text, MinVMID, MaxVMID)
	}
	return node, vmid, nil
}

// validNodeName follows Proxmox VE's rule for a node's name: one DNS label.
func validNodeName(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, r := range s {
		if !isLetter(r) && (r < '0' || r > '9') && r != '-' {
			return false
		}
	}
	return true
}
