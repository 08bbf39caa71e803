package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// GroupUsers names what refers to a security group: "container 100012 (web-1)",
// "node pve1", "the datacenter". The server has no call for it, so every rule list
// that the identity may see is read. One that can't be read is an error: then it
// isn't shown that nobody uses the group.
func (m *Manager) GroupUsers(ctx context.Context, name string) ([]string, error) {
	m.pve.Lists().Drop()
	resources, err := m.pve.Lists().Resources(ctx)
	if err != nil {
		return nil, groupError("delete", name, "list what may refer to it", err)
	}
	type place struct {
		name  string
		scope pve.FirewallScope
	}
	places := []place{{"the datacenter", pve.ClusterFirewall()}}
	for _, r := range resources {
		switch r.Type {
		case "node":
			places = append(places, place{"node " + r.Node, pve.NodeFirewall(r.Node)})
		case "lxc":
			places = append(places, place{fmt.Sprintf("container %d (%s)", r.VMID, r.Name), pve.LXCFirewall(r.Node, r.VMID)})
		case "qemu":
			places = append(places, place{fmt.Sprintf("virtual machine %d (%s)", r.VMID, r.Name), pve.QEMUFirewall(r.Node, r.VMID)})
		}
	}
	var (
		mu    sync.Mutex
		users []string
		first error
	)
	forEach(places, func(p place) {
		rules, err := m.pve.FirewallRules(ctx, p.scope)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case pve.Means(err, pve.NoSuchGuest):
		case err != nil && first == nil:
			first = &Error{Op: "delete", What: fmt.Sprintf("find out whether %s refers to security group %s", p.name, name), Err: err, Kind: ErrGroupInUse,
				Remedy: "the group is kept until its rules can be read; the server would remove a group in use without a word"}
		case slices.ContainsFunc(rules, func(r pve.FirewallRule) bool { return r.Type == egress.Group && r.Action == name }):
			users = append(users, p.name)
		}
	})
	slices.Sort(users)
	return users, first
}

// forEach does something for each of many, a few at a time.
func forEach[T any](list []T, do func(T)) {
	var wg sync.WaitGroup
	gate := make(chan struct{}, listParallel)
	for _, item := range list {
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			do(item)
		})
	}
	wg.Wait()
}

func groupInUse(name string, users []string) error {
	return &Error{
		Op: "delete", What: "delete security group " + name, Kind: ErrGroupInUse,
		Err:    fmt.Errorf("%w by %s", ErrGroupInUse, strings.Join(users, ", ")),
		Remedy: "give them another group or mode first; Proxmox VE itself would remove it and leave their references dangling",
	}
}
