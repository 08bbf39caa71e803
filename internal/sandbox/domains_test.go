package sandbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

func TestAContainersOwnDomainsArePinnedAndDriftWhenTheyMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	names := map[string][]string{"pypi.example.org": {"198.51.100.7", "2001:db8:5::7"}}
	s := walled("domains", sandbox.ModeAllowlist)
	s.Network.Allow = []egress.Allow{{To: "pypi.example.org", Ports: "443", Resolve: true}}
	out, err := w.process(answers(names)).Create(w.context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	made := out.Sandbox
	if text := strings.Join(made.Posture.Firewall, "\n"); !strings.Contains(text, "198.51.100.7") || !strings.Contains(text, "2001:db8:5::7") {
		t.Errorf("the rules don't name its addresses:\n%s", text)
	}
	read := func(names map[string][]string) sandbox.Sandbox {
		t.Helper()
		got, err := w.process(answers(names)).Read(w.context(), sandbox.Prior{Ref: made.Ref, Pinned: out.Pinned})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	// One of its addresses alone, or no answer at all: nothing has moved.
	for _, same := range []map[string][]string{names, {"pypi.example.org": {"198.51.100.7"}}, {}} {
		if d := read(same).Posture.Diff(made.Posture); len(d) != 0 {
			t.Errorf("%v is drift: %v", same, d)
		}
	}
	names["pypi.example.org"] = []string{"198.51.100.9"}
	moved := read(names)
	d := moved.Posture.Diff(made.Posture)
	if len(d) != 1 || !d[0].Repairable || !strings.Contains(d[0].What, "pypi.example.org has the address 198.51.100.9") || !sandbox.HasMoved(moved.Posture.Firewall) {
		t.Fatalf("the move is %v", d)
	}
	// An update that knows what is pinned leaves it; one that doesn't looks anew.
	prior := sandbox.Prior{Ref: made.Ref, SSHHostKey: made.SSH.HostKey, Baseline: &made.Posture}
	kept := s.Clone()
	kept.Network.Pinned = out.Pinned
	same, err := w.process(answers(names)).Update(w.context(), prior, s, kept)
	if err != nil || len(same.Sandbox.Posture.Diff(made.Posture)) != 0 {
		t.Errorf("with what is pinned: %v, %v", same.Sandbox.Posture.Firewall, err)
	}
	anew, err := w.process(answers(names)).Update(w.context(), prior, s, s)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(anew.Sandbox.Posture.Firewall, "\n")
	if strings.Contains(text, "198.51.100.7") || !strings.Contains(text, "198.51.100.9") || sandbox.HasMoved(anew.Sandbox.Posture.Firewall) {
		t.Errorf("after the move its firewall is\n%s", text)
	}
}

func TestADomainThatCantBePinnedMakesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	for name, says := range map[string]string{"nowhere.example.org": "no such host", "rebound.example.org": "leads inside"} {
		s := walled("none", sandbox.ModeAllowlist)
		s.Network.Allow = []egress.Allow{{To: name, Ports: "443", Resolve: true}}
		_, err := w.process(answers(map[string][]string{"rebound.example.org": {"169.254.169.254"}})).Create(w.context(), s, nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, vmid := range w.marked() {
		status, err := w.process().client.LXCStatus(w.context(), w.lab.Nodes()[0], vmid)
		if err != nil || status.Running() {
			t.Errorf("container %d runs: %v", vmid, err)
		}
	}
}

func TestMembersOfAContainersOwnIPSetAreSeenAndRepaired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := walled("many", sandbox.ModeAllowlist)
	for i := range 70 {
		s.Network.Allow = append(s.Network.Allow, egress.Allow{To: fmt.Sprintf("203.0.%d.0/24", i), Ports: "443"})
	}
	made := w.create(p, s)
	scope := w.scope(made)
	for what, drift := range map[string]func() error{
		"added": func() error {
			return p.client.AddFirewallIPSetEntry(w.context(), scope, "sbx-allow-tcp-443", pve.FirewallIPSetEntry{CIDR: "10.0.0.0/8"})
		},
		"removed": func() error {
			return p.client.DeleteFirewallIPSetEntry(w.context(), scope, "sbx-allow-tcp-443", "203.0.7.0/24", "")
		},
	} {
		if err := drift(); err != nil {
			t.Fatal(err)
		}
		got, err := w.process().Read(w.context(), sandbox.Prior{Ref: made.Ref})
		if err != nil {
			t.Fatal(err)
		}
		if d := got.Posture.Diff(made.Posture); len(d) == 0 || !d[0].Repairable || !strings.Contains(d[0].What, "sbx-allow-tcp-443") {
			t.Errorf("%s: the refresh finds %v", what, d)
		}
		repaired, err := w.process().Update(w.context(), sandbox.Prior{Ref: made.Ref, SSHHostKey: made.SSH.HostKey, Baseline: &made.Posture}, s, s)
		if err != nil || !slices.Equal(repaired.Sandbox.Posture.Firewall, made.Posture.Firewall) {
			t.Errorf("%s: repaired to %v, %v", what, repaired.Sandbox.Posture.Firewall, err)
		}
	}
}
