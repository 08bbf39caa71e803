//go:build linux

package supervisor

import (
	"net/netip"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// Argv0 is the program name by which a binary that has this package in it knows that it is to be a supervisor. With the
// argument Wait it waits until its user namespace has its map, which is when ReadyFD ends. It keeps LockFD open, the lock of
// the lab's folder.
const (
	Argv0     = "sandbox-lab-supervisor"
	Wait      = "wait"
	ControlFD = 3
	ReadyFD   = 4
	LockFD    = 5
)

// Guest ids in the namespace of the lab's root are shifted by this much: Proxmox' own range for root, and the first after
// the user's own id where the lab has a user namespace.
const (
	RootIDBase = 100000
	UserIDBase = 1
	IDCount    = 65536
)

// Open is the first call's argument: what the lab is like.
type Open struct {
	Folder    string // of the state; exists
	Temporary bool   // the folder goes with the lab
	Cache     string // of base images
	Cgroup    string // name of the lab's cgroup
	// UserNamespace says that the lab runs as an ordinary user.
	UserNamespace  bool
	SharedHostKeys bool
	DHCP           map[string]netip.Prefix
	// Outside gives the lab the rest of the world, in which every address answers.
	Outside bool
}

// Opened is its result.
type Opened struct {
	// Notes say what this machine can't do.
	Notes []string
}

// Image names an unpacked base image by its tar file.
type Image struct {
	Key string
	Tar string // base name in the cache
}

// The arguments of calls that have more than one.
type (
	// CreateRoot is engine.Engine's.
	CreateRoot struct {
		ID    int
		Spec  engine.RootSpec
		Image Image
	}
	// Configure is engine.Engine's.
	Configure struct {
		ID     int
		Config engine.Config
	}
	// Snapshot is for Snapshot, Rollback and DeleteSnapshot.
	Snapshot struct {
		ID      int
		Name    string
		Volumes []string
	}
	// Size is for ResizeRoot, AllocVolume and ResizeVolume.
	Size struct {
		ID     int
		Volume string
		Bytes  int64
	}
	// Volume is for the other calls about volumes.
	Volume struct {
		ID       int
		Name, To string
		At       engine.Mount
	}
	// Exec is engine.Engine's; the streams are files that come with the call.
	Exec struct {
		ID   int
		Argv []string
		Env  []string
	}
	// Archive is for Export and Import; the stream comes with the call.
	Archive struct {
		ID       int
		Snapshot string
	}
	// Dialed is Dial's result; the socket comes with it.
	Dialed struct {
		Guest int // whose address it is, 0 if it is the lab's own
	}
	// Status is engine.Status without what the outer half knows better: StartedAt is the machine's time, not the lab's.
	Status struct {
		engine.Status
		Age time.Duration // since the start
	}
)

// The names of the calls.
const (
	CallOpen           = "open"
	CallClose          = "close"
	CallList           = "list"
	CallCreateRoot     = "create root"
	CallClone          = "clone"
	CallConfigure      = "configure"
	CallStart          = "start"
	CallStop           = "stop"
	CallKill           = "kill"
	CallReboot         = "reboot"
	CallInspect        = "inspect"
	CallSnapshot       = "snapshot"
	CallRollback       = "rollback"
	CallDeleteSnapshot = "delete snapshot"
	CallResizeRoot     = "resize root"
	CallDestroy        = "destroy"
	CallAllocVolume    = "allocate volume"
	CallCopyVolume     = "copy volume"
	CallRenameVolume   = "rename volume"
	CallResizeVolume   = "resize volume"
	CallAttachVolume   = "attach volume"
	CallDetachVolume   = "detach volume"
	CallDestroyVolume  = "destroy volume"
	CallInterfaces     = "interfaces"
	CallDial           = "dial"
	CallExec           = "exec"
	CallExport         = "export"
	CallImport         = "import"
	CallSetRules       = "set rules" // text of nftables' rules
	CallContacts       = "contacts"
	// CallRemove removes a folder that a lab has left, instead of CallOpen.
	CallRemove = "remove"
)
