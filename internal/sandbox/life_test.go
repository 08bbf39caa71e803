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

func TestSandboxIsMadeReadChangedAndDestroyed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ctx := w.context()

	var saved state
	out, err := p.Create(ctx, spec("agent-1"), saved.accept)
	if err != nil {
		t.Fatal(err)
	}
	s := out.Sandbox
	if saved.ref.VMID != lab.VMIDFirst || saved.ref.Claim != s.Claim || saved.upid == "" {
		t.Errorf("accepted with %+v and %q", saved.ref, saved.upid)
	}
	if s.Status != sandbox.StatusRunning || s.IPv4 != lab.AddressFirst || s.Network.IPv4 != sandbox.AddressAuto || s.SSH == nil || s.SSH.HostKey == "" {
		t.Errorf("made %+v", s)
	}
	if s.MemoryMiB != 256 || s.Cores == nil || *s.Cores != 2 || s.Description != "made by a test" || !slices.Equal(s.Tags, []string{"ci"}) || !s.OwnerTag {
		t.Errorf("settings %+v", s)
	}
	if s.Marker == nil || s.Marker.Phase != sandbox.PhaseReady || !s.Marker.Until.IsZero() || s.Source.TemplateID != lab.TemplateID {
		t.Errorf("marker %v", s.Marker)
	}

	prior := sandbox.Prior{Ref: s.Ref, SSHHostKey: s.SSH.HostKey, WithTemplate: true}
	read, err := p.Read(ctx, prior)
	if err != nil {
		t.Fatal(err)
	}
	if read.MemoryMiB != s.MemoryMiB || read.IPv4 != s.IPv4 || read.Status != s.Status || read.Network != s.Network || read.SSH.HostKey != s.SSH.HostKey {
		t.Errorf("read   %+v\nmade %+v", read, s)
	}
	if read.TemplateCurrent == nil || !*read.TemplateCurrent {
		t.Error("the template is not current")
	}

	result, _, err := p.Exec(ctx, sandbox.Prior{Ref: sandbox.Ref{VMID: s.VMID}}, sandbox.Command{Script: "echo hello"})
	if err != nil || strings.TrimSpace(string(result.Stdout)) != "hello" {
		t.Errorf("exec: %q %v", result.Stdout, err)
	}

	to := spec("agent-1")
	to.MemoryMiB, to.Tags, to.DiskGiB, to.PoolID, to.Protection = ptr(300), []string{"x"}, ptr(2), lab.Pool, true
	out, err = p.Update(ctx, prior, spec("agent-1"), to)
	if err != nil {
		t.Fatal(err)
	}
	u := out.Sandbox
	if u.MemoryMiB != 300 || u.DiskGiB != 2 || u.PoolID != lab.Pool || !u.Protection || !slices.Equal(u.Tags, []string{"x"}) || u.Network.MACAddress != s.Network.MACAddress {
		t.Errorf("updated %+v", u)
	}
	if _, err := p.Destroy(ctx, s.Ref, saved.upid); !errors.Is(err, sandbox.ErrProtected) {
		t.Errorf("destroy of a protected one: %v", err)
	}
	if read, err = p.Read(ctx, prior); err != nil || read.Status != sandbox.StatusRunning {
		t.Errorf("a refused destroy left it %s, %v", read.Status, err)
	}
	to.Protection = false
	if _, err = p.Update(ctx, prior, to, to); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Destroy(ctx, s.Ref, saved.upid); err != nil {
		t.Fatal(err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := p.Read(ctx, prior); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("read after destroy: %v", err)
	}
	if _, err := p.Destroy(ctx, s.Ref, saved.upid); err != nil {
		t.Errorf("destroy of one that is gone: %v", err)
	}
	again := w.create(p, spec("agent-2"))
	if again.VMID == s.VMID {
		t.Error("an id that was freed in this run was used again")
	}
}

func TestSandboxFromATemplateFileIsMadeByTheSamePath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	want := spec("from-file")
	want.Source, want.DiskGiB = sandbox.Source{TemplateFileID: lab.TemplateFile}, ptr(2)
	s := w.create(p, want)
	if !s.Posture.Unprivileged || s.MemoryMiB != 256 || s.DiskGiB != 2 || s.IPv4 != lab.AddressFirst || s.SSH == nil || s.SSH.HostKey == "" || !s.Nesting {
		t.Errorf("made %+v", s)
	}
	if s.Source.TemplateFileID != lab.TemplateFile {
		t.Errorf("source %+v", s.Source)
	}
	if _, err := p.Destroy(w.context(), s.Ref, ""); err != nil {
		t.Fatal(err)
	}
}

func TestDHCPAddressIsFoundByMAC(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	want := spec("dhcp")
	want.Network.IPv4 = sandbox.AddressDHCP
	s := w.create(p, want)
	if !s.IPv4.IsValid() || s.IPv4.IsLinkLocalUnicast() || s.Status != sandbox.StatusRunning {
		t.Errorf("address %v, status %s", s.IPv4, s.Status)
	}
	read, err := p.Read(w.context(), sandbox.Prior{Ref: s.Ref})
	if err != nil || read.IPv4 != s.IPv4 || read.Network.IPv4 != sandbox.AddressDHCP {
		t.Errorf("read %v %v", read.IPv4, err)
	}
}

func TestRequestsStayWithinTheirBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	var s sandbox.Sandbox
	// The plan, in a process of its own as Terraform has it, then the creation.
	if n, list := w.requests(func() {
		if _, err := w.process().CheckServer(w.context(), spec("one"), nil); err != nil {
			t.Error(err)
		}
		s = w.create(p, spec("one"))
	}); n > 8 {
		t.Errorf("plan and create: %d requests, want at most 8\n%s", n, strings.Join(list, "\n"))
	}
	// A later process refreshes, then destroys.
	p = w.process()
	if n, list := w.requests(func() {
		if _, err := p.Read(w.context(), sandbox.Prior{Ref: s.Ref}); err != nil {
			t.Error(err)
		}
		if _, err := p.Destroy(w.context(), s.Ref, ""); err != nil {
			t.Error(err)
		}
	}); n > 6 {
		t.Errorf("refresh and destroy: %d requests, want at most 6\n%s", n, strings.Join(list, "\n"))
	}
	var all []sandbox.Sandbox
	p = w.process()
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(all, w.create(p, spec(name)))
	}
	p = w.process()
	if n, list := w.requests(func() {
		for _, s := range all {
			if _, err := p.Read(w.context(), sandbox.Prior{Ref: s.Ref}); err != nil {
				t.Error(err)
			}
		}
	}); n > len(all)+1+1 {
		t.Errorf("refresh of %d: %d requests\n%s", len(all), n, strings.Join(list, "\n"))
	}
	// Nothing differs: nothing is written.
	p = w.process()
	_, list := w.requests(func() {
		if _, err := p.Update(w.context(), sandbox.Prior{Ref: all[0].Ref}, spec("a"), spec("a")); err != nil {
			t.Error(err)
		}
	})
	for _, r := range list {
		if !strings.HasPrefix(r, "GET ") {
			t.Errorf("an update of nothing sent %s", r)
		}
	}
}

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

func TestPlanTimeFactsNameTheAttribute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ctx := w.context()
	ordinary := w.create(p, spec("ordinary"))
	for name, c := range map[string]struct {
		edit      func(*sandbox.Spec)
		attribute string
	}{
		"missing template":      {func(s *sandbox.Spec) { s.Source.TemplateID = 8999 }, "template_id"},
		"not a template":        {func(s *sandbox.Spec) { s.Source.TemplateID = ordinary.VMID }, "template_id"},
		"smaller than template": {func(s *sandbox.Spec) { s.DiskGiB = ptr(0) }, "disk"},
		"unknown node":          {func(s *sandbox.Spec) { s.NodeName = "nosuch" }, "node_name"},
		"unknown bridge":        {func(s *sandbox.Spec) { s.Network.Bridge = "vmbr77" }, "network.bridge"},
		"unknown clone storage": {func(s *sandbox.Spec) { s.FullClone, s.Storage = true, "nosuch" }, "storage"},
		"unknown create storage": {func(s *sandbox.Spec) {
			s.Source, s.Storage = sandbox.Source{TemplateFileID: lab.TemplateFile}, "nosuch"
		}, "storage"},
	} {
		want := spec("x")
		c.edit(&want)
		problems, err := p.CheckServer(ctx, want, nil)
		if err != nil || !slices.ContainsFunc(problems, func(p sandbox.Problem) bool { return p.Attribute == c.attribute && !p.Warning }) {
			t.Errorf("%s: %v %v", name, problems, err)
		}
	}
	smaller := spec("ordinary")
	big := ordinary
	big.DiskGiB = 5
	smaller.DiskGiB = ptr(2)
	if problems, err := p.CheckServer(ctx, smaller, &big); err != nil || len(problems) != 1 || problems[0].Attribute != "disk" {
		t.Errorf("shrink: %v %v", problems, err)
	}
	if problems, err := p.CheckServer(ctx, spec("fine"), nil); err != nil || len(problems) != 0 {
		t.Errorf("a good one: %v %v", problems, err)
	}
}

func TestMovedGuestIsFoundAndNodeChangeMigrates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 2})
	p := w.process()
	ctx := w.context()
	nodes := w.lab.Nodes()
	want := spec("traveller")
	want.NodeName = nodes[1]
	s := w.create(p, want)
	if s.Node != nodes[1] {
		t.Fatalf("made on %s, want %s", s.Node, nodes[1])
	}
	want.NodeName = nodes[0]
	out, err := p.Update(ctx, sandbox.Prior{Ref: s.Ref, SSHHostKey: s.SSH.HostKey}, want, want)
	if err != nil || out.Sandbox.Node != nodes[0] || out.Sandbox.Status != sandbox.StatusRunning {
		t.Fatalf("update: %s %s %v", out.Sandbox.Node, out.Sandbox.Status, err)
	}
	// The state still says the second node.
	p = w.process()
	read, err := p.Read(ctx, sandbox.Prior{Ref: s.Ref})
	if err != nil || read.Node != nodes[0] {
		t.Errorf("read: %s %v", read.Node, err)
	}
	if _, err := p.Destroy(ctx, s.Ref, ""); err != nil {
		t.Errorf("destroy with an old node: %v", err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestPowerFollowsItsOwnAttributeOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ctx := w.context()
	want := spec("quiet")
	want.Started = false
	s := w.create(p, want)
	if s.Status != sandbox.StatusStopped {
		t.Fatalf("made %s", s.Status)
	}
	changed := want
	changed.MemoryMiB = ptr(280)
	out, err := p.Update(ctx, sandbox.Prior{Ref: s.Ref}, want, changed)
	if err != nil || out.Sandbox.Status != sandbox.StatusStopped || out.Sandbox.MemoryMiB != 280 {
		t.Fatalf("an update started it: %s %v", out.Sandbox.Status, err)
	}
	changed.Started = true
	var list []string
	_, list = w.requests(func() { out, err = p.Update(ctx, sandbox.Prior{Ref: s.Ref}, changed, changed) })
	if err != nil || out.Sandbox.Status != sandbox.StatusRunning {
		t.Fatalf("start: %s %v", out.Sandbox.Status, err)
	}
	if i := slices.IndexFunc(list, func(r string) bool { return strings.HasSuffix(r, "/status/reboot") }); i >= 0 {
		t.Error("a container that was just started was rebooted")
	}
	changed.Started = false
	if out, err = p.Update(ctx, sandbox.Prior{Ref: s.Ref}, changed, changed); err != nil || out.Sandbox.Status != sandbox.StatusStopped {
		t.Fatalf("stop: %s %v", out.Sandbox.Status, err)
	}
}

func TestRestartAppliesWhatIsPendingAndIsAnotherBoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ctx := w.context()
	want := spec("renamed")
	want.Nesting = ptr(true)
	s := w.create(p, want)
	prior := sandbox.Prior{Ref: s.Ref, SSHHostKey: s.SSH.HostKey, WithPending: true}
	boot := bootID(t, p, prior)

	want.Nesting = ptr(false)
	out, err := p.Update(ctx, prior, want, want)
	if err != nil || len(out.Sandbox.Posture.Pending) == 0 || len(out.Warnings) == 0 {
		t.Fatalf("pending %v, warnings %v, %v", out.Sandbox.Posture.Pending, out.Warnings, err)
	}
	if again := bootID(t, p, prior); again != boot {
		t.Error("it was restarted without leave")
	}
	want.RestartWhenNeeded = true
	if _, err = p.Update(ctx, prior, want, want); err != nil {
		t.Fatal(err)
	}
	if again := bootID(t, p, prior); again == boot {
		t.Error("it wasn't restarted")
	}
	read, err := p.Read(ctx, prior)
	if err != nil || len(read.Posture.Pending) != 0 || read.Nesting {
		t.Errorf("after the restart: pending %v, nesting %v, %v", read.Posture.Pending, read.Nesting, err)
	}
}

func TestPostureDriftThatTheAPICanUndoIsUndone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ctx := w.context()
	want := spec("drifter")
	want.Started = false
	s := w.create(p, want)
	baseline := s.Posture
	if err := w.lab.Control().ChangeGuest(ctx, control.Guest{VMID: s.VMID, Set: map[string]string{"net1": "name=eth1,bridge=vmbr0,hwaddr=BC:24:11:00:00:77,type=veth"}}); err != nil {
		t.Fatal(err)
	}
	read, err := p.Read(ctx, sandbox.Prior{Ref: s.Ref})
	if err != nil || len(read.Posture.Diff(baseline)) != 1 {
		t.Fatalf("drift %v %v", read.Posture.Diff(baseline), err)
	}
	out, err := p.Update(ctx, sandbox.Prior{Ref: s.Ref, Baseline: &baseline}, want, want)
	if err != nil || len(out.Sandbox.Posture.Diff(baseline)) != 0 {
		t.Errorf("after the update %v %v", out.Sandbox.Posture.Diff(baseline), err)
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

func TestAuthorizedKeysAreWrittenInTheGuest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	want := spec("keys")
	want.AuthorizedKeys = []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl alice"}
	s := w.create(p, want)
	content, err := p.ReadFile(w.context(), sandbox.Prior{Ref: s.Ref, SSHHostKey: s.SSH.HostKey}, "/root/.ssh/authorized_keys", 1<<16)
	if err != nil || !strings.Contains(string(content), want.AuthorizedKeys[0]) {
		t.Errorf("authorized_keys: %q %v", content, err)
	}
}

func second[T any](_ T, err error) error { return err }

func bootID(t *testing.T, p *process, prior sandbox.Prior) string {
	t.Helper()
	result, _, err := p.Exec(t.Context(), prior, sandbox.Command{Script: "cat /proc/sys/kernel/random/boot_id"})
	if err != nil {
		t.Fatal(err)
	}
	return string(result.Stdout)
}

func TestWantedIdCanBeHadAgainByAReplacement(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	want := spec("fixed")
	want.VMID = lab.VMIDFirst + 7
	first := w.create(p, want)
	if _, err := p.Destroy(w.context(), first.Ref, ""); err != nil {
		t.Fatal(err)
	}
	second := w.create(p, want)
	if second.VMID != first.VMID || second.Claim == first.Claim {
		t.Errorf("%+v, then %+v", first.Ref, second.Ref)
	}
}

func TestFleetWithOneHostnameIsNotReadOverAndOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	for range 4 {
		w.create(w.process(), spec("same"))
	}
	w.calm()
	p := w.process()
	w.create(p, spec("same"))
	if n, list := w.requests(func() { w.create(p, spec("same")) }); n > 8 {
		t.Errorf("%d requests\n%s", n, strings.Join(list, "\n"))
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
