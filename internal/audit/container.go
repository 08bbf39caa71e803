package audit

// Container is a container's configuration as the server has it.
type Container struct {
	Unprivileged bool
	Template     bool
	OnBoot       bool
	Protection   bool
	// Features are "nesting=1", "keyctl=1" …
	Features []string
	// Raw are the lines of LXC's own, key and value.
	Raw        [][2]string
	Mounts     []Mount // without the root disk and without workspaces
	Devices    []string
	Hookscript string
	// Cores, MemoryMiB and SwapMiB are nil when the configuration has none.
	Cores, MemoryMiB, SwapMiB *int
	CPULimit                  float64 // 0 is none
	DiskGiB                   float64 // 0 when the root disk has no size
	Interfaces                []Interface
	// Firewall is the guest's own switches; nil when they weren't read.
	Firewall *Firewall
	// Snapshots is how many there are; nil when it wasn't asked.
	Snapshots *int
	// AllowedRisks are rules of the provider's policy that the configuration names
	// as exceptions.
	AllowedRisks []string
}

// Mount is a mount point.
type Mount struct {
	Slot string // mp0 …
	// Source is a volume id, or a path of the node.
	Source string
	Path   string
}

// Interface is a network interface.
type Interface struct {
	Slot, Bridge string
	Firewall     bool // the guest's rules count on it
}

// Firewall is what a guest's firewall is set to.
type Firewall struct {
	Datacenter bool // the switch without which nothing is filtered
	Enabled    bool
	PolicyIn   string
	MACFilter  bool
}
