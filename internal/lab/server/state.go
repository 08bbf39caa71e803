package server

import (
	"time"
)

// state is everything that a cluster knows. It is saved as JSON when Options.Dir is set.
type state struct {
	Nodes    []*node             `json:"nodes"`
	Guests   map[int]*guest      `json:"guests"`
	Storages map[string]*storage `json:"storages"`
	// Volumes by volumeKey: a local storage has a volume of its own on each node.
	Volumes  map[string]*volume      `json:"volumes"`
	Pools    map[string]*pool        `json:"pools"`
	Users    map[string]*user        `json:"users"`
	Groups   map[string]*group       `json:"groups"`
	Roles    map[string]*role        `json:"roles"`
	ACL      []aclEntry              `json:"acl"`
	Domains  map[string]*domain      `json:"domains"`
	Tasks    []*task                 `json:"tasks"` // oldest first
	Options  map[string]string       `json:"options"`
	Firewall *clusterFirewall        `json:"firewall"`
	HA       map[string]*haResource  `json:"ha"`
	Cluster  string                  `json:"cluster"` // cluster name, empty with one node
	Secrets  stateSecrets            `json:"secrets"`
	PID      int                     `json:"pid"` // last process id that was given to a task
	Boot     time.Time               `json:"boot"`
	Jobs     map[string]*backupJob   `json:"jobs"`
	VNets    map[string]*vnetSetting `json:"vnets"`
}

// backupJob and vnetSetting hold what later endpoints keep: free-form options.
type (
	backupJob   struct{ Options map[string]string }
	vnetSetting struct{ Options map[string]string }
)

// stateSecrets sign tickets; they live as long as the state, so that tickets survive a restart.
type stateSecrets struct {
	Ticket []byte `json:"ticket"`
}

// node is one node of the cluster.
type node struct {
	Name     string           `json:"name"`
	ID       int              `json:"id"`
	IP       string           `json:"ip"`
	Away     bool             `json:"away"` // the control API took it away: 595 and 596
	Boot     time.Time        `json:"boot"`
	Bridges  []string         `json:"bridges"`
	MaxCPU   int              `json:"maxcpu"`
	MaxMem   int64            `json:"maxmem"`  // bytes
	MaxDisk  int64            `json:"maxdisk"` // bytes
	Firewall *nodeFirewall    `json:"firewall"`
	Network  []map[string]any `json:"network"`
}

// guest is a container.
type guest struct {
	VMID int    `json:"vmid"`
	Node string `json:"node"`
	// Config has the values as in the configuration file, the description with its final newline. No digest.
	Config map[string]string `json:"config"`
	// Raw are the lxc.* lines, in order.
	Raw [][2]string `json:"raw,omitempty"`
	// Pending are values that wait for a restart, PendingDelete options whose removal does.
	Pending       map[string]string    `json:"pending,omitempty"`
	PendingDelete map[string]bool      `json:"pending_delete,omitempty"`
	Snapshots     map[string]*snapshot `json:"snapshots,omitempty"`
	// Running is the container's state; StartedAt its start.
	Running   bool      `json:"running"`
	StartedAt time.Time `json:"started_at"`
	PID       int       `json:"pid,omitempty"`
	Created   time.Time `json:"created"`
	// Dirty says that the next mount waits for ext4's multi-mount protection (rollback to a running snapshot).
	Dirty    bool           `json:"dirty,omitempty"`
	Firewall *guestFirewall `json:"firewall,omitempty"`
	// Active is the configuration with which the container runs, for what is pending.
	Active map[string]string `json:"active,omitempty"`
	// stat is what the status service last saw: what /cluster/resources and pools show. Nil: not seen yet.
	stat *guestStat
	// Systemd is the version of systemd in the container, 0 without: a start without nesting warns about it.
	Systemd int `json:"systemd,omitempty"`
	// phase is what the container does between stopped and running. Not kept: a restart finds it steady.
	phase guestPhase
}

// snapshot is a kept state of a container. Config is the configuration as it was.
type snapshot struct {
	Name        string            `json:"name"`
	Parent      string            `json:"parent,omitempty"`
	Time        int64             `json:"time"` // unix seconds
	Description string            `json:"description,omitempty"`
	Config      map[string]string `json:"config"`
	Raw         [][2]string       `json:"raw,omitempty"`
	// WasRunning makes a rollback leave a file system that waits at its first mount.
	WasRunning bool `json:"was_running"`
	// Blob names what the engine kept.
	Blob string `json:"blob,omitempty"`
}

// guestStat is one round of the status service.
type guestStat struct {
	Status, Name    string
	MaxMem, MaxDisk int64
	MaxCPU          float64
	Mem, Disk       int64
	CPU             float64
	NetIn, NetOut   int64
	DiskRead        int64
	DiskWrite       int64
	Uptime          int64
	Template        bool
}

// storage is an entry of the storage configuration.
type storage struct {
	ID      string            `json:"id"`
	Type    string            `json:"type"` // dir, btrfs
	Path    string            `json:"path"`
	Content []string          `json:"content"`
	Nodes   []string          `json:"nodes,omitempty"` // empty: all
	Shared  bool              `json:"shared"`
	Disable bool              `json:"disable"`
	Total   int64             `json:"total"` // bytes
	Extra   map[string]string `json:"extra,omitempty"`
}

// volume is a piece of storage content.
type volume struct {
	VolID   string `json:"volid"` // local-btrfs:100/vm-100-disk-0.raw
	Node    string `json:"node"`  // empty on shared storage
	Content string `json:"content"`
	Format  string `json:"format"`
	Size    int64  `json:"size"` // bytes
	Used    int64  `json:"used"` // bytes
	VMID    int    `json:"vmid,omitempty"`
	CTime   int64  `json:"ctime"` // unix seconds
	Parent  string `json:"parent,omitempty"`
	Notes   string `json:"notes,omitempty"`
	Protect bool   `json:"protect,omitempty"`
	// Archive is what a backup holds: the configuration of the container it came from.
	Archive *archive `json:"archive,omitempty"`
	// Blob names what the engine kept of it.
	Blob string `json:"blob,omitempty"`
}

// archive is the inside of a backup.
type archive struct {
	Config  map[string]string `json:"config"`
	Raw     [][2]string       `json:"raw,omitempty"`
	Systemd int               `json:"systemd,omitempty"`
}

// pool is a resource pool.
type pool struct {
	ID       string          `json:"id"`
	Comment  string          `json:"comment"`
	Guests   map[int]bool    `json:"guests"`
	Storages map[string]bool `json:"storages"`
}

// haResource is an entry of the high-availability manager.
type haResource struct {
	SID     string            `json:"sid"` // ct:100
	Options map[string]string `json:"options"`
}

// volumeKey is the key of a volume in state.Volumes. node is empty for shared storage.
func volumeKey(node, volid string) string { return node + "|" + volid }
