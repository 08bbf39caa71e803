package pve

import "errors"

// Meaning is what an error of the server says, apart from its wording. Code
// decides by it, never by a message ([Means]).
type Meaning string

// What the server can mean. An answer that no entry of the table matches is
// Unknown: it stays an error, and is never taken for "not there".
const (
	Unknown Meaning = ""

	// NoSuchGuest: the node asked has no such container or virtual machine. The
	// guest may be on another node.
	NoSuchGuest Meaning = "no such guest"
	// NoSuchTarget: another guest that the call names as its target is missing.
	NoSuchTarget Meaning = "no such target guest"
	// GuestExists: the vmid is taken, on any node.
	GuestExists Meaning = "guest exists"
	// AlreadyExists: an object other than a guest has that name already.
	AlreadyExists Meaning = "already exists"
	// SnapshotExists: the guest has a snapshot of that name.
	SnapshotExists Meaning = "snapshot exists"

	// Locked: an operation holds the guest's lock; Error.LockedBy says which
	// kind ("disk" on the source of a clone, "create", "backup", …).
	Locked Meaning = "locked"
	// LockTimeout: the server gave up waiting for a lock file, most after 10 s.
	LockTimeout Meaning = "lock timeout"
	// DigestMismatch: the configuration changed since the digest was read.
	DigestMismatch Meaning = "digest mismatch"

	AlreadyRunning Meaning = "already running"
	NotRunning     Meaning = "not running"
	// GuestRunning: what was asked needs a stopped guest.
	GuestRunning Meaning = "guest is running"
	// StartFailed: the guest's start task failed inside LXC; its log says why.
	StartFailed Meaning = "start failed"
	// Aborted: the task was stopped, or its worker was interrupted.
	Aborted Meaning = "aborted"

	Protected Meaning = "protected"
	// HAManaged: the guest is a resource of the high-availability manager.
	HAManaged Meaning = "managed by HA"
	// IsTemplate: what was asked can't be done to a template.
	IsTemplate Meaning = "is a template"
	// HasSnapshots: what was asked can't be done while snapshots use it.
	HasSnapshots Meaning = "has snapshots"
	// StillInUse: a base volume has linked clones that need it.
	StillInUse Meaning = "in use by linked clones"

	CannotShrink Meaning = "cannot shrink"
	SameSize     Meaning = "already of this size"

	NoSuchNode     Meaning = "no such node"
	NoSuchStorage  Meaning = "no such storage"
	NoSuchVolume   Meaning = "no such volume"
	NoSuchSnapshot Meaning = "no such snapshot"
	NoSuchBridge   Meaning = "no such bridge"
	NoSuchPool     Meaning = "no such pool"
	NoSuchTask     Meaning = "no such task"
	// NoSuchObject: another kind of object is missing: a user, token, role,
	// security group, rule, IP set, alias.
	NoSuchObject Meaning = "no such object"
	// NotEmpty: a pool, security group or IP set still has content.
	NotEmpty Meaning = "not empty"

	// AlreadyMember: the guest or storage is in that pool already.
	AlreadyMember Meaning = "already a pool member"
	// OtherPool: the guest is in another pool, and a move wasn't asked for.
	OtherPool Meaning = "member of another pool"
	// NotMember: the guest isn't in that pool.
	NotMember Meaning = "not a pool member"

	// LocalStorage: the guest's volumes are on storage of one node only.
	LocalStorage Meaning = "local storage"
	// Unsupported: the storage or the kind of guest can't do this.
	Unsupported Meaning = "unsupported"
	// VolumeBusy: a volume's slot is taken, or the volume can't be moved so.
	VolumeBusy Meaning = "volume can't be moved"

	// NoQuorum: the cluster has lost its majority, and nothing can be written.
	NoQuorum Meaning = "no quorum"
	// NoSpace: a storage is full.
	NoSpace Meaning = "no space left"

	// Forbidden: a privilege is missing; Error has path and privilege.
	Forbidden Meaning = "forbidden"
	// RootOnly: only a login as root@pam may do this, no token, not even root's.
	RootOnly Meaning = "root@pam only"
	// Unauthorised: token, ticket or password was refused.
	Unauthorised Meaning = "unauthorised"

	// InvalidParameter: a parameter was refused; Error.Params says which.
	InvalidParameter Meaning = "invalid parameter"
	// NoChange: an update that changes nothing was sent.
	NoChange Meaning = "nothing to change"
	// UnsupportedPath: this server has no such call.
	UnsupportedPath Meaning = "unsupported path"
	// NodeUnreachable: the node that was asked can't reach the one meant (595,
	// 596, 599).
	NodeUnreachable Meaning = "node unreachable"
	// Overloaded: the server, or a proxy before it, is not able to answer now
	// (429, 502, 503, 504).
	Overloaded Meaning = "overloaded"
	// NotProxmox: what answered is no Proxmox VE API.
	NotProxmox Meaning = "not Proxmox VE"
	// Failed: the server says that something outside it failed (a console that
	// didn't come up, a download, a broken request body).
	Failed Meaning = "failed"
)

// meaningful is an error that knows its meaning.
type meaningful interface {
	error
	meaning() Meaning
}

// MeaningOf returns what err means: that of the first [*Error] or [*TaskError]
// in its chain, else Unknown.
func MeaningOf(err error) Meaning {
	var m meaningful
	if errors.As(err, &m) {
		return m.meaning()
	}
	return Unknown
}

// Means reports whether err, an error of a call or of a task, means one of ms.
func Means(err error, ms ...Meaning) bool {
	got := MeaningOf(err)
	if got == Unknown {
		return false
	}
	for _, m := range ms {
		if got == m {
			return true
		}
	}
	return false
}
