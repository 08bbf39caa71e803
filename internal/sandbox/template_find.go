package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// Template is a container template on the server.
type Template struct {
	VMID   int
	Node   string
	Name   string // its hostname
	Tags   []string
	Text   string // its description without the marker
	Marker *Marker
	// Summary is what its marker says; nil of one that carries no marker of its own.
	Summary      *TemplateSummary
	Storage      string
	DiskGiB      float64
	Unprivileged bool
	Features     []string
}

// TemplateFilter selects templates; zero fields select all.
type TemplateFilter struct {
	Name string
	// Tags must all be there.
	Tags []string
	// Owner selects by the marker's owner.
	Owner string
	// Node selects those on a node.
	Node string
}

func (f TemplateFilter) String() string {
	var parts []string
	for _, p := range [][2]string{{"name", f.Name}, {"tags", strings.Join(f.Tags, ", ")}, {"owner", f.Owner}, {"node", f.Node}} {
		if p[1] != "" {
			parts = append(parts, fmt.Sprintf("%s %q", p[0], p[1]))
		}
	}
	if len(parts) == 0 {
		return "any template"
	}
	return "a template with " + strings.Join(parts, " and ")
}

// FindTemplates lists the templates that a filter selects, the newest first:
// those that say when they were built, by that; then the rest, by vmid. One that
// is still being built is left out. Each that the lists don't rule out costs one
// request.
func (m *Manager) FindTemplates(ctx context.Context, filter TemplateFilter) ([]Template, error) {
	return FindTemplates(ctx, m.pve, filter)
}

// FindTemplate finds the one template that a filter selects. With newest it takes
// the newest of several; without, several are a problem with the filter. None is
// ErrNoTemplate.
func (m *Manager) FindTemplate(ctx context.Context, filter TemplateFilter, newest bool) (Template, error) {
	found, err := m.FindTemplates(ctx, filter)
	switch {
	case err != nil:
		return Template{}, err
	case len(found) == 0:
		return Template{}, &Error{Op: "find", What: "there is no container that is " + filter.String(), Kind: ErrNoTemplate,
			Remedy: "build it (packer build), or check name and tags; a template that the token can't see (VM.Audit on /vms/<id>), or whose node is down, is not found either"}
	case len(found) > 1 && !newest:
		names := make([]string, 0, len(found))
		for _, t := range found {
			names = append(names, fmt.Sprintf("%d (%s on %s)", t.VMID, t.Name, t.Node))
		}
		return Template{}, &ProblemsError{Problems: []Problem{{Attribute: "newest", Summary: fmt.Sprintf("%d templates match", len(found)),
			Detail: "They are " + strings.Join(names, ", ") + ". Set newest = true to take the newest, or say more of the one that is meant."}}}
	}
	return found[0], nil
}

// FindTemplates is Manager.FindTemplates for who has no manager.
func FindTemplates(ctx context.Context, client *pve.Client, filter TemplateFilter) ([]Template, error) {
	fleet, err := client.Lists().Fleet(ctx)
	if err != nil {
		return nil, &Error{Op: "find", What: "list the cluster's guests", Err: err}
	}
	var (
		mu     sync.Mutex
		wg     sync.WaitGroup
		found  []Template
		failed error
	)
	gate := make(chan struct{}, listParallel)
	for _, g := range fleet.Guests {
		if !filter.mayBe(g) {
			continue
		}
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			cfg, err := client.LXCConfig(ctx, g.Node, g.VMID)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case pve.Means(err, pve.NoSuchGuest, pve.NodeUnreachable, pve.Forbidden):
			case err != nil:
				failed = errors.Join(failed, err)
			default:
				if t := templateOf(g, cfg); filter.selects(t, cfg) {
					found = append(found, t)
				}
			}
		})
	}
	wg.Wait()
	if failed != nil {
		return nil, &Error{Op: "find", What: "read the templates' configurations", Err: failed}
	}
	slices.SortFunc(found, newestFirst)
	return found, nil
}

// mayBe says whether a guest can be selected, by the lists alone.
func (f TemplateFilter) mayBe(g pve.FleetGuest) bool {
	r := g.Resource
	isTemplate := r != nil && r.Template || g.LXC != nil && g.LXC.Template
	if !isTemplate || r != nil && r.Type != "lxc" || f.Node != "" && g.Node != f.Node {
		return false
	}
	if f.Name != "" && g.LXC != nil && g.LXC.Name != "" && !strings.EqualFold(g.LXC.Name, f.Name) {
		return false
	}
	return true
}

func (f TemplateFilter) selects(t Template, cfg *pve.LXCConfig) bool {
	if !cfg.Template() || f.Name != "" && !strings.EqualFold(t.Name, f.Name) {
		return false
	}
	if t.Marker != nil && t.Marker.VMID == t.VMID && t.Marker.Phase == PhaseCreating {
		return false
	}
	if f.Owner != "" && (t.Marker == nil || t.Marker.VMID != t.VMID || t.Marker.Owner != f.Owner) {
		return false
	}
	for _, tag := range NormalizeTags(f.Tags) {
		if !slices.Contains(t.Tags, tag) {
			return false
		}
	}
	return true
}

func templateOf(g pve.FleetGuest, cfg *pve.LXCConfig) Template {
	t := Template{VMID: g.VMID, Node: g.Node, Name: cfg.Hostname(), Tags: NormalizeTags(cfg.Tags()), Storage: cfg.RootFS().Storage(), Unprivileged: cfg.Unprivileged()}
	t.Text, t.Marker = SplitDescription(cfg.Text("description"))
	if bytes, ok := cfg.RootFS().SizeBytes(); ok {
		t.DiskGiB = float64(bytes) / gib
	}
	t.Features = postureOf(cfg).Features
	// A copy made by hand carries the marker of what it was copied from.
	if t.Marker != nil && t.Marker.VMID == t.VMID {
		if s, ok := t.Marker.Summary(); ok {
			t.Summary = &s
		}
	}
	return t
}

// newestFirst orders templates by when they were built; those that don't say it come last. Two of one second are told apart
// by their builds, then by their ids.
func newestFirst(a, b Template) int {
	switch {
	case a.Summary == nil && b.Summary == nil:
		return cmp.Compare(b.VMID, a.VMID)
	case a.Summary == nil:
		return 1
	case b.Summary == nil:
		return -1
	}
	return cmp.Or(b.Summary.BuiltAt.Compare(a.Summary.BuiltAt), strings.Compare(b.Summary.BuildID, a.Summary.BuildID), cmp.Compare(b.VMID, a.VMID))
}
