package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// CreateWorkspace makes a workspace: its holder, and in it the volume. After an
// error with a Ref in the workspace (VMID not 0) the holder exists or may
// exist; DestroyWorkspace takes it away.
func (m *Manager) CreateWorkspace(ctx context.Context, spec WorkspaceSpec, accepted Accepted) (Workspace, []Warning, error) {
	if err := m.requireOwner("create"); err != nil {
		return Workspace{}, nil, err
	}
	if err := asError(m.CheckWorkspace(spec)); err != nil {
		return Workspace{}, nil, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultCreateTimeout)
		defer cancel()
	}
	c := &creation{m: m, accepted: accepted, started: m.clock.Now(), warnings: &warnings{}}
	w := &workspaceCreation{creation: c, want: spec}
	err := w.run(ctx)
	out := Workspace{Ref: c.told, Name: spec.Name}
	if err == nil {
		out, err = m.ReadWorkspace(ctx, c.ref)
	}
	var known *Error
	var found *ProblemsError
	if err != nil && !errors.As(err, &known) && !errors.As(err, &found) {
		err = &Error{Op: "create", Ref: c.ref, What: "create workspace " + spec.Name, Err: err}
	}
	return out, c.warnings.take(), err
}

// workspaceCreation is one run of CreateWorkspace.
type workspaceCreation struct {
	*creation
	want    WorkspaceSpec
	storage string // of the volume
	place   *Place // a volume that waits for a new holder; nil for a new volume
}

func (w *workspaceCreation) run(ctx context.Context) error {
	resources, err := w.m.pve.Lists().Resources(ctx)
	if err != nil {
		return err
	}
	taken, err := w.free(ctx, resources)
	if err != nil {
		return err
	}
	if w.want.ForkOf != 0 {
		err = w.fork(ctx)
	} else {
		err = w.source(ctx, resources)
	}
	if err != nil {
		return err
	}
	deadline, _ := ctx.Deadline()
	w.marker = Marker{
		Owner: w.m.settings.Owner, Kind: KindHolder, Phase: PhaseCreating, TemplateBuild: buildOf(w.base), At: w.place,
		Until: w.m.clock.Now().Add(time.Until(deadline)).Add(time.Minute),
	}
	if w.want.ForkOf == 0 {
		w.marker.TemplateID = w.spec.Source.TemplateID
	}
	if err := w.make(ctx, taken); err != nil {
		return err
	}
	if err := w.furnish(ctx); err != nil {
		return err
	}
	return w.seal(ctx)
}

// free makes sure that the name is, and lists the ids that aren't.
func (w *workspaceCreation) free(ctx context.Context, resources []pve.Resource) (map[int]bool, error) {
	taken := map[int]bool{}
	for _, r := range resources {
		if r.IsGuest() {
			taken[r.VMID] = true
			if r.Template {
				w.m.ids.block(r.VMID)
			}
		}
	}
	if w.spec.VMID != 0 {
		return taken, nil // a new holder for an old workspace
	}
	if _, err := w.m.removeAbandoned(ctx, resources, w.want.Name, 0, w.warnings); err != nil {
		return nil, err
	}
	holders, err := w.m.workspaceHolders(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range holders {
		if h.name() == w.want.Name && h.marker.Phase == PhaseReady {
			return nil, &Error{Op: "create", Ref: h.ref, Kind: ErrWorkspaceExists, What: fmt.Sprintf("there is a workspace %q already", w.want.Name),
				Remedy: fmt.Sprintf("choose another name, read it with data source sandbox_workspace, or import it: terraform import <address> %d", h.ref.VMID)}
		}
	}
	return taken, nil
}

// source finds the template that the holder is cloned from: the provider's, or
// one that is on the wanted node.
func (w *workspaceCreation) source(ctx context.Context, resources []pve.Resource) error {
	id, err := w.m.holderTemplate(resources, w.want.NodeName)
	if err != nil {
		return err
	}
	vmid := w.spec.VMID
	w.spec = w.m.resolve(Spec{Hostname: w.want.Name, VMID: vmid, Source: Source{TemplateID: id}, NodeName: w.want.NodeName})
	w.spec.Description = holderText(w.want.Name)
	if err := w.prepareSource(ctx, resources); err != nil {
		return err
	}
	w.storage = cmp.Or(w.want.Storage, w.m.settings.Storage, w.base.RootFS().Storage())
	if p := checkVolumeStorage(resources, cmp.Or(w.spec.NodeName, w.origin), w.storage); p != nil {
		return &ProblemsError{Problems: []Problem{*p}}
	}
	return nil
}

func holderText(name string) string {
	return fmt.Sprintf("Holds the volume of workspace %s while no sandbox has it. It is never started; destroying it destroys the workspace.", name)
}

// holderTemplate chooses a template. Any will do, for nothing of it is ever
// used; the provider's is the one that is known to be readable.
func (m *Manager) holderTemplate(resources []pve.Resource, node string) (int, error) {
	if t := guestIn(resources, m.settings.TemplateID); t != nil && (node == "" || t.Node == node) {
		return t.VMID, nil
	}
	best := 0
	for _, r := range resources {
		if r.Type == "lxc" && r.Template && (node == "" || r.Node == node) && (best == 0 || r.VMID < best) {
			best = r.VMID
		}
	}
	switch {
	case best != 0:
		return best, nil
	case m.settings.TemplateID != 0:
		return m.settings.TemplateID, nil // made there, then migrated
	}
	return 0, &ProblemsError{Problems: []Problem{{Attribute: "provider.template_id", Summary: "There is no template for the workspace's holder",
		Detail: "A volume needs a guest that holds it, which is cloned from a container template, and none is visible. Set the provider's template_id, or grant VM.Audit and VM.Clone on a template."}}}
}

// checkVolumeStorage says what is wrong with a storage for a container's
// volume; nil if nothing is.
func checkVolumeStorage(resources []pve.Resource, node, storage string) *Problem {
	s := storageIn(resources, node, storage)
	switch {
	case s == nil:
		return &Problem{Attribute: "storage", Summary: fmt.Sprintf("Node %s has no storage %q", node, storage), Detail: "The volume is made on the workspace's node. Name a storage that this node has."}
	case s.Content != "" && !slices.Contains(sortedList(s.Content), "rootdir"):
		return &Problem{Attribute: "storage", Summary: fmt.Sprintf("The storage %q takes no container volumes", storage), Detail: `Its content types lack "rootdir" (Container).`}
	}
	return nil
}

// fork prepares a full clone of another workspace's holder, which copies the
// volume that it has.
func (w *workspaceCreation) fork(ctx context.Context) error {
	h, err := w.m.holder(ctx, "fork", w.want.ForkOf, "", "")
	if err != nil {
		return err
	}
	slot, _, home := h.home()
	if !home || slot != homeSlot {
		held, err := w.m.collect(ctx, h, w.warnings)
		switch {
		case err != nil:
			return err
		case held != nil:
			return &Error{Op: "fork", Ref: h.ref, Kind: ErrHeld, What: "a workspace is forked while it is detached", Err: held, Remedy: held.remedy()}
		}
		if h, err = w.m.holder(ctx, "fork", h.ref.VMID, h.ref.Node, h.ref.Claim); err != nil {
			return err
		}
	}
	if w.want.NodeName != "" && w.want.NodeName != h.ref.Node {
		return &ProblemsError{Problems: []Problem{{Attribute: "node_name", Summary: fmt.Sprintf("The workspace that is forked is on node %s", h.ref.Node),
			Detail: "A fork is made beside its source. Leave node_name out, or name that node."}}}
	}
	mount := mountIn(h.cfg, homeSlot)
	if have := sizeGiBOf(mount); w.want.SizeGiB != 0 && float64(w.want.SizeGiB) < have {
		return &ProblemsError{Problems: []Problem{shrunkWorkspace(w.want.SizeGiB, have)}}
	}
	w.storage = cmp.Or(w.want.Storage, mount.Storage())
	w.spec = Spec{Hostname: w.want.Name, Source: Source{TemplateID: h.ref.VMID}, FullClone: true, Description: holderText(w.want.Name), PoolID: w.m.settings.PoolID}
	if w.want.Storage != "" && w.want.Storage != mount.Storage() {
		w.spec.Storage = w.want.Storage
	}
	w.origin, w.base = h.ref.Node, h.cfg
	return nil
}

func shrunkWorkspace(want int, have float64) Problem {
	return Problem{Attribute: "size", Summary: fmt.Sprintf("A workspace can't shrink from %g to %d GiB", have, want),
		Detail: "Proxmox VE only grows volumes. Keep the size, or make a new workspace and copy what is worth keeping."}
}

// furnish gives the holder its volume and its tags. The write carries the
// digest: sent twice it would make two volumes.
func (w *workspaceCreation) furnish(ctx context.Context) error {
	if to := w.spec.NodeName; to != "" && to != w.ref.Node {
		if err := w.m.migrate(ctx, w.ref, to, false, w.warnings); err != nil {
			return err
		}
		w.ref.Node = to
	}
	if err := w.strip(ctx); err != nil {
		return err
	}
	err := w.m.edit(ctx, w.ref, "make the volume", nil, func(cfg *pve.LXCConfig, marker *Marker) (change, error) {
		c := noChange()
		if tags := joinTags([]string{OwnerTag(w.m.settings.Owner), WorkspaceTag}); joinTags(cfg.Tags()) != tags {
			c.put("tags", tags)
		}
		for _, key := range []string{"onboot", "startup"} {
			c.remove(cfg, key)
		}
		if w.want.ForkOf != 0 {
			marker.Extra = slices.DeleteFunc(marker.Extra, isForkNote)
			marker.Extra = append(marker.Extra, forkNote+strconv.Itoa(w.want.ForkOf))
			return c, nil
		}
		if w.place == nil && !cfg.Has(homeSlot) {
			c.put(homeSlot, fmt.Sprintf("%s:%d,mp=%s,backup=1", w.storage, w.want.SizeGiB, homePath))
		}
		return c, nil
	})
	if err != nil || w.want.ForkOf == 0 || w.want.SizeGiB == 0 {
		return err
	}
	if have := sizeGiBOf(mountIn(w.base, homeSlot)); float64(w.want.SizeGiB) > have {
		return w.m.enlarge(ctx, w.ref, homeSlot, w.want.SizeGiB, w.warnings)
	}
	return nil
}

// strip takes out the volumes that the template itself had: first they become
// unused, then they go.
func (w *workspaceCreation) strip(ctx context.Context) error {
	if w.want.ForkOf != 0 || len(w.base.Mounts())+len(w.base.Unused()) == 0 {
		return nil
	}
	for _, kind := range []string{"mp", "unused"} {
		err := w.m.edit(ctx, w.ref, "take out the template's volumes", nil, func(cfg *pve.LXCConfig, _ *Marker) (change, error) {
			c := noChange()
			for _, key := range cfg.Keys() {
				if isNumbered(key, kind) {
					c.del = append(c.del, key)
				}
			}
			return c, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

const forkNote = "fork="

func isForkNote(s string) bool { return len(s) > len(forkNote) && s[:len(forkNote)] == forkNote }

// seal protects the holder and says that the workspace is ready, as the last
// thing: until then everything may be taken for a leftover.
func (w *workspaceCreation) seal(ctx context.Context) error {
	err := w.m.edit(ctx, w.ref, "seal the workspace", nil, func(cfg *pve.LXCConfig, marker *Marker) (change, error) {
		c := noChange()
		marker.Phase, marker.Until = PhaseReady, time.Time{}
		if !cfg.Protection() {
			c.put("protection", "1")
		}
		return c, nil
	})
	if err == nil {
		w.m.settled.Store(w.ref.VMID, true)
	}
	return err
}
