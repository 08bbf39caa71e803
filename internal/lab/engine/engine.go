// Package engine is the border between the emulated Proxmox VE API and the guests behind it.
//
// The API side decides what is allowed, locked, pending or named; an engine only knows containers, their file trees,
// their addresses and whether they run. Two engines stand behind this interface: sim (simulated guests in one
// process, any operating system, no privileges) and ns (Linux namespaces). No Proxmox type crosses it: a guest is its
// number, a volume is a name that the caller chooses, and everything else is plain Go.
package engine

import (
	"context"
	"io"
	"net"
	"time"
)

// Engine makes, runs and destroys guests. All methods may be called from many goroutines; calls for the same guest
// are serialised by the engine. A method that changes something has finished doing so when it returns nil, and has
// changed nothing when it returns an error. Durations that a real server would need (the second that a clone takes)
// are the caller's to simulate: an engine answers as fast as it can.
type Engine interface {
	// Name is the engine's short name: "sim" or "ns".
	Name() string

	// Images lists the base images that CreateRoot accepts.
	Images() []string

	// CreateRoot makes a stopped guest with a fresh root file tree from a base image. ErrExists if the id is taken.
	CreateRoot(ctx context.Context, id int, spec RootSpec) error

	// Clone makes a stopped guest whose root is a copy of another's. Extra volumes are not copied (see CopyVolume).
	// Nothing of Config is copied either: the caller configures the new guest. ErrExists if the id is taken,
	// ErrNotFound if the source or its snapshot is missing.
	Clone(ctx context.Context, spec CloneSpec) error

	// Configure replaces the guest's configuration. Allowed at any time: addresses, link state and DNS of a running
	// guest follow at once, as do limits; the host name follows at the next start.
	Configure(ctx context.Context, id int, cfg Config) error

	// Start boots a stopped guest. It returns when the guest is running, which is before its SSH server answers.
	// ErrRunning if it runs already.
	Start(ctx context.Context, id int) error

	// Stop shuts the guest down in order (its init is asked); ErrNotRunning if it doesn't run. A context that ends
	// first leaves the guest running.
	Stop(ctx context.Context, id int) error

	// Kill takes the guest down at once; ErrNotRunning if it doesn't run.
	Kill(ctx context.Context, id int) error

	// Reboot is Stop and Start in one: addresses stay, the boot id changes, memory file systems are empty.
	Reboot(ctx context.Context, id int) error

	// Inspect says how the guest is: running or not, since when, and what it uses.
	Inspect(ctx context.Context, id int) (Status, error)

	// List returns the ids of all guests, in ascending order.
	List() []int

	// Snapshot keeps the root and the attached volumes named as they are now, under a name. A guest may run
	// meanwhile: its memory file systems are not part of it. ErrExists if there is such a snapshot.
	Snapshot(ctx context.Context, id int, name string, volumes ...string) error

	// Rollback puts back what Snapshot kept: the root, and those of the volumes kept with it that are still
	// attached. ErrRunning unless stopped. Later snapshots stay.
	Rollback(ctx context.Context, id int, name string) error

	// DeleteSnapshot forgets a snapshot; ErrNotFound if there is none.
	DeleteSnapshot(ctx context.Context, id int, name string) error

	// ResizeRoot sets the root's size in bytes. Engines without quotas only report it.
	ResizeRoot(ctx context.Context, id int, bytes int64) error

	// Destroy removes a stopped guest with its root and snapshots. Attached volumes are detached, not destroyed.
	// ErrRunning if it runs.
	Destroy(ctx context.Context, id int) error

	Volumes

	// Interfaces lists lo and the guest's NICs as seen from inside a running guest, in order; ErrNotRunning otherwise.
	Interfaces(ctx context.Context, id int) ([]Interface, error)

	// Dial connects from the lab's own node to an address of a guest, "10.77.0.11:22". It fails the way TCP does:
	// connection refused where nobody listens or the host is down, a context error where packets get lost.
	Dial(ctx context.Context, address string) (net.Conn, error)

	// Exec runs a command in a running guest as root, without SSH: what `pct exec` does.
	Exec(ctx context.Context, id int, cmd Command) (exitCode int, err error)

	// Export writes the guest's root, or that of one of its snapshots, as a tar stream with owners, modes and links.
	// An empty snapshot name means the root as it is now.
	Export(ctx context.Context, id int, snapshot string, w io.Writer) error

	// Import makes a stopped guest whose root is the content of a tar stream. ErrExists if the id is taken.
	Import(ctx context.Context, id int, r io.Reader) error

	// Close stops everything and frees what the engine holds. Guests that ran are not marked as stopped in the
	// state folder: a lab that comes back finds them down, as after a power cut.
	Close() error
}

// Volumes is the part of an engine that deals with volumes other than roots: mount points that outlive guests. Names
// are the caller's, unique in the engine.
type Volumes interface {
	// AllocVolume makes an empty volume of a size in bytes. ErrExists if the name is taken.
	AllocVolume(ctx context.Context, volume string, bytes int64) error

	// CopyVolume makes a volume that is a copy of another's present content (full clone of a mount point).
	CopyVolume(ctx context.Context, from, to string) error

	// RenameVolume gives a volume another name, also while it is attached (move to another storage or guest).
	RenameVolume(ctx context.Context, from, to string) error

	// ResizeVolume sets a volume's size in bytes.
	ResizeVolume(ctx context.Context, volume string, bytes int64) error

	// AttachVolume mounts a volume in a guest at an absolute path, at once when it runs. ErrInUse if another guest
	// has it or the path is taken.
	AttachVolume(ctx context.Context, id int, volume string, at Mount) error

	// DetachVolume unmounts it; the content stays. ErrNotFound if the guest doesn't have it.
	DetachVolume(ctx context.Context, id int, volume string) error

	// DestroyVolume removes a detached volume. ErrInUse while attached.
	DestroyVolume(ctx context.Context, volume string) error
}

// RootSpec says what a new root is made of.
type RootSpec struct {
	Image          string   // one of Images; empty means the engine's default
	AuthorizedKeys []string // authorized_keys lines for root
	Bytes          int64    // size of the root; 0 means the engine's default
	SharedHostKeys bool     // clones of this guest keep its SSH host keys, as careless templates do
	// Plain is a root as a node makes it from a template file: it has SSH host keys from the start, its clones keep them,
	// and where they are removed only a unit in the root makes new ones.
	Plain bool
}

// CloneSpec says what is copied to where.
type CloneSpec struct {
	From     int
	Snapshot string // empty: the source as it is now
	To       int
	Linked   bool // share storage with the source; engines may share anyway
}

// Config is what a guest gets from outside: name, network, limits.
type Config struct {
	Hostname   string
	NICs       []NIC
	DNSServers []string
	DNSDomain  string
	Limits     Limits
}

// NIC is one network interface of a guest.
type NIC struct {
	Name     string // "eth0"
	Bridge   string // "vmbr0"; DHCP addresses come from a range per bridge
	MAC      string // "BC:24:11:…"; the caller's choice, unique
	IPv4     string // CIDR, "dhcp", or empty for none ("manual")
	IPv6     string // CIDR, "dhcp", "auto", or empty for none
	Gateway4 string
	Gateway6 string
	LinkDown bool // no packet in either direction
}

// Limits are the guest's share of the machine. 0 means no limit.
type Limits struct {
	Cores       int
	CPU         float64 // share of CPU time in cores
	MemoryBytes int64
	SwapBytes   int64
}

// Mount is where and how a volume is attached.
type Mount struct {
	Path     string
	ReadOnly bool
}

// Status is what Inspect reports.
type Status struct {
	Running     bool
	BootID      string    // changes with every boot; empty when down
	StartedAt   time.Time // zero when down
	Processes   int
	MemoryBytes int64 // in use
	RootBytes   int64 // in use on the root
	RootSize    int64
	Snapshots   []string // in the order in which they were made
	Volumes     map[string]Mount
}

// Interface is a network interface as it is seen from inside.
type Interface struct {
	Name      string
	MAC       string   // lower case
	Addresses []string // CIDR, IPv4 before IPv6
}

// Command is a program that Exec runs: argv, no shell in between.
type Command struct {
	Argv   []string
	Env    []string // NAME=value, added to the guest's default environment
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}
