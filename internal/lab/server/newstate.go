package server

import (
	"crypto/rand"
	"fmt"
	"time"
)

// newState is a fresh installation: nodes, storages, built-in roles, root@pam, the two realms. No guests.
func newState(nodes int, now time.Time) *state {
	st := &state{
		Guests: map[int]*guest{}, Volumes: map[string]*volume{}, Pools: map[string]*pool{}, Groups: map[string]*group{},
		Roles: newRoles(), Options: map[string]string{}, HA: map[string]*haResource{}, Jobs: map[string]*backupJob{},
		VNets: map[string]*vnetSetting{}, PID: 600, Boot: now.Add(-40 * time.Minute),
		Users: map[string]*user{rootUser: {ID: rootUser, Enable: true}},
		Domains: map[string]*domain{
			"pam": {ID: "pam", Type: "pam", Comment: "Linux PAM standard authentication"},
			"pve": {ID: "pve", Type: "pve", Comment: "Proxmox VE authentication server"},
		},
		Firewall: &clusterFirewall{
			Options: map[string]string{}, Groups: map[string]*fwRuleSet{}, IPSets: map[string]*fwIPSet{}, Aliases: map[string]*fwAlias{},
		},
		Storages: map[string]*storage{
			"local": {ID: "local", Type: "dir", Path: "/var/lib/vz", Total: 270553174016, Extra: map[string]string{"prune-backups": "keep-all=1"},
				Content: []string{"import", "rootdir", "snippets", "backup", "vztmpl", "images", "iso"}},
			"local-btrfs": {ID: "local-btrfs", Type: "btrfs", Path: "/mnt/btrfs/local-btrfs", Total: 25769803776,
				Content: []string{"rootdir", "images", "backup", "vztmpl", "snippets"}},
			"local-dir2": {ID: "local-dir2", Type: "dir", Path: "/var/lib/vz2", Total: 270553174016,
				Content: []string{"backup", "images", "rootdir"}},
		},
	}
	st.Secrets.Ticket = make([]byte, 32)
	if _, err := rand.Read(st.Secrets.Ticket); err != nil {
		panic(err) // crypto/rand never fails on supported systems
	}
	for i := 1; i <= nodes; i++ {
		st.Nodes = append(st.Nodes, newNode(i, st.Boot))
	}
	if nodes > 1 {
		st.Cluster = "lab"
	}
	return st
}

func newNode(i int, boot time.Time) *node {
	ip := fmt.Sprintf("10.10.10.%d", i)
	return &node{
		Name: fmt.Sprintf("pve%d", i), ID: i, IP: ip, Boot: boot, Bridges: []string{"vmbr0", "vmbr1"},
		MaxCPU: 2, MaxMem: 25276510208, MaxDisk: 270553174016,
		Firewall: &nodeFirewall{Options: map[string]string{}},
	}
}
