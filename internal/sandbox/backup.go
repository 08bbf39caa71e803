package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// ErrNoSpace says that a storage is full.
var ErrNoSpace = errors.New("the storage is full")

// How a container is saved, in the server's words.
const (
	BackupSnapshot = "snapshot" // as it is at one moment; without downtime where the storage has snapshots
	BackupSuspend  = "suspend"  // copied twice, frozen for the second, short copy
	BackupStop     = "stop"     // shut down, copied, started again: the only mode that sees the disk at rest
)

// How an archive is compressed, in the server's words but for the first.
const (
	BackupUncompressed = "none"
	BackupZstd         = "zstd"
	BackupGzip         = "gzip"
	BackupLzo          = "lzo"
)

const (
	// MaxBackupNotes is how long a backup's notes may be, in characters. The
	// server takes 1,024 with our marker and its escapes.
	MaxBackupNotes = 700
	// maxServerNotes is the server's limit for the whole.
	maxServerNotes = 1024
	// DefaultBackupTimeout bounds a backup whose caller sets no limit.
	DefaultBackupTimeout = time.Hour
)

// BackupSpec is what a user wants of one backup.
type BackupSpec struct {
	VMID    int
	Storage string
	// Mode and Compression are one of the constants above; empty is snapshot
	// and zstd.
	Mode        string
	Compression string
	// Notes are the user's; the ownership marker is added by this package.
	Notes string
	// Protected keeps everybody from removing it, us included.
	Protected bool
	// KeepLast is how many of a series stay when a new one is made, the new one
	// included; 0 is 1.
	KeepLast int
}

// BackupRef is how a caller holds a backup.
type BackupRef struct {
	// VolID is empty for a creation of which nobody knows how it ended: whatever
	// of its series there is, is it.
	VolID   string
	Storage string
	VMID    int
	Node    string // a hint: whose storage it is on
	// Series is the claim that the backups of one resource share.
	Series string
}

// Backup is what the server says about one backup.
type Backup struct {
	BackupRef
	SizeBytes int64
	CreatedAt time.Time
	Notes     string // the user's part
	Protected bool
}

// place is the storage and the container of a ref.
func (r BackupRef) place() (storage string, vmid int, err error) {
	if r.VolID == "" {
		return r.Storage, r.VMID, nil
	}
	return ParseBackupID(r.VolID)
}

func (s BackupSpec) withDefaults() BackupSpec {
	if s.Mode == "" {
		s.Mode = BackupSnapshot
	}
	if s.Compression == "" {
		s.Compression = BackupZstd
	}
	s.KeepLast = max(s.KeepLast, 1)
	return s
}

// CheckBackup validates without any request.
func (m *Manager) CheckBackup(spec BackupSpec) []Problem {
	var p problems
	if !validID(spec.Storage) {
		p.add("storage", fmt.Sprintf("%q is no storage's name", spec.Storage), "A storage's name begins with a letter and holds letters, digits and -_. only.")
	}
	spec = spec.withDefaults()
	if modes := []string{BackupSnapshot, BackupSuspend, BackupStop}; !slices.Contains(modes, spec.Mode) {
		p.add("mode", fmt.Sprintf("%q is no mode", spec.Mode), "Use "+strings.Join(modes, ", ")+".")
	}
	if kinds := []string{BackupZstd, BackupGzip, BackupLzo, BackupUncompressed}; !slices.Contains(kinds, spec.Compression) {
		p.add("compression", fmt.Sprintf("%q is no compression", spec.Compression), "Use "+strings.Join(kinds, ", ")+".")
	}
	switch notes := spec.Notes; {
	case utf8.RuneCountInString(notes) > MaxBackupNotes, len(escapeNotes(notes)) > MaxBackupNotes:
		p.add("notes", "They are too long", fmt.Sprintf("The server takes %d characters, of which the ownership marker needs some: %d are left, a line feed or backslash counts twice.", maxServerNotes, MaxBackupNotes))
	case strings.Contains(notes, "{{"):
		p.add("notes", "They hold {{", "The server would replace {{guestname}} and the like, and the notes would differ on every plan. Use Terraform's own ${…}.")
	case strings.Contains(notes, markerPrefix):
		p.add("notes", "They hold an ownership marker", "A line that begins with \""+markerPrefix+"\" is how the provider marks what it owns. Take it out; the provider writes its own.")
	case strings.ContainsAny(notes, "\r\x00"):
		p.add("notes", "They hold a carriage return or a null character", "The server would change the text. Use plain newlines.")
	case strings.HasSuffix(notes, "\n"):
		p.add("notes", "They end with a line feed", "The server drops it. Use trimspace(…).")
	}
	return p
}

// CheckBackupServer validates against what the server holds now, for use at
// plan; a container that isn't there yet is made by the same apply. It reads
// the cluster's list only.
func (m *Manager) CheckBackupServer(ctx context.Context, spec BackupSpec) ([]Problem, error) {
	resources, err := m.pve.Lists().Resources(ctx)
	if err != nil {
		return nil, m.step("check", Ref{VMID: spec.VMID}, "list the cluster's resources", err)
	}
	var p problems
	guest := guestIn(resources, spec.VMID)
	if guest == nil {
		return nil, nil
	}
	if guest.Type != "lxc" {
		p.add("container_id", fmt.Sprintf("%d is a virtual machine", spec.VMID), "Only containers are backed up here.")
		return p, nil
	}
	switch s := storageIn(resources, guest.Node, spec.Storage); {
	case s == nil:
		p.add("storage", fmt.Sprintf("Node %s has no storage %q", guest.Node, spec.Storage), "A backup is written by the node that the container is on; its storages are "+strings.Join(backupStorages(resources, guest.Node), ", ")+".")
	case s.Content != "" && !slices.Contains(sortedList(s.Content), "backup"):
		p.add("storage", fmt.Sprintf("The storage %q takes no backups", spec.Storage), "Its content types lack \"backup\". Those that take backups: "+strings.Join(backupStorages(resources, guest.Node), ", ")+".")
	case s.MaxDisk > 0 && s.Disk >= s.MaxDisk:
		p.warn("storage", fmt.Sprintf("The storage %q is full", spec.Storage), "The backup will fail unless there is room by then.")
	}
	return p, nil
}

// backupStorages are the storages of a node that take backups, sorted.
func backupStorages(resources []pve.Resource, node string) []string {
	var names []string
	for _, r := range resources {
		if r.Type == "storage" && r.Node == node && slices.Contains(sortedList(r.Content), "backup") {
			names = append(names, r.Storage)
		}
	}
	slices.Sort(names)
	return names
}

// storageNode is a node that reaches a storage: the hint, if it is up and has
// it, or another one that shares it. Where neither is known to be so, the hint:
// its own answer then says why not.
func (m *Manager) storageNode(ctx context.Context, storage, hint string) (string, error) {
	resources, err := m.pve.Lists().Resources(ctx)
	if err != nil {
		return "", err
	}
	up := func(node string) bool {
		n := nodeIn(resources, node)
		return n != nil && n.Status == "online"
	}
	if hint != "" && up(hint) {
		return hint, nil
	}
	for _, r := range resources {
		if r.Type == "storage" && r.Storage == storage && r.Shared && up(r.Node) {
			return r.Node, nil
		}
	}
	if hint == "" {
		return "", fmt.Errorf("no node that is up has the storage %q", storage)
	}
	return hint, nil
}
