package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// finishing takes a container that exists to what its specification says.
// Create and Update both end here, so that a setting can't be applied by the
// one and forgotten by the other.
type finishing struct {
	m        *Manager
	spec     Spec // resolved
	ref      Ref
	marker   Marker
	warnings *warnings
	timings  *Timings

	// fresh is what a container that was just made started out with; nil for
	// one whose configuration has to be read.
	fresh    *pve.LXCConfig
	hostKey  string // pinned, may be empty
	baseline *Posture
	// writeKeys says that the authorized keys are to be written.
	writeKeys bool
	// tell says that the guest is to be told its lease and what it is (inform).
	tell bool
	// claimed says that it was a pool's member a moment ago: the guest has yet to be
	// told its name.
	claimed bool
	// left is what a rollback that was cut has left to be done; nil without one.
	left *journal
	// arrived are the workspaces that were attached in this run.
	arrived []Attachment
	// wall is the firewall that is wanted, nil where it is left alone; rules what
	// the server holds of it; wrote when this run changed anything that the
	// server's firewall service has to compile; proof that it is to be proved.
	wall  *wall
	rules *egress.Guest
	wrote time.Time
	proof bool

	now      *pve.LXCConfig // as last read; nil after a write
	status   pve.LXCStatus
	statusOK bool // status is current
	pool     string
	sandbox  Sandbox
}

// run finishes a container that was just made.
func (f *finishing) run(ctx context.Context) error {
	f.pool = f.spec.PoolID // the call that made it put it there
	f.noteKeys()
	if err := f.buildWall(ctx, f.fresh); err != nil {
		return err
	}
	f.spec.Network.held, f.proof = f.dark(), f.wall != nil
	c, err := f.m.everything(f.spec, f.ref.VMID, f.fresh)
	if err != nil {
		return f.m.step("create", f.ref, "work out the configuration", err)
	}
	if f.spec.Source.RestoreFrom != "" {
		c.dropNICs(f.fresh)
	}
	err = f.m.write(ctx, f.ref, fmt.Sprintf("configure container %d", f.ref.VMID), func(ctx context.Context) error {
		return f.m.pve.UpdateLXC(ctx, f.ref.Node, f.ref.VMID, c.update(""))
	})
	if err != nil {
		return f.m.step("create", f.ref, "write its configuration", err)
	}
	// What the template's firewall brought along is found when it is read back,
	// and replaced.
	if err := f.raiseWall(ctx, egress.Fresh()); err != nil {
		return err
	}
	if bytes, ok := f.fresh.RootFS().SizeBytes(); ok && f.spec.DiskGiB != nil && int64(*f.spec.DiskGiB)*gib > bytes {
		if err := f.m.grow(ctx, f.ref, *f.spec.DiskGiB, f.warnings); err != nil {
			return err
		}
	}
	if err := f.move(ctx, false); err != nil {
		return err
	}
	if err := f.attach(ctx); err != nil {
		return err
	}
	if f.spec.Started {
		if err := f.start(ctx); err != nil {
			return err
		}
		if err := f.light(ctx); err != nil {
			return err
		}
	}
	return f.conclude(ctx, f.spec.Started)
}

// move migrates the container when another node is wanted.
func (f *finishing) move(ctx context.Context, running bool) error {
	to := f.spec.NodeName
	if to == "" || to == f.ref.Node {
		return nil
	}
	if err := f.m.migrate(ctx, f.ref, to, running, f.warnings); err != nil {
		return err
	}
	f.ref.Node = to
	f.now, f.statusOK = nil, false
	if f.wall != nil {
		f.wrote = f.m.clock.Now() // the other node has yet to compile its rules
	}
	return nil
}

func (f *finishing) start(ctx context.Context) error {
	began := f.m.clock.Now()
	err := f.m.start(ctx, f.ref, f.warnings)
	f.timings.Start += f.m.clock.Now().Sub(began)
	f.statusOK = false
	return err
}

// conclude reads back what the server says, waits for what the specification
// asks to wait for, and seals a creation. wait says that the container was
// started just now or never reached before.
func (f *finishing) conclude(ctx context.Context, wait bool) error {
	if err := f.readConfig(ctx); err != nil {
		return err
	}
	f.fill()
	if wait || (f.writeKeys || f.proof || f.tells()) && f.spec.Started {
		if err := f.ready(ctx); err != nil {
			return err
		}
	}
	if err := f.prove(ctx); err != nil {
		return err
	}
	if err := f.own(ctx); err != nil {
		return err
	}
	if f.writeKeys && !f.spec.Started && len(f.spec.AuthorizedKeys) > 0 {
		f.warnings.add("authorized_keys will be written when the container starts",
			fmt.Sprintf("Container %d is stopped; keys are written over SSH.", f.ref.VMID))
	}
	if err := f.readStatus(ctx); err != nil {
		return err
	}
	return f.seal(ctx)
}

func (f *finishing) readConfig(ctx context.Context) error {
	if f.now != nil {
		return nil
	}
	cfg, err := f.m.pve.LXCConfig(ctx, f.ref.Node, f.ref.VMID)
	if err != nil {
		return f.m.step("read back", f.ref, "read back its configuration", err)
	}
	if _, err := f.m.prove("read back", f.ref, cfg); err != nil {
		return err
	}
	f.now = cfg
	return nil
}

// fill makes the outcome from the configuration, keeping what is known beside
// it.
func (f *finishing) fill() {
	was := f.sandbox
	f.sandbox = f.m.fromConfig(f.ref.Node, f.ref.VMID, f.now)
	f.sandbox.Ref = f.ref
	f.sandbox.PoolID = f.pool
	f.sandbox.Status, f.sandbox.Uptime = was.Status, was.Uptime
	f.sandbox.Posture.Pending, f.sandbox.Posture.Proof = was.Posture.Pending, was.Posture.Proof
	if f.rules != nil {
		f.sandbox.Posture.Firewall = wallLines(*f.rules, f.sandbox.Network)
	}
	if was.IPv4.IsValid() && !f.sandbox.IPv4.IsValid() {
		f.sandbox.IPv4 = was.IPv4
	}
	if was.IPv6.IsValid() && !f.sandbox.IPv6.IsValid() {
		f.sandbox.IPv6 = was.IPv6
	}
	f.fillSSH()
}

func (f *finishing) fillSSH() { f.sandbox.SSH = f.m.sshOf(f.sandbox, f.hostKey) }

// readStatus asks for the power state, unless something has proved it.
func (f *finishing) readStatus(ctx context.Context) error {
	if f.statusOK {
		return nil
	}
	err := f.m.poll(ctx, fmt.Sprintf("container %d to run", f.ref.VMID), func(ctx context.Context) (bool, error) {
		var err error
		f.status, err = f.m.pve.LXCStatus(ctx, f.ref.Node, f.ref.VMID)
		if err != nil {
			return false, err
		}
		// The HA manager starts and stops guests after the task has ended.
		return !f.status.HA.Managed || f.status.Running() == f.spec.Started, nil
	})
	if err != nil {
		return f.m.step("read back", f.ref, "read back its status", err)
	}
	f.statusOK = true
	f.sandbox.fillStatus(f.status.Status, f.status.Uptime)
	f.sandbox.HA = f.status.HA.Managed
	if f.spec.Started && !f.status.Running() {
		return &Error{Op: "start", Ref: f.ref, Kind: ErrNotRunning, What: "it stopped again right after its start",
			Remedy: "look at its log on the node: pct start " + fmt.Sprint(f.ref.VMID) + " --debug"}
	}
	return nil
}

// sealAttempts bounds how often somebody else may change the configuration
// between our reading and our writing it.
const sealAttempts = 5

// seal writes phase=ready, as the very last thing of a creation: until then
// everything else may be taken for a leftover. The digest makes sure that what
// is reported is what the server holds.
func (f *finishing) seal(ctx context.Context) error {
	if f.marker.Phase != PhaseCreating {
		return nil
	}
	ready := f.marker
	ready.Phase, ready.Until = PhaseReady, time.Time{}
	for attempt := 1; ; attempt++ {
		err := f.sealOnce(ctx, ready)
		if err == nil {
			f.marker = ready
			f.sandbox.Marker = &ready
			f.m.settled.Store(f.ref.VMID, true)
			return nil
		}
		if !pve.Means(err, pve.DigestMismatch) || attempt == sealAttempts {
			return f.m.step("seal", f.ref, "mark it as ready", err)
		}
		f.now = nil
		if err := f.readConfig(ctx); err != nil {
			return err
		}
		f.fill()
		if _, marker := SplitDescription(f.now.Text("description")); marker != nil && marker.Phase == PhaseReady {
			// Our own write whose answer was lost.
			f.marker = *marker
			return nil
		}
	}
}

func (f *finishing) sealOnce(ctx context.Context, ready Marker) error {
	text, _ := SplitDescription(f.now.Text("description"))
	description, err := JoinDescription(text, &ready)
	if err != nil {
		return err
	}
	return f.m.write(ctx, f.ref, fmt.Sprintf("mark container %d as ready", f.ref.VMID), func(ctx context.Context) error {
		return f.m.pve.UpdateLXC(ctx, f.ref.Node, f.ref.VMID, pve.LXCUpdate{
			Set: map[string]string{"description": description}, Digest: f.now.Digest(),
		})
	})
}

// isStop says whether err only says that the user stopped the run.
func isStop(ctx context.Context, err error) bool {
	return stoppedFromOutside(ctx) && errors.Is(err, context.Canceled)
}
