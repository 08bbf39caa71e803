package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// verifyName is the hostname of the throwaway clone that proves a template.
func (b *TemplateBuild) verifyName() string {
	first, rest, dotted := strings.Cut(b.spec.Name, ".")
	name := first[:min(len(first), 56)] + "-verify"
	if dotted {
		name += "." + rest
	}
	return name
}

// clearLeftovers removes what a build of the same name that was killed has left behind: guests of our owner that are
// still creating although their time is over, converted or not. It notes the template's generations on the way.
func (b *TemplateBuild) clearLeftovers(ctx context.Context, resources []pve.Resource) error {
	names := []string{b.spec.Name, b.buildName(), b.verifyName()}
	for i := range resources {
		r := &resources[i]
		if r.Type != "lxc" || !slices.Contains(names, r.Name) {
			continue
		}
		cfg, err := b.m.pve.LXCConfig(ctx, r.Node, r.VMID)
		if pve.Means(err, pve.NoSuchGuest, pve.NodeUnreachable, pve.Forbidden) {
			continue
		}
		if err != nil {
			return b.m.step("preflight", Ref{VMID: r.VMID, Node: r.Node}, "read the configuration of a guest of the same name", err)
		}
		t := templateOf(pve.FleetGuest{VMID: r.VMID, Node: r.Node, Resource: r}, cfg)
		ours := t.Marker != nil && t.Marker.Owner == b.m.settings.Owner && t.Marker.VMID == r.VMID
		switch {
		case ours && t.Marker.Phase == PhaseCreating:
			if t.Marker.Until.IsZero() || !b.m.clock.Now().After(t.Marker.Until) {
				continue // somebody's build that is under way
			}
			ref := Ref{VMID: r.VMID, Node: r.Node, Claim: t.Marker.Claim, Owner: t.Marker.Owner}
			if err := b.m.removeOne(ctx, ref, b.warnings); err != nil && !errors.Is(err, ErrGone) {
				b.warnings.add("An abandoned build could not be removed", fmt.Sprintf("Container %d was left behind by a build that was killed: %v", r.VMID, err))
				continue
			}
			b.warnings.add("An abandoned build was removed", fmt.Sprintf("Container %d was left behind by a build of %s that was killed.", r.VMID, b.spec.Name))
			b.m.ids.spend(r.VMID)
			r.Type = "" // it isn't there any more
		case cfg.Template():
			b.generations = append(b.generations, generation{Template: t, ours: ours && t.Marker.Kind == KindTemplate})
		}
	}
	return nil
}

// generation is a template that has the name.
type generation struct {
	Template
	ours bool
}

func (t Template) ref() Ref {
	return Ref{VMID: t.VMID, Node: t.Node, Claim: t.Marker.Claim, Owner: t.Marker.Owner}
}

// planReplacement checks what is to be removed for this build: only templates of ours, and none that is in use.
func (b *TemplateBuild) planReplacement(ctx context.Context, p *problems, resources []pve.Resource) error {
	if id := b.spec.VMID; id != 0 && b.taken[id] {
		return b.planWantedID(ctx, p, resources)
	}
	if !b.spec.Replace {
		return nil
	}
	for _, g := range b.generations {
		if !g.ours {
			p.add("template_name", fmt.Sprintf("Template %d on node %s has this name and isn't ours", g.VMID, g.Node),
				"-force replaces only templates that carry our marker. Choose another name, rename that template, or build without -force beside it.")
			continue
		}
		b.replaced = append(b.replaced, g.Template)
	}
	return b.refuseUsed(ctx, p, "template_name", resources)
}

func (b *TemplateBuild) planWantedID(ctx context.Context, p *problems, resources []pve.Resource) error {
	id := b.spec.VMID
	r := guestIn(resources, id)
	if r == nil || r.Type != "lxc" {
		what := "a guest"
		if r != nil {
			what = fmt.Sprintf("the virtual machine %q on node %s", r.Name, r.Node)
		}
		p.add("vm_id", fmt.Sprintf("%d is taken by %s", id, what), "Choose another id, or leave vm_id out.")
		return nil
	}
	cfg, err := b.m.pve.LXCConfig(ctx, r.Node, id)
	if err != nil {
		return b.m.step("preflight", Ref{VMID: id, Node: r.Node}, "read the configuration of the guest that has the id", err)
	}
	t := templateOf(pve.FleetGuest{VMID: id, Node: r.Node, Resource: r}, cfg)
	ours := cfg.Template() && t.Marker != nil && t.Marker.VMID == id && t.Marker.Owner == b.m.settings.Owner && t.Marker.Kind == KindTemplate
	switch {
	case !ours:
		p.add("vm_id", fmt.Sprintf("%d is taken by %q on node %s, which is no template of ours", id, r.Name, r.Node),
			"It is left alone, with -force too: that replaces only a template that carries our marker. Choose another id, or leave vm_id out.")
		return nil
	case !b.spec.Replace:
		p.add("vm_id", fmt.Sprintf("%d is taken by template %q on node %s", id, r.Name, r.Node),
			"packer build -force replaces it. Without vm_id each build takes a new id, and running clones keep their base.")
		return nil
	}
	b.replaced = append(b.replaced, t)
	return b.refuseUsed(ctx, p, "vm_id", resources)
}

// refuseUsed adds a problem for each template to be replaced that something uses.
func (b *TemplateBuild) refuseUsed(ctx context.Context, p *problems, attribute string, resources []pve.Resource) error {
	if len(b.replaced) == 0 {
		return nil
	}
	users, err := b.m.templateUsers(ctx, resources)
	if err != nil {
		return err
	}
	for _, t := range b.replaced {
		if list := users[t.VMID]; len(list) > 0 {
			p.add(attribute, fmt.Sprintf("Template %d is in use: %s was cloned from it", t.VMID, cloneList(list)),
				"Nothing was built. Build without -force, under a new id, and let the clones be replaced first; keep removes old generations once nothing uses them.")
		}
	}
	return nil
}

func cloneList(ids []int) string {
	texts := make([]string, 0, len(ids))
	for i, id := range ids {
		if i == 5 {
			texts = append(texts, fmt.Sprintf("%d more", len(ids)-i))
			break
		}
		texts = append(texts, fmt.Sprint(id))
	}
	return "container " + strings.Join(texts, ", ")
}

// templateUsers lists, by template, the containers that were cloned from it: by their markers, and by their disks
// where the storage keeps the relation.
func (m *Manager) templateUsers(ctx context.Context, resources []pve.Resource) (map[int][]int, error) {
	var (
		mu     sync.Mutex
		wg     sync.WaitGroup
		failed error
	)
	users := map[int][]int{}
	gate := make(chan struct{}, listParallel)
	for _, r := range resources {
		if r.Type != "lxc" {
			continue
		}
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			cfg, err := m.pve.LXCConfig(ctx, r.Node, r.VMID)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case pve.Means(err, pve.NoSuchGuest):
			case err != nil:
				// One that can't be looked at may be a clone: nothing is removed on a guess.
				failed = errors.Join(failed, fmt.Errorf("container %d: %w", r.VMID, err))
			default:
				if base := baseOf(cfg, r.VMID); base != 0 && base != r.VMID {
					users[base] = append(users[base], r.VMID)
				}
			}
		})
	}
	wg.Wait()
	for _, list := range users {
		slices.Sort(list)
	}
	if failed != nil {
		return nil, &Error{Op: "preflight", What: "find out what was cloned from the old templates", Err: failed}
	}
	return users, nil
}

// baseOf is the template that a container was cloned from, 0 if nothing says so.
func baseOf(cfg *pve.LXCConfig, vmid int) int {
	_, marker := SplitDescription(cfg.Text("description"))
	if marker != nil && marker.VMID == vmid && marker.Kind != KindTemplate && marker.TemplateID != 0 {
		return marker.TemplateID
	}
	for _, part := range strings.Split(cfg.RootFS().Volume(), "/") {
		_, name, found := strings.Cut(part, ":")
		if !found {
			name = part
		}
		for _, prefix := range []string{"base-", "basevol-"} {
			var id int
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				if _, err := fmt.Sscanf(rest, "%d-", &id); err == nil && id != vmid {
					return id
				}
			}
		}
	}
	return 0
}

// replaceWanted removes the template that has the wanted id: an id can't be had twice.
func (b *TemplateBuild) replaceWanted(ctx context.Context) error {
	if b.spec.VMID == 0 {
		return nil
	}
	for _, t := range b.replaced {
		if err := b.m.destroyMarked(ctx, t.ref(), b.warnings); err != nil && !errors.Is(err, ErrGone) {
			return err
		}
		delete(b.taken, t.VMID)
	}
	b.replaced = nil
	return nil
}

// Prune removes what the new template replaces, and the generations beyond keep that nothing uses. It returns the ids
// that are gone. A generation that is in use stays, and a warning says so.
func (b *TemplateBuild) Prune(ctx context.Context) ([]int, error) {
	old := slices.Clone(b.replaced)
	if b.spec.Keep > 0 {
		var ours []Template
		for _, g := range b.generations {
			if g.ours && !slices.ContainsFunc(b.replaced, func(t Template) bool { return t.VMID == g.VMID }) {
				ours = append(ours, g.Template)
			}
		}
		slices.SortFunc(ours, newestFirst)
		if kept := b.spec.Keep - 1; len(ours) > kept { // one is the new template
			old = append(old, ours[kept:]...)
		}
	}
	if len(old) == 0 {
		return nil, nil
	}
	b.m.pve.Lists().Drop()
	resources, err := b.m.pve.Lists().Resources(ctx)
	if err != nil {
		return nil, b.m.step("prune", b.ref, "list the cluster's resources", err)
	}
	users, err := b.m.templateUsers(ctx, resources)
	if err != nil {
		return nil, err
	}
	var gone []int
	for _, t := range old {
		if list := users[t.VMID]; len(list) > 0 {
			b.warnings.add(fmt.Sprintf("Template %d stays", t.VMID), cloneList(list)+" was cloned from it. A later build removes it when nothing uses it any more.")
			continue
		}
		err := b.m.destroyMarked(ctx, t.ref(), b.warnings)
		switch {
		case errors.Is(err, ErrInUse):
			b.warnings.add(fmt.Sprintf("Template %d stays", t.VMID), "The server says that linked clones need its disk.")
			continue
		case errors.Is(err, ErrProtected):
			b.warnings.add(fmt.Sprintf("Template %d stays", t.VMID), "It is protected.")
			continue
		case err != nil && !errors.Is(err, ErrGone):
			return gone, err
		}
		gone = append(gone, t.VMID)
	}
	return gone, nil
}
