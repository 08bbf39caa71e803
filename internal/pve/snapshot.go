package pve

import (
	"context"
	"errors"
	"strings"
	"time"
)

// CurrentState is the name of the entry that the server adds to every list of
// snapshots for the present state.
const CurrentState = "current"

// Snapshot is a snapshot of a container.
type Snapshot struct {
	Name string `pve:"name,must"`
	// Parent is the snapshot before it, "" for the first.
	Parent string `pve:"parent"`
	// Notes is the description, with the newline that the server adds.
	Notes string `pve:"description"`
	// Seconds is when it was made, since the epoch.
	Seconds int64 `pve:"snaptime"`
	// Running is set only for the present state ([Snapshots.Running]).
	Running bool `pve:"running"`
	Extra   Extra
}

// Description is the snapshot's notes, without the server's newline.
func (s Snapshot) Description() string { return strings.TrimSuffix(s.Notes, "\n") }

// Created is when it was made.
func (s Snapshot) Created() time.Time { return time.Unix(s.Seconds, 0).UTC() }

// Snapshots are the snapshots of a container, and which one its present state
// comes from ("" when none).
type Snapshots struct {
	Items  []Snapshot
	Parent string
	// Running says whether the container runs now.
	Running bool
}

// Find returns the snapshot of that name, and whether there is one.
func (s Snapshots) Find(name string) (Snapshot, bool) {
	for _, item := range s.Items {
		if item.Name == name {
			return item, true
		}
	}
	return Snapshot{}, false
}

// Snapshots lists the snapshots of a container. The server's list always has
// the present state too; one without it is an error, so that a name that isn't
// in the list isn't there.
func (c *Client) Snapshots(ctx context.Context, node string, vmid int) (Snapshots, error) {
	path := lxcPath(node, vmid) + "/snapshot"
	list, err := getList[Snapshot](ctx, c, path, nil)
	if err != nil {
		return Snapshots{}, err
	}
	var out Snapshots
	complete := false
	for _, s := range list {
		if s.Name == CurrentState {
			out.Parent, out.Running, complete = s.Parent, s.Running, true
			continue
		}
		out.Items = append(out.Items, s)
	}
	if !complete {
		return Snapshots{}, &AnswerError{Method: "GET", Path: path, Err: errors.New("the list lacks the present state: it is not complete")}
	}
	return out, nil
}

// CreateSnapshot starts a snapshot. A name that is taken makes the task fail
// (SnapshotExists), not the call.
func (c *Client) CreateSnapshot(ctx context.Context, node string, vmid int, name, description string) (UPID, error) {
	p := params{"snapname": name}
	p.setText("description", description)
	return c.startTask(ctx, "POST", lxcPath(node, vmid)+"/snapshot", p)
}

// UpdateSnapshot changes a snapshot's description.
func (c *Client) UpdateSnapshot(ctx context.Context, node string, vmid int, name, description string) error {
	return c.put(ctx, snapshotPath(node, vmid, name)+"/config", params{"description": description})
}

// SnapshotConfig returns the configuration that a snapshot kept.
func (c *Client) SnapshotConfig(ctx context.Context, node string, vmid int, name string) (*LXCConfig, error) {
	path := snapshotPath(node, vmid, name) + "/config"
	raw, err := c.get(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	cfg, err := ParseLXCConfig(raw)
	if err != nil {
		return nil, &AnswerError{Method: "GET", Path: path, Err: err}
	}
	return cfg, nil
}

// DeleteSnapshot starts the removal of a snapshot; force removes it from the
// configuration even when its volumes can't be removed.
func (c *Client) DeleteSnapshot(ctx context.Context, node string, vmid int, name string, force bool) (UPID, error) {
	p := params{}
	p.setFlag("force", force)
	return c.startTask(ctx, "DELETE", snapshotPath(node, vmid, name), p)
}

// Rollback starts a rollback. It stops a running container, which stays stopped
// unless start is set; then a second task starts it after the first has ended.
func (c *Client) Rollback(ctx context.Context, node string, vmid int, name string, start bool) (UPID, error) {
	p := params{}
	p.setFlag("start", start)
	return c.startTask(ctx, "POST", snapshotPath(node, vmid, name)+"/rollback", p)
}

func snapshotPath(node string, vmid int, name string) string {
	return lxcPath(node, vmid) + "/snapshot/" + escapeSegment(name)
}
