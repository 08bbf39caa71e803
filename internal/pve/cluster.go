package pve

import (
	"context"
	"fmt"
	"time"
)

// Version is the server's version.
type Version struct {
	// Version is "9.2.11", Release "9.2".
	Version string `pve:"version"`
	Release string `pve:"release"`
	RepoID  string `pve:"repoid"`
	Extra   Extra
}

// Version asks the server for its version: the cheapest call that proves the
// endpoint, its certificate and the credentials. An endpoint that answers
// otherwise is an error that means NotProxmox.
func (c *Client) Version(ctx context.Context) (Version, error) {
	v, err := getObject[Version](ctx, c, "/version", nil)
	if err != nil {
		return v, err
	}
	if v.Version == "" || v.Release == "" {
		return v, &Error{Method: "GET", Path: "/version", Status: 200, Meaning: NotProxmox, Message: "the answer has no version of Proxmox VE"}
	}
	return v, nil
}

// ClusterStatus is the state of the cluster, or of a node that stands alone.
type ClusterStatus struct {
	// Name is the cluster's, "" for a node that stands alone.
	Name string
	// Quorate says whether configurations can be written; a node that stands
	// alone always is.
	Quorate bool
	Nodes   []ClusterNode
}

// ClusterNode is a node as the cluster sees it.
type ClusterNode struct {
	Name   string
	Online bool
	// Local says that this node answered.
	Local bool
	IP    string
}

type wireClusterEntry struct {
	Type    string `pve:"type"`
	Name    string `pve:"name"`
	Quorate bool   `pve:"quorate"`
	Online  bool   `pve:"online"`
	Local   bool   `pve:"local"`
	IP      string `pve:"ip"`
	Extra   Extra
}

// ClusterStatus returns the state of the cluster. It needs Sys.Audit on "/".
func (c *Client) ClusterStatus(ctx context.Context) (ClusterStatus, error) {
	entries, err := getList[wireClusterEntry](ctx, c, "/cluster/status", nil)
	if err != nil {
		return ClusterStatus{}, err
	}
	out := ClusterStatus{Quorate: true}
	for _, e := range entries {
		switch e.Type {
		case "cluster":
			out.Name, out.Quorate = e.Name, e.Quorate
		case "node":
			out.Nodes = append(out.Nodes, ClusterNode{Name: e.Name, Online: e.Online, Local: e.Local, IP: e.IP})
		}
	}
	if len(out.Nodes) == 0 {
		return ClusterStatus{}, &AnswerError{Method: "GET", Path: "/cluster/status", Err: fmt.Errorf("the list names no node")}
	}
	return out, nil
}

// Node is a node of the list of nodes.
type Node struct {
	Name string `pve:"node,must"`
	// Status is "online", "offline" or "unknown".
	Status string `pve:"status"`
	// CPU is the load as a part of MaxCPU, 0 to 1.
	CPU    float64 `pve:"cpu"`
	MaxCPU int     `pve:"maxcpu"`
	// Mem, MaxMem, Disk and MaxDisk are in bytes; Uptime is in seconds.
	Mem         int64  `pve:"mem"`
	MaxMem      int64  `pve:"maxmem"`
	Disk        int64  `pve:"disk"`
	MaxDisk     int64  `pve:"maxdisk"`
	Uptime      int64  `pve:"uptime"`
	Fingerprint string `pve:"ssl_fingerprint"`
	Extra       Extra
}

// Online reports whether the node is up.
func (n Node) Online() bool { return n.Status == "online" }

// Nodes lists the nodes.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	return getList[Node](ctx, c, "/nodes", nil)
}

// NodeStatus is a node's own account of itself.
type NodeStatus struct {
	// Seconds is for how long the node is up.
	Seconds    int64      `pve:"uptime,must"`
	PVEVersion string     `pve:"pveversion"`
	Memory     NodeMemory `pve:"memory"`
	RootFS     NodeMemory `pve:"rootfs"`
	Extra      Extra
}

// Uptime is for how long the node is up.
func (s NodeStatus) Uptime() time.Duration { return time.Duration(s.Seconds) * time.Second }

// NodeMemory is memory or disk space, in bytes.
type NodeMemory struct {
	Total     int64 `pve:"total"`
	Used      int64 `pve:"used"`
	Free      int64 `pve:"free"`
	Available int64 `pve:"available"`
	Avail     int64 `pve:"avail"`
	Extra     Extra
}

// UnmarshalJSON takes numbers as strings.
func (m *NodeMemory) UnmarshalJSON(data []byte) error { return decodeObject(data, m) }

// NodeStatus returns a node's own account of itself. It needs Sys.Audit on it.
func (c *Client) NodeStatus(ctx context.Context, node string) (NodeStatus, error) {
	return getObject[NodeStatus](ctx, c, nodePath(node)+"/status", nil)
}

// Resource is an entry of the cluster's list: a guest, node, storage or pool.
type Resource struct {
	// ID is "lxc/105", "node/pve1", "storage/pve1/local", "/pool/p1".
	ID string `pve:"id,must"`
	// Type is "lxc", "qemu", "node", "storage", "pool", "sdn".
	Type string `pve:"type,must"`
	Node string `pve:"node"`
	// VMID is 0 for what isn't a guest.
	VMID int    `pve:"vmid"`
	Name string `pve:"name"`
	// Status is up to 10 s old, and "unknown" for a new guest.
	Status   string `pve:"status"`
	Template bool   `pve:"template"`
	Lock     string `pve:"lock"`
	Pool     string `pve:"pool"`
	Tags     string `pve:"tags"`
	HAState  string `pve:"hastate"`
	// Storage, PluginType, Content and Shared are of storages.
	Storage    string `pve:"storage"`
	PluginType string `pve:"plugintype"`
	Content    string `pve:"content"`
	Shared     bool   `pve:"shared"`
	// Uptime is in seconds; CPU a part of MaxCPU; the others are in bytes.
	Uptime  int64   `pve:"uptime"`
	CPU     float64 `pve:"cpu"`
	MaxCPU  float64 `pve:"maxcpu"`
	Mem     int64   `pve:"mem"`
	MaxMem  int64   `pve:"maxmem"`
	Disk    int64   `pve:"disk"`
	MaxDisk int64   `pve:"maxdisk"`
	Extra   Extra
}

// TagList returns the tags one by one.
func (r Resource) TagList() []string { return splitTags(r.Tags) }

// IsGuest reports whether it is a container or virtual machine.
func (r Resource) IsGuest() bool { return r.Type == "lxc" || r.Type == "qemu" }

// ClusterResources lists what the identity may see of the cluster; kind is "vm",
// "node", "storage", "sdn", or "" for all. It is up to 10 s old: where a guest
// is may be trusted, its name and status may not.
func (c *Client) ClusterResources(ctx context.Context, kind string) ([]Resource, error) {
	p := params{}
	p.setText("type", kind)
	return getList[Resource](ctx, c, "/cluster/resources", p)
}
