package sandbox_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

func TestStrangersAtOurIdsAreNeverTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ctx := w.context()
	s := w.create(p, spec("mine"))

	t.Run("a hand-made clone carries our marker and isn't ours", func(t *testing.T) {
		copied := lab.VMIDFirst + 50
		guestCopy := control.Guest{VMID: copied}
		upid, err := p.client.CloneLXC(ctx, s.Node, lab.TemplateID, cloneTo(copied))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.client.Wait(ctx, upid, func(string) {}); err != nil {
			t.Fatal(err)
		}
		guestCopy.Set = map[string]string{"description": s.Marker.String() + "\n"}
		if err := w.lab.Control().ChangeGuest(ctx, guestCopy); err != nil {
			t.Fatal(err)
		}
		ref := s.Ref
		ref.VMID = copied
		if _, err := p.Read(ctx, sandbox.Prior{Ref: ref}); !errors.Is(err, sandbox.ErrForeign) {
			t.Errorf("read: %v", err)
		}
		if _, err := p.Destroy(ctx, ref, ""); !errors.Is(err, sandbox.ErrForeign) {
			t.Errorf("destroy: %v", err)
		}
		if _, err := p.Import(ctx, "100050"); !errors.Is(err, sandbox.ErrForeign) {
			t.Errorf("import: %v", err)
		}
		if !slices.Contains(w.marked(), copied) {
			t.Error("it was destroyed")
		}
	})
	t.Run("an id that is another guest's now", func(t *testing.T) {
		ref := s.Ref
		ref.Claim = "zzzzzzzzzzzzzzzzzzzzzzzzzz"
		for what, err := range map[string]error{
			"read":    second(p.Read(ctx, sandbox.Prior{Ref: ref})),
			"update":  second(p.Update(ctx, sandbox.Prior{Ref: ref}, spec("mine"), spec("other"))),
			"destroy": second(p.Destroy(ctx, ref, "")),
		} {
			if !errors.Is(err, sandbox.ErrForeign) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := p.Read(ctx, sandbox.Prior{Ref: s.Ref}); err != nil {
			t.Errorf("the right one: %v", err)
		}
	})
	t.Run("a taken vmid is refused and its owner left alone", func(t *testing.T) {
		want := spec("thief")
		want.VMID = s.VMID
		problems, err := p.CheckServer(ctx, want, nil)
		if err != nil || len(problems) != 1 || problems[0].Attribute != "vmid" {
			t.Errorf("check: %v %v", problems, err)
		}
		if _, err := p.Create(ctx, want, nil); !errors.Is(err, sandbox.ErrForeign) {
			t.Errorf("create: %v", err)
		}
	})
	t.Run("import of a guest without a marker needs adopt", func(t *testing.T) {
		upid, err := p.client.CloneLXC(ctx, s.Node, lab.TemplateID, cloneTo(555))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.client.Wait(ctx, upid, func(string) {}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Import(ctx, "555"); !errors.Is(err, sandbox.ErrUnmarked) || !strings.Contains(err.Error(), "adopt") {
			t.Errorf("import: %v", err)
		}
		adopter := w.process(func(_ *pveConfig, s *sandbox.Settings, _ *sandbox.Options) { s.Adopt = true })
		got, err := adopter.Import(ctx, s.Node+"/555")
		if err != nil || got.Claim == "" || got.Marker.VMID != 555 {
			t.Fatalf("adopt: %+v %v", got, err)
		}
		if again, err := p.Import(ctx, "555"); err != nil || again.Claim != got.Claim {
			t.Errorf("import after that: %v %v", again.Claim, err)
		}
		if _, err := p.Destroy(ctx, got.Ref, ""); err != nil {
			t.Error(err)
		}
	})
}

func TestListsThatFailOrAreEmptyRemoveNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	s := w.create(w.process(), spec("kept"))
	empty := `{"data":[]}`
	for name, f := range map[string]control.Fault{
		"empty cluster list":  {Method: "GET", Pattern: `^/cluster/resources`, Kind: control.Status, Status: 200, Body: &empty, Count: -1},
		"failed cluster list": {Method: "GET", Pattern: `^/cluster/resources`, Kind: control.Status, Status: 500, Reason: "got no worker upid", Count: -1},
		"empty node list":     {Method: "GET", Pattern: `^/nodes/[^/]+/lxc$`, Kind: control.Status, Status: 200, Body: &empty, Count: -1},
		"failed node list":    {Method: "GET", Pattern: `^/nodes/[^/]+/lxc$`, Kind: control.Status, Status: 596, Count: -1},
		"failed config":       {Method: "GET", Pattern: `/config$`, Kind: control.Status, Status: 596, Count: -1},
		"odd 500":             {Method: "GET", Pattern: `/config$`, Kind: control.Status, Status: 500, Reason: "unable to read tail", Count: -1},
	} {
		t.Run(name, func(t *testing.T) {
			w.inject(f)
			defer w.calm()
			_, err := w.process(impatient).Read(w.context(), sandbox.Prior{Ref: s.Ref})
			if errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrForeign) {
				t.Errorf("taken for gone: %v", err)
			}
		})
	}
}

func TestListingFindsByOwnerPoolTagAndPhase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	one, two := spec("one"), spec("two")
	two.PoolID, two.Tags = lab.Pool, []string{"blue"}
	a, b := w.create(p, one), w.create(p, two)
	ids := func(f sandbox.Filter) (ids []int) {
		t.Helper()
		list, err := w.process().ListContainers(w.context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			ids = append(ids, s.VMID)
		}
		return ids
	}
	for name, c := range map[string]struct {
		filter sandbox.Filter
		want   []int
	}{
		"own":         {sandbox.Filter{}, []int{a.VMID, b.VMID}},
		"any owner":   {sandbox.Filter{Owner: "*"}, []int{a.VMID, b.VMID}},
		"other owner": {sandbox.Filter{Owner: "nobody"}, nil},
		"pool":        {sandbox.Filter{PoolID: lab.Pool}, []int{b.VMID}},
		"tag":         {sandbox.Filter{Tag: "blue"}, []int{b.VMID}},
		"unfinished":  {sandbox.Filter{Unfinished: ptr(true)}, nil},
		"ready by id": {sandbox.Filter{Unfinished: ptr(false), VMIDs: []int{a.VMID}}, []int{a.VMID}},
	} {
		if got := ids(c.filter); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	state, err := p.Cluster(w.context())
	if err != nil || !state.Quorate || len(state.Nodes) != 1 || !state.Nodes[0].Online || state.Nodes[0].CPUs == 0 || len(state.Nodes[0].Storages) == 0 {
		t.Errorf("cluster %+v %v", state, err)
	}
}

func TestAdoptedContainerWithoutASourceIsUpdatedInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process(func(_ *pveConfig, s *sandbox.Settings, _ *sandbox.Options) {
		s.Adopt, s.TemplateID = true, 0
	})
	upid, err := p.client.CloneLXC(w.context(), w.lab.Nodes()[0], lab.TemplateID, cloneTo(321))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.client.Wait(w.context(), upid, func(string) {}); err != nil {
		t.Fatal(err)
	}
	s, err := p.Import(w.context(), "321")
	if err != nil {
		t.Fatal(err)
	}
	want := spec("adopted")
	want.Network.IPv4, want.VMID = "10.77.0.21/16", 321
	out, err := p.Update(w.context(), sandbox.Prior{Ref: s.Ref}, want, want)
	if err != nil || out.Sandbox.Hostname != "adopted" || out.Sandbox.Status != sandbox.StatusRunning || out.Sandbox.IPv4.String() != "10.77.0.21" {
		t.Errorf("%+v %v", out.Sandbox, err)
	}
	if _, err := p.Destroy(w.context(), s.Ref, ""); err != nil {
		t.Error(err)
	}
}
