package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// handingBack is one volume on its way from a sandbox to its holder.
type handingBack struct {
	holder int
	from   string // the sandbox's slot: mpN, or unusedN after a detach
}

// returnable says whether a sandbox's workspace could be handed back, without
// changing anything: its holder is there, on the same node, and knows of it.
func (m *Manager) returnable(ctx context.Context, from Ref, id int) (holder, error) {
	h, err := m.holder(ctx, "hand back", id, from.Node, "")
	switch {
	case errors.Is(err, ErrGone):
		return holder{}, &Error{Op: "hand back", Ref: from, Kind: ErrNoHolder,
			What:   fmt.Sprintf("its workspace %d can't be handed back: the holder was deleted", id),
			Remedy: "nothing was stopped. Apply the sandbox_workspace: it makes a new holder for the volume. If the content isn't needed, detach the volume by hand (pct set -delete) and remove it"}
	case err != nil:
		return holder{}, err
	case h.ref.Node != from.Node:
		return holder{}, &Error{Op: "hand back", Ref: from, What: fmt.Sprintf("its workspace %d (%s) can't be handed back: the holder is on node %s", id, h.name(), h.ref.Node),
			Remedy: fmt.Sprintf("migrate one to the other: the holder with pct migrate %d %s", id, from.Node)}
	}
	if _, _, home := h.home(); home {
		return holder{}, &Error{Op: "hand back", Ref: from, What: fmt.Sprintf("its workspace %d (%s) can't be handed back: the holder has another volume already", id, h.name()),
			Remedy: "see which of the two volumes is the right one (data source sandbox_workspace), and detach the other by hand"}
	}
	if at := h.marker.At; at != nil && at.VMID != from.VMID {
		return holder{}, &Error{Op: "hand back", Ref: from, What: fmt.Sprintf("its workspace %d (%s) is recorded as container %d's", id, h.name(), at.VMID),
			Remedy: "look at data source sandbox_workspace: two containers claim to have it"}
	}
	return h, nil
}

// handBack gives a volume of a sandbox back to its holder, and proves it. An
// mpN needs a container that is stopped.
func (m *Manager) handBack(ctx context.Context, from Ref, b handingBack, w *warnings) error {
	h, err := m.returnable(ctx, from, b.holder)
	if err != nil {
		return err
	}
	target := homeSlot
	if strings.HasPrefix(b.from, "unused") {
		target = "unused0" // the server moves an unused volume to an unused slot only
	}
	arrived := func(ctx context.Context) (bool, error) {
		cfg, err := m.pve.LXCConfig(ctx, h.ref.Node, h.ref.VMID)
		if err != nil {
			return false, err
		}
		_, _, home := holder{cfg: cfg}.home()
		return home && cfg.Lock() == "", nil
	}
	what := fmt.Sprintf("hand workspace %d (%s) back", h.ref.VMID, h.name())
	err = m.do(ctx, action{
		what: fmt.Sprintf("%s from container %d", what, from.VMID),
		ref:  from,
		send: func(ctx context.Context) (pve.UPID, error) {
			return m.pve.MoveVolume(ctx, from.Node, from.VMID, pve.MoveVolumeOptions{
				Volume: b.from, TargetVMID: h.ref.VMID, TargetVolume: target,
			})
		},
		done: arrived,
	}, w)
	if there, lookErr := arrived(ctx); lookErr != nil || !there {
		if err == nil {
			err = lookErr
		}
		if err == nil {
			err = errors.New("the server says that it was moved, but the holder doesn't have it")
		}
		e := m.step("hand back", from, what, err)
		var failed *Error
		if errors.As(e, &failed) && pve.Means(err, pve.HasSnapshots) {
			failed.Kind = ErrHasSnapshots
			failed.Remedy = fmt.Sprintf("a snapshot of container %d was taken with the workspace attached and holds its volume: delete that snapshot first", from.VMID)
		}
		return e
	}
	return m.settleHome(ctx, h)
}

// settleHome closes a hand-back: the volume in its slot, the claim taken back.
func (m *Manager) settleHome(ctx context.Context, h holder) error {
	h, err := m.holder(ctx, "hand back", h.ref.VMID, h.ref.Node, h.ref.Claim)
	if err != nil {
		return err
	}
	if slot, _, _ := h.home(); slot != homeSlot {
		if err := m.house(ctx, h, ""); err != nil {
			return err
		}
		h.cfg = nil
	}
	return m.edit(ctx, h.ref, "take back the claim", h.cfg, func(_ *pve.LXCConfig, marker *Marker) (change, error) {
		marker.At, marker.Until = nil, time.Time{}
		return noChange(), nil
	})
}

// collect fetches a volume that its last sandbox has let go of, and says who
// has it if nobody has let go.
func (m *Manager) collect(ctx context.Context, h holder, w *warnings) (*HeldError, error) {
	missing := func(why string) error {
		return &Error{Op: "attach", Ref: h.ref, Kind: ErrNoVolume, What: fmt.Sprintf("workspace %s: %s", h.name(), why),
			Remedy: "data source sandbox_workspace says where to look; without its volume the content is lost: replace the workspace to begin anew"}
	}
	if h.marker.At == nil {
		return nil, missing("the holder has no volume and no record of who has")
	}
	user, err := m.user(ctx, h)
	if err != nil {
		return nil, err
	}
	held := &HeldError{Workspace: h.ref.VMID, Name: h.name(), By: user.WorkspaceUser}
	if user.slot == "" && !user.stranger {
		if missing, err := m.confirmMissing(ctx, h); err != nil || !missing {
			return held, err
		}
	}
	switch {
	case user.stranger:
		return held, nil
	case user.gone:
		return nil, missing(fmt.Sprintf("container %d had it and is gone", h.marker.At.VMID))
	case user.slot == "":
		return nil, missing(fmt.Sprintf("container %d should have it and hasn't", h.marker.At.VMID))
	case !user.released:
		return held, nil
	case user.running && !strings.HasPrefix(user.slot, "unused"):
		held.Releasing = true
		return held, nil
	}
	if err := m.handBack(ctx, user.ref, handingBack{holder: h.ref.VMID, from: user.slot}, w); err != nil {
		return nil, err
	}
	return nil, m.edit(ctx, user.ref, "drop the record of the workspace", nil, func(_ *pve.LXCConfig, marker *Marker) (change, error) {
		marker.forgetWorkspace(h.ref.VMID)
		return noChange(), nil
	})
}

// moveTime is how long a volume may be in nobody's configuration: the server
// takes it out of the one, renames it, and enters it in the other.
const moveTime = 3 * time.Second

// confirmMissing says whether a volume that was in no configuration stays away,
// as opposed to being on its way between two.
func (m *Manager) confirmMissing(ctx context.Context, h holder) (bool, error) {
	began := m.clock.Now()
	missing := true
	err := m.poll(ctx, "the volume of workspace "+h.name(), func(ctx context.Context) (bool, error) {
		now, err := m.holder(ctx, "read", h.ref.VMID, h.ref.Node, h.ref.Claim)
		if err != nil {
			return false, err
		}
		_, _, home := now.home()
		if missing = !home; !missing || now.marker.At == nil {
			return true, nil
		}
		u, err := m.user(ctx, now)
		if err != nil {
			return false, err
		}
		missing = u.slot == ""
		return !missing || m.clock.Now().Sub(began) >= moveTime, nil
	})
	return missing, err
}

// userState is a holder's volume as the sandbox has it that the holder's record
// names.
type userState struct {
	WorkspaceUser
	ref      Ref
	gone     bool // there is no such container
	stranger bool // it isn't one of ours
	slot     string
	volume   string
	sizeGiB  float64
	released bool
	running  bool
}

// user looks at the sandbox that a holder's record names.
func (m *Manager) user(ctx context.Context, h holder) (userState, error) {
	u := userState{WorkspaceUser: WorkspaceUser{VMID: h.marker.At.VMID}, ref: Ref{VMID: h.marker.At.VMID, Node: h.ref.Node, Owner: m.settings.Owner}}
	node, cfg, err := m.find(ctx, u.VMID, h.ref.Node)
	if errors.Is(err, ErrGone) {
		u.gone = true
		return u, nil
	}
	if err != nil {
		return u, m.keepKind("read", u.ref, "find the sandbox that has the workspace", err)
	}
	u.ref.Node, u.Hostname = node, cfg.Hostname()
	_, marker := SplitDescription(cfg.Text("description"))
	if marker == nil || marker.Owner != m.settings.Owner || marker.VMID != u.VMID {
		u.stranger = true
		return u, nil
	}
	u.ref.Claim = marker.Claim
	m.known.Store(marker.Claim, true)
	return u, m.locate(ctx, &u, h, cfg, marker)
}

// locate finds the volume among a sandbox's.
func (m *Manager) locate(ctx context.Context, u *userState, h holder, cfg *pve.LXCConfig, marker *Marker) error {
	if slot, ok := marker.slotOf(h.ref.VMID); ok && isVolume(cfg, slot) {
		mount := mountIn(cfg, slot)
		u.slot, u.volume, u.Path = slot, mount.Volume(), mount.Path()
		u.sizeGiB = sizeGiBOf(mount)
		return nil
	}
	for _, r := range marker.Released {
		if r.Holder != h.ref.VMID {
			continue
		}
		u.released, u.volume = true, r.Volume
		status, err := m.pve.LXCStatus(ctx, u.ref.Node, u.VMID)
		if err != nil {
			return m.step("read", u.ref, "read its status", err)
		}
		u.running = status.Running()
		current, err := m.pve.LXCConfigCurrent(ctx, u.ref.Node, u.VMID)
		if err != nil {
			return m.step("read", u.ref, "read its configuration", err)
		}
		u.slot = slotWith(current, r.Volume)
		u.sizeGiB = sizeGiBOf(mountIn(current, u.slot))
	}
	return nil
}

// slotWith is the key under which a configuration has a volume; empty if it
// hasn't.
func slotWith(cfg *pve.LXCConfig, volume string) string {
	mounts := cfg.Mounts()
	for _, n := range sortedKeys(mounts) {
		if mounts[n].Volume() == volume {
			return "mp" + strconv.Itoa(n)
		}
	}
	unused := cfg.Unused()
	for _, n := range sortedKeys(unused) {
		if unused[n] == volume {
			return "unused" + strconv.Itoa(n)
		}
	}
	return ""
}

func sizeGiBOf(mount pve.Mount) float64 {
	bytes, _ := mount.SizeBytes()
	return float64(bytes) / gib
}

// userOf names a container for a message, as far as that can be told.
func (m *Manager) userOf(ctx context.Context, vmid int) WorkspaceUser {
	u := WorkspaceUser{VMID: vmid}
	if resources, err := m.pve.Lists().Resources(ctx); err == nil {
		if r := guestIn(resources, vmid); r != nil {
			u.Hostname = r.Name
		}
	}
	return u
}
