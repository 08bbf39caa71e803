package sandbox_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
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
