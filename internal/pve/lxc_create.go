package pve

import (
	"context"
	"fmt"
	"time"
)

// CloneOptions are the parameters of a clone: nothing else can be set by it.
type CloneOptions struct {
	// NewID is the vmid of the clone. Required.
	NewID int
	// Hostname is the template's when empty.
	Hostname    string
	Description string
	// Pool is a resource pool that the clone becomes a member of: the only way
	// for an identity whose rights are on the pool.
	Pool string
	// Snapshot names the snapshot to clone; a running container can be cloned
	// from one only.
	Snapshot string
	// Full copies the volumes. Without it the clone of a template is linked; one
	// of a container that is no template is full all the same.
	Full bool
	// Storage is for full clones only.
	Storage string
	// Target is another node; the storage must be shared.
	Target string
	// BandwidthKiB limits the copy, in KiB/s; 0 is the server's limit.
	BandwidthKiB int
}

// CloneLXC starts a clone of container vmid. The source stays locked ("disk")
// until the task ends, also by a linked clone.
func (c *Client) CloneLXC(ctx context.Context, node string, vmid int, o CloneOptions) (UPID, error) {
	if o.NewID <= 0 {
		return "", fmt.Errorf("pve: clone of container %d: no vmid for the clone", vmid)
	}
	p := params{}
	p.setInt("newid", o.NewID)
	p.setText("hostname", o.Hostname)
	p.setText("description", o.Description)
	p.setText("pool", o.Pool)
	p.setText("snapname", o.Snapshot)
	p.setFlag("full", o.Full)
	p.setText("storage", o.Storage)
	p.setText("target", o.Target)
	if o.BandwidthKiB > 0 {
		p.setInt("bwlimit", o.BandwidthKiB)
	}
	return c.startTask(ctx, "POST", lxcPath(node, vmid)+"/clone", p)
}

// CreateOptions are the parameters of a create from a template file or backup.
type CreateOptions struct {
	// VMID of the new container. Required.
	VMID int
	// OSTemplate is the volume of a container template or backup. Required.
	OSTemplate string
	// Pool is a resource pool that it becomes a member of.
	Pool string
	// Set holds all other parameters, as the API's text: those of a
	// configuration, and "storage", "rootfs", "ssh-public-keys", "password",
	// "start", "restore", "force", "bwlimit", "unique".
	Set map[string]string
}

// CreateLXC starts the creation of a container. Until the task has ended its
// configuration shows the lock "create" and nothing else.
func (c *Client) CreateLXC(ctx context.Context, node string, o CreateOptions) (UPID, error) {
	if o.VMID <= 0 || o.OSTemplate == "" {
		return "", fmt.Errorf("pve: create of a container needs a vmid and a template file, got %d and %q", o.VMID, o.OSTemplate)
	}
	p := params{}.with(o.Set)
	p.setInt("vmid", o.VMID)
	p.set("ostemplate", o.OSTemplate)
	p.setText("pool", o.Pool)
	return c.startTask(ctx, "POST", nodePath(node)+"/lxc", p)
}

// DeleteOptions are the parameters of a removal.
type DeleteOptions struct {
	// Force stops a running container first.
	Force bool
	// Purge removes it from HA, backup and replication jobs too.
	Purge bool
	// DestroyUnreferenced also removes volumes with its vmid that its
	// configuration doesn't name.
	DestroyUnreferenced bool
}

// DeleteLXC starts the removal of a container and of every volume in its
// configuration, unused ones too.
func (c *Client) DeleteLXC(ctx context.Context, node string, vmid int, o DeleteOptions) (UPID, error) {
	p := params{}
	p.setFlag("force", o.Force)
	p.setFlag("purge", o.Purge)
	p.setFlag("destroy-unreferenced-disks", o.DestroyUnreferenced)
	return c.startTask(ctx, "DELETE", lxcPath(node, vmid), p)
}

// MigrateOptions are the parameters of a migration.
type MigrateOptions struct {
	// Target is the node to go to. Required.
	Target string
	// Restart stops a running container and starts it over there: containers
	// have no live migration.
	Restart bool
	// Timeout is how long a restart migration waits for the shutdown; the
	// server's default is 180 s. Rounded up to seconds.
	Timeout time.Duration
	// TargetStorage maps storages, "from:to" or one for all.
	TargetStorage string
}

// MigrateLXC starts a migration to another node.
func (c *Client) MigrateLXC(ctx context.Context, node string, vmid int, o MigrateOptions) (UPID, error) {
	p := params{"target": o.Target}
	p.setFlag("restart", o.Restart)
	if o.Timeout > 0 {
		p.setInt("timeout", wholeSeconds(o.Timeout))
	}
	p.setText("target-storage", o.TargetStorage)
	return c.startTask(ctx, "POST", lxcPath(node, vmid)+"/migrate", p)
}

func wholeSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
