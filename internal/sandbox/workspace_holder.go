package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// holder is a workspace's holder as it was read last.
type holder struct {
	ref    Ref
	cfg    *pve.LXCConfig
	text   string // the description without the marker
	marker Marker
}

// holder reads and proves the holder of a workspace: of our owner, with its
// own vmid in its marker. claim may be empty, for callers that hold an id only.
func (m *Manager) holder(ctx context.Context, op string, id int, hint, claim string) (holder, error) {
	ref := Ref{VMID: id, Node: hint, Claim: claim, Owner: m.settings.Owner}
	node, cfg, err := m.find(ctx, id, hint)
	if err != nil {
		return holder{}, m.keepKind(op, ref, "find the holder of the workspace", err)
	}
	ref.Node = node
	if cfg.Lock() == "create" {
		if cfg, err = m.waitUnlocked(ctx, node, id); err != nil {
			return holder{}, m.step(op, ref, "wait for its creation to end", err)
		}
	}
	text, marker := SplitDescription(cfg.Text("description"))
	if ref.Claim == "" && marker != nil {
		ref.Claim = marker.Claim
	}
	if _, err := m.prove(op, ref, cfg); err != nil {
		return holder{}, err
	}
	if marker.Kind != KindHolder {
		return holder{}, &Error{Op: op, Ref: ref, Kind: ErrForeign, What: fmt.Sprintf("%q is a sandbox, not a workspace", cfg.Hostname()),
			Remedy: "give the id of a sandbox_workspace"}
	}
	return holder{ref: ref, cfg: cfg, text: text, marker: *marker}, nil
}

func (h holder) name() string { return h.cfg.Hostname() }

// home is where the holder has the volume itself: mp0, or an unused slot when a
// hand-back was cut before its end. ok is false while a sandbox has it.
func (h holder) home() (slot, volume string, ok bool) {
	if isVolume(h.cfg, homeSlot) {
		return homeSlot, mountIn(h.cfg, homeSlot).Volume(), true
	}
	unused := h.cfg.Unused()
	for _, n := range sortedKeys(unused) {
		return "unused" + strconv.Itoa(n), unused[n], true
	}
	return "", "", false
}

func sortedKeys[V any](m map[int]V) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// editAttempts bounds how often somebody else may change a configuration
// between our reading and our writing it.
const editAttempts = 6

// edit changes a container's configuration and its marker in one write that is
// refused if anybody else has written meanwhile; then it is worked out anew
// from what is there now. It may therefore be repeated after a lost answer:
// to must return an empty change when nothing is left to do. cfg is what was
// read last, nil to read it.
func (m *Manager) edit(ctx context.Context, ref Ref, what string, cfg *pve.LXCConfig, to func(cfg *pve.LXCConfig, marker *Marker) (change, error)) error {
	for attempt := 1; ; attempt++ {
		if cfg == nil {
			var err error
			if cfg, err = m.pve.LXCConfig(ctx, ref.Node, ref.VMID); err != nil {
				return m.step("update", ref, what, err)
			}
		}
		if _, err := m.prove("update", ref, cfg); err != nil {
			return err
		}
		text, was := SplitDescription(cfg.Text("description"))
		marker := was.clone()
		c, err := to(cfg, &marker)
		if err != nil {
			return err
		}
		if marker.String() != was.String() {
			description, err := JoinDescription(text, &marker)
			if err != nil {
				return m.step("update", ref, what, err)
			}
			c.put("description", description)
		}
		if c.empty() {
			return nil
		}
		digest := cfg.Digest()
		err = m.write(ctx, ref, fmt.Sprintf("%s of container %d", what, ref.VMID), func(ctx context.Context) error {
			return m.pve.UpdateLXC(ctx, ref.Node, ref.VMID, c.update(digest))
		})
		if err == nil {
			return nil
		}
		if !pve.Means(err, pve.DigestMismatch) {
			return m.step("update", ref, what, err)
		}
		if attempt == editAttempts {
			return &Error{Op: "update", Ref: ref, Kind: ErrChangedOutside, What: what, Err: err,
				Remedy: "somebody else keeps changing the container; apply again when they are done"}
		}
		cfg = nil
	}
}

func noChange() change { return change{set: map[string]string{}} }

// house makes the volume that the holder has its mp0 with the wanted path
// (empty keeps the one that it has), and the holder protected. The server
// changes no mount point of a protected container, hence two writes.
func (m *Manager) house(ctx context.Context, h holder, path string) error {
	return m.rehouse(ctx, h, func(cfg *pve.LXCConfig) (string, bool) {
		now := holder{cfg: cfg}
		slot, volume, ok := now.home()
		if !ok {
			return "", false
		}
		props := mountIn(cfg, homeSlot).Properties
		if slot != homeSlot {
			props = pve.ParseProperties(volume + ",backup=1")
		}
		want := path
		if want == "" {
			want = props.Text("mp")
		}
		if want == "" {
			want = homePath
		}
		return props.With("mp", want).String(), slot != homeSlot || props.Text("mp") != want
	})
}

// rehouse writes the holder's mp0 where value says that it differs, and leaves
// the holder protected.
func (m *Manager) rehouse(ctx context.Context, h holder, value func(*pve.LXCConfig) (mount string, differs bool)) error {
	cfg := h.cfg
	if _, differs := value(cfg); differs && cfg.Protection() {
		err := m.edit(ctx, h.ref, "open the holder", cfg, func(cfg *pve.LXCConfig, _ *Marker) (change, error) {
			c := noChange()
			if _, differs := value(cfg); differs && cfg.Protection() {
				c.remove(cfg, "protection")
			}
			return c, nil
		})
		if err != nil {
			return err
		}
		cfg = nil
	}
	return m.edit(ctx, h.ref, "place the volume", cfg, func(cfg *pve.LXCConfig, _ *Marker) (change, error) {
		c := noChange()
		if mount, differs := value(cfg); differs {
			c.put(homeSlot, mount)
		}
		if !cfg.Protection() {
			c.put("protection", "1")
		}
		return c, nil
	})
}

// isHolder says of a guest in the cluster's list whether it is a holder, by its
// tag: good enough to leave it out of a count.
func isHolder(r pve.Resource) bool { return slices.Contains(splitTags(r.Tags), WorkspaceTag) }

// isHolderGuest is isHolder with the node's own list, which doesn't lag.
func isHolderGuest(g pve.FleetGuest) bool {
	switch {
	case g.Resource != nil && g.Resource.Type != "lxc":
		return false
	case g.LXC != nil:
		return !g.LXC.Template && slices.Contains(splitTags(g.LXC.Tags), WorkspaceTag)
	}
	return g.Resource != nil && !g.Resource.Template && isHolder(*g.Resource)
}

// claimed says whether somebody's attachment of a volume that is still at home
// is under way.
func (h holder) claimed(now time.Time, by int) bool {
	return h.marker.At != nil && h.marker.At.VMID != by && now.Before(h.marker.Until)
}
