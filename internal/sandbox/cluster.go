package sandbox

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// ClusterState is what the cluster looks like.
type ClusterState struct {
	Name    string // empty on a node that is in no cluster
	Quorate bool
	Version string // of Proxmox VE, e.g. "9.2.11"
	Nodes   []NodeState
}

// NodeState is one node and its capacity. Figures are up to 10 s old.
type NodeState struct {
	Name              string
	Online            bool
	CPUs              int
	CPUUsed           float64 // 0 to 1
	MemoryMiB         int64
	MemoryUsedMiB     int64
	Uptime            time.Duration
	Containers        int // of any owner, templates and holders of workspaces excluded
	RunningContainers int
	Storages          []StorageState
}

// StorageState is one storage as a node sees it.
type StorageState struct {
	Name     string
	Type     string
	Shared   bool
	Active   bool
	Content  []string
	TotalGiB float64
	UsedGiB  float64
}

// Cluster says what the cluster looks like. It needs Sys.Audit on "/".
func (m *Manager) Cluster(ctx context.Context) (ClusterState, error) {
	status, err := m.pve.ClusterStatus(ctx)
	if err != nil {
		return ClusterState{}, m.step("cluster", Ref{}, "read the cluster's status", err)
	}
	version, err := m.pve.Version(ctx)
	if err != nil {
		return ClusterState{}, m.step("cluster", Ref{}, "read the server's version", err)
	}
	resources, err := m.pve.Lists().Resources(ctx)
	if err != nil {
		return ClusterState{}, m.step("cluster", Ref{}, "list the cluster's resources", err)
	}
	out := ClusterState{Name: status.Name, Quorate: status.Quorate, Version: version.Version}
	nodes := map[string]*NodeState{}
	for _, n := range status.Nodes {
		nodes[n.Name] = &NodeState{Name: n.Name, Online: n.Online}
	}
	for _, r := range resources {
		n := nodes[r.Node]
		if n == nil {
			continue
		}
		switch r.Type {
		case "node":
			n.CPUs, n.CPUUsed = int(r.MaxCPU), r.CPU
			n.MemoryMiB, n.MemoryUsedMiB = r.MaxMem>>20, r.Mem>>20
			n.Uptime = time.Duration(r.Uptime) * time.Second
		case "lxc":
			if r.Template || isHolder(r) {
				continue
			}
			n.Containers++
			if r.Status == string(StatusRunning) {
				n.RunningContainers++
			}
		case "storage":
			n.Storages = append(n.Storages, StorageState{
				Name: r.Storage, Type: r.PluginType, Shared: r.Shared, Active: r.Status == "available",
				Content: sortedList(r.Content), TotalGiB: float64(r.MaxDisk) / gib, UsedGiB: float64(r.Disk) / gib,
			})
		}
	}
	for _, n := range nodes {
		slices.SortFunc(n.Storages, func(a, b StorageState) int { return cmp.Compare(a.Name, b.Name) })
		out.Nodes = append(out.Nodes, *n)
	}
	slices.SortFunc(out.Nodes, func(a, b NodeState) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// sortedList takes apart a list that the server sends in no order.
func sortedList(s string) []string {
	list := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(list)
	return list
}
