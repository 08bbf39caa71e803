package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// Where a guest finds what it may know of itself.
const (
	// LeaseFile is on the disk, because the guest's own timer needs it after a
	// reboot. Without it there is no limit.
	LeaseFile = "/etc/sandbox/lease.json"
	// MetadataFile is in memory and holds no secrets.
	MetadataFile = "/run/sandbox/metadata.json"

	guestFilesVersion = 1
)

// leaseFile is the content of LeaseFile. The claim tells a guest's own lease from
// one that a copy of another guest's disk has brought along.
type leaseFile struct {
	Version     int       `json:"version"`
	Claim       string    `json:"claim"`
	ExpiresAt   time.Time `json:"expires_at"`
	IdleStopSec int64     `json:"idle_stop_s"` // 0 means never
}

// metadataFile is the content of MetadataFile.
type metadataFile struct {
	Version   int        `json:"version"`
	Owner     string     `json:"owner"`
	VMID      int        `json:"vmid"`
	ExpiresAt *time.Time `json:"expires_at"` // null without a lease
	Mode      string     `json:"mode"`       // the network mode
}

// tells says whether the guest is to be told anything. Only where SSH is waited
// for: who asks for less gets a sandbox whose lease holds by the marker alone.
func (f *finishing) tells() bool { return f.tell && f.spec.WaitFor == WaitForSSH }

// inform tells the guest its lease and what it is. Both files are replaced as a
// whole, so that the guest's timer never reads half of one.
func (f *finishing) inform(ctx context.Context) error {
	if !f.tells() {
		return nil
	}
	t := target(f.ref, f.sandbox, f.hostKey)
	err := f.m.writeLease(ctx, t, &f.marker)
	var denied bool
	if denied = errors.Is(err, fs.ErrPermission); denied && !f.marker.Expires.IsZero() {
		f.warnings.add("The lease isn't known inside", fmt.Sprintf(
			"%s of container %d can't be written as %s: %v. The container doesn't stop by itself when its lease is over; a sandbox_reaper still ends it. Log in as root (guest_ssh.username) to have both.",
			LeaseFile, f.ref.VMID, f.sandbox.SSH.Username, err))
	}
	if err != nil && !denied {
		return &Error{Op: "connect", Ref: f.ref, What: "write its lease", Err: err}
	}
	metadata := metadataFile{Version: guestFilesVersion, Owner: f.marker.Owner, VMID: f.ref.VMID, Mode: f.marker.Mode}
	if !f.marker.Expires.IsZero() {
		end := f.marker.Expires.UTC()
		metadata.ExpiresAt = &end
	}
	err = f.m.writeJSON(ctx, t, MetadataFile, metadata)
	if errors.Is(err, fs.ErrPermission) {
		f.m.log.InfoContext(ctx, "the guest's metadata can't be written as this user", "vmid", f.ref.VMID, "cause", err)
		return nil
	}
	if err != nil {
		return &Error{Op: "connect", Ref: f.ref, What: "write its metadata", Err: err}
	}
	f.tell = false
	return nil
}

// writeLease brings LeaseFile to what the marker says. A guest without a lease
// has none: its template or its backup may have brought one along.
func (m *Manager) writeLease(ctx context.Context, t guest.Target, marker *Marker) error {
	if marker.Expires.IsZero() {
		return m.guests.Remove(ctx, t, LeaseFile)
	}
	return m.writeJSON(ctx, t, LeaseFile, leaseFile{
		Version: guestFilesVersion, Claim: marker.Claim, ExpiresAt: marker.Expires.UTC(), IdleStopSec: int64(marker.IdleStop / time.Second),
	})
}

func (m *Manager) writeJSON(ctx context.Context, t guest.Target, path string, content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	_, err = m.guests.WriteFile(ctx, t, guest.File{Path: path, Content: bytes.NewReader(append(text, '\n')), Mode: 0o644, MakeDirs: true})
	return err
}
