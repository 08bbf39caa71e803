package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// walled is a specification with a managed network mode.
func walled(hostname string, mode sandbox.NetworkMode, canaries ...string) sandbox.Spec {
	s := spec(hostname)
	s.Network.Mode, s.Network.Canaries = mode, canaries
	s.DNS = &sandbox.DNS{Servers: []string{"10.10.10.1"}}
	return s
}

const canaryPort = 9999

// canary starts a listener, in a container of its own, that any unfiltered guest
// can reach, and returns its address.
func (w *world) canary() string {
	w.t.Helper()
	s := w.create(w.process(), spec("canary"))
	listening, stop := context.WithCancel(context.Background())
	w.t.Cleanup(stop)
	go func() {
		_, _ = w.lab.Engine().Exec(listening, s.VMID, engine.Command{Argv: []string{"nc", "-l", "-k", "-p", fmt.Sprint(canaryPort)}, Stdin: strings.NewReader("")})
	}()
	address := netip.AddrPortFrom(s.IPv4, canaryPort).String()
	for { // until it listens
		if conn, err := w.lab.Engine().Dial(w.context(), address); err == nil {
			_ = conn.Close()
			return address
		}
		time.Sleep(time.Millisecond) // a test's own listener
	}
}

// tryAtOnce is a guest whose first program tries to reach an address from its
// first instant on, over and over, until the test ends it. It returns a function
// that stops it and says how often it got through.
func (w *world) tryAtOnce(vmid int, address string) (stop func() int) {
	host, port, _ := strings.Cut(address, ":")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int)
	go func() {
		through := 0
		for ctx.Err() == nil {
			code, err := w.lab.Engine().Exec(ctx, vmid, engine.Command{Argv: []string{"nc", "-z", "-w", "1", host, port}, Stdout: io.Discard, Stderr: io.Discard})
			if err == nil && code == 0 {
				through++
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond): // a test's own guest, hammering
			}
		}
		done <- through
	}()
	return func() int { cancel(); return <-done }
}

// scope is the firewall of a guest on the lab's first node.
func (w *world) scope(s sandbox.Sandbox) pve.FirewallScope { return pve.LXCFirewall(s.Node, s.VMID) }

func warned(out sandbox.Outcome, text string) bool {
	return slices.ContainsFunc(out.Warnings, func(x sandbox.Warning) bool { return strings.Contains(x.Summary+x.Detail, text) })
}

func TestLeavingTheModeOutIsFiltered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	c := w.canary()
	p := w.process()
	s := walled("default", "")
	out, err := p.Create(w.context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := out.Sandbox
	if !got.Network.Firewall || got.Network.LinkDown || got.Network.Mode != sandbox.ModeNAT {
		t.Errorf("the interface is %+v", got.Network)
	}
	if got.Posture.Proof != sandbox.ProvedReadback || !warned(out, "canaries") {
		t.Errorf("without a canary the proof is %q, warnings %v", got.Posture.Proof, out.Warnings)
	}
	if !slices.Contains(got.Posture.Firewall, "enable=1") || !slices.Contains(got.Posture.Firewall, "policy_in=DROP") {
		t.Errorf("the posture doesn't show the switches: %q", got.Posture.Firewall)
	}
	if n := w.tryAtOnce(got.VMID, c); true {
		time.Sleep(20 * time.Millisecond) // some tries
		if through := n(); through != 0 {
			t.Errorf("it reached the canary %d times", through)
		}
	}
	// A refresh in a later process says the same.
	read, err := w.process().Read(w.context(), sandbox.Prior{Ref: got.Ref})
	if err != nil {
		t.Fatal(err)
	}
	if d := read.Posture.Diff(got.Posture); len(d) != 0 {
		t.Errorf("the refresh finds %v", d)
	}
}

func TestAForbiddenCanaryProvesTheWallFromInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	c := w.canary()
	for _, mode := range []sandbox.NetworkMode{sandbox.ModeOff, sandbox.ModeWeb, sandbox.ModeNAT, sandbox.ModeAllowlist} {
		s := walled("probed", mode, c)
		if mode == sandbox.ModeAllowlist {
			s.Network.Allow = []egress.Allow{{To: "192.0.2.7/32", Ports: "443", Protocol: "tcp"}}
		}
		out, err := w.process().Create(w.context(), s, nil)
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		if out.Sandbox.Posture.Proof != sandbox.ProvedSimulated {
			t.Errorf("%s: the proof is %q; warnings %v", mode, out.Sandbox.Posture.Proof, out.Warnings)
		}
	}
}

func TestAContainerThatIsOpenEndsDarkAndStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	c := w.canary()
	w.never()
	p := w.process(func(_ *pve.Config, s *sandbox.Settings, o *sandbox.Options) {
		s.FirewallSettle, o.ProofPatience = 10*time.Millisecond, 300*time.Millisecond
	})
	out, err := p.Create(w.context(), walled("open", sandbox.ModeNAT, c), nil)
	if !errors.Is(err, sandbox.ErrExposed) || !strings.Contains(err.Error(), c) {
		t.Fatalf("the loop never runs, and the creation says: %v", err)
	}
	status, err := p.client.LXCStatus(w.context(), out.Sandbox.Node, out.Sandbox.VMID)
	if err != nil || status.Running() {
		t.Errorf("it runs (%v, %v)", status.Status, err)
	}
	cfg, err := p.client.LXCConfig(w.context(), out.Sandbox.Node, out.Sandbox.VMID)
	if err != nil || !cfg.Nets()[0].LinkDown() {
		t.Errorf("its link is up: %v %v", cfg.Text("net0"), err)
	}
}

// never keeps the lab's firewall service from running again.
func (w *world) never() {
	w.t.Helper()
	delays, err := w.lab.Control().Delays(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	delays.FirewallLoop = time.Hour
	if err := w.lab.Control().SetDelays(context.Background(), delays); err != nil {
		w.t.Fatal(err)
	}
}

func TestWindowStaysShutFromTheFirstInstant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 2})
	c := w.canary()
	p := w.process()
	vmid := lab.VMIDFirst + 50
	stop := w.tryAtOnce(vmid, c)
	s := walled("early", sandbox.ModeNAT)
	s.VMID = vmid
	made := w.create(p, s)
	if n := stop(); n != 0 {
		t.Errorf("window_connections = %d after a fresh start", n)
	}
	update := func(what string, to sandbox.Spec) {
		stop := w.tryAtOnce(vmid, c)
		out, err := w.process().Update(w.context(), sandbox.Prior{Ref: made.Ref, SSHHostKey: made.SSH.HostKey}, s, to)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n := stop(); n != 0 {
			t.Errorf("window_connections = %d at %s", n, what)
		}
		made, s = out.Sandbox, to
	}
	stopped := s.Clone()
	stopped.Started = false
	update("stop", stopped)
	again := stopped.Clone()
	again.Started = true
	update("start", again)
	again.RestartWhenNeeded = true
	renamed := again.Clone()
	renamed.Hostname = "early-2"
	update("restart", renamed)
	moved := renamed.Clone()
	moved.NodeName = "pve2"
	update("migration", moved)
	if made.Node != "pve2" || made.Network.LinkDown {
		t.Errorf("after the migration it is on %s, link down %v", made.Node, made.Network.LinkDown)
	}
	web := moved.Clone()
	web.Network.Mode = sandbox.ModeWeb
	update("change of mode", web)
}

func TestARollbackOpensNoWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	c := w.canary()
	p := w.process()
	made := w.create(p, walled("back", sandbox.ModeNAT))
	ref := sandbox.Prior{Ref: made.Ref, SSHHostKey: made.SSH.HostKey}
	if _, err := p.CreateSnapshot(w.context(), made.Ref, sandbox.SnapshotSpec{Name: "clean"}); err != nil {
		t.Fatal(err)
	}
	stop := w.tryAtOnce(made.VMID, c)
	out, err := p.Rollback(w.context(), ref, sandbox.RollbackSpec{Snapshot: "clean"})
	if err != nil {
		t.Fatal(err)
	}
	if n := stop(); n != 0 {
		t.Errorf("window_connections = %d after a rollback", n)
	}
	if !out.Sandbox.Network.Firewall || out.Sandbox.Network.LinkDown {
		t.Errorf("the interface is %+v", out.Sandbox.Network)
	}
}

// TestWithoutAGuardThereIsAWindow shows that these tests can fail: the guest's
// rules are written and it is started with its link up.
func TestWithoutAGuardThereIsAWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	c := w.canary()
	w.never()
	vmid := lab.VMIDFirst + 50
	stop := w.tryAtOnce(vmid, c)
	s := walled("hasty", sandbox.ModeNAT)
	s.VMID, s.Network.Proof = vmid, sandbox.ProofNone
	out, err := w.process().Create(w.context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(30 * time.Millisecond) // some tries
	if n := stop(); n == 0 {
		t.Error("nothing got through while the rules weren't compiled: the lab has no window")
	}
	if out.Sandbox.Posture.Proof != sandbox.ProvedNone {
		t.Errorf("the proof is %q", out.Sandbox.Posture.Proof)
	}
}

func TestDriftOfEverySwitchAndRuleIsSeenAndRepaired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := walled("drifts", sandbox.ModeNAT)
	made := w.create(p, s)
	scope := w.scope(made)
	cfg, err := p.client.LXCConfig(w.context(), made.Node, made.VMID)
	if err != nil {
		t.Fatal(err)
	}
	net0 := cfg.Nets()[0].Properties
	set := func(value string) func() error {
		return func() error {
			return p.client.UpdateLXC(w.context(), made.Node, made.VMID, pve.LXCUpdate{Set: map[string]string{"net0": value}})
		}
	}
	option := func(name, value string) func() error {
		return func() error {
			return p.client.UpdateFirewallOptions(w.context(), scope, pve.LXCUpdate{Set: map[string]string{name: value}})
		}
	}
	for name, drift := range map[string]func() error{
		"the guest's switch":     option("enable", "0"),
		"the policy":             option("policy_out", "ACCEPT"),
		"the MAC filter":         option("macfilter", "0"),
		"the interface's flag":   set(net0.Without("firewall").String()),
		"the link, down by hand": set(net0.With("link_down", "1").String()),
		"a rule taken out":       func() error { return p.client.DeleteFirewallRule(w.context(), scope, 1, "") },
		"a rule put in, first": func() error {
			return p.client.CreateFirewallRule(w.context(), scope, pve.FirewallRule{Type: "out", Action: "ACCEPT", Enable: true}, "")
		},
		"rules in another order": func() error { return p.client.MoveFirewallRule(w.context(), scope, 0, 3, "") },
	} {
		if err := drift(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p := w.process()
		read, err := p.Read(w.context(), sandbox.Prior{Ref: made.Ref})
		if err != nil {
			t.Fatal(err)
		}
		changes := read.Posture.Diff(made.Posture)
		if len(changes) == 0 || slices.ContainsFunc(changes, func(c sandbox.PostureChange) bool { return !c.Repairable }) {
			t.Errorf("%s: the refresh finds %v", name, changes)
		}
		out, err := p.Update(w.context(), sandbox.Prior{Ref: made.Ref, SSHHostKey: made.SSH.HostKey, Baseline: &made.Posture}, s, s)
		if err != nil {
			t.Fatalf("%s: repair: %v", name, err)
		}
		if changes := out.Sandbox.Posture.Diff(made.Posture); len(changes) != 0 {
			t.Errorf("%s: the repair leaves %v", name, changes)
		}
	}
}

func TestAFirewallThatIsRefusedHalfWayStartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	id := w.inject(control.Fault{Method: "POST", Pattern: `/lxc/\d+/firewall/rules$`, Kind: control.Status, Status: 500, Reason: "disk quota exceeded", Nth: 3})
	p := w.process(impatient)
	out, err := p.Create(w.context(), walled("half", sandbox.ModeNAT), nil)
	if !w.fired(id) || !errors.Is(err, sandbox.ErrWall) {
		t.Fatalf("fired %t, error %v", w.fired(id), err)
	}
	status, err := p.client.LXCStatus(w.context(), out.Sandbox.Node, out.Sandbox.VMID)
	if err != nil || status.Running() {
		t.Errorf("it runs: %v %v", status.Status, err)
	}
}

func TestTheDatacentersSwitchIsNeverFlippedSilently(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	off := pve.LXCUpdate{Set: map[string]string{"enable": "0"}}
	if err := p.client.UpdateFirewallOptions(w.context(), pve.ClusterFirewall(), off); err != nil {
		t.Fatal(err)
	}
	found, err := p.CheckServer(w.context(), walled("refused", sandbox.ModeNAT), nil)
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Detail, "--enable 1") {
		t.Errorf("the plan says %v, %v", found, err)
	}
	if _, err := p.Create(w.context(), walled("refused", sandbox.ModeNAT), nil); err == nil || !strings.Contains(err.Error(), "firewall is off") {
		t.Errorf("the creation says %v", err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	options, err := p.client.FirewallOptions(w.context(), pve.ClusterFirewall())
	if err != nil || options.Enable == nil || *options.Enable {
		t.Errorf("the switch is %v, %v", options.Enable, err)
	}
}

func TestWhatATemplateBringsAlongIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	scope := pve.LXCFirewall(w.lab.Nodes()[0], lab.TemplateID)
	if err := p.client.CreateFirewallRule(w.context(), scope, pve.FirewallRule{Type: "out", Action: "ACCEPT", Enable: true, Comment: "the template's"}, ""); err != nil {
		t.Fatal(err)
	}
	if err := p.client.UpdateFirewallOptions(w.context(), scope, pve.LXCUpdate{Set: map[string]string{"policy_out": "ACCEPT", "radv": "1"}}); err != nil {
		t.Fatal(err)
	}
	made := w.create(p, walled("clean", sandbox.ModeNAT))
	text := strings.Join(made.Posture.Firewall, "\n")
	if strings.Contains(text, "the template's") || !strings.Contains(text, "policy_out=DROP") || !strings.Contains(text, "radv=0") {
		t.Errorf("its firewall is\n%s", text)
	}
}

func TestAPrivilegedTemplateIsRefusedUnlessTheRiskIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	if err := w.lab.Control().ChangeGuest(context.Background(), control.Guest{VMID: lab.TemplateID, Set: map[string]string{"unprivileged": "", "dev0": "/dev/kvm"}}); err != nil {
		t.Fatal(err)
	}
	p := w.process()
	s := spec("risky")
	_, err := p.Create(w.context(), s, nil)
	var found *sandbox.ProblemsError
	if !errors.As(err, &found) || len(found.Problems) != 2 {
		t.Fatalf("the creation says %v", err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	s.AllowRisks = []sandbox.Risk{{Rule: sandbox.RulePrivileged, Reason: "a test"}, {Rule: sandbox.RuleDevice, Reason: "a test"}}
	if _, err := p.Create(w.context(), s, nil); err != nil {
		t.Errorf("with the risks named: %v", err)
	}
}

func TestASecurityGroupThatIsGoneIsRefusedBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	s := walled("dangling", sandbox.ModeNAT)
	s.Network.FirewallGroup = "nowhere"
	if _, err := w.process().Create(w.context(), s, nil); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("the creation says %v", err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestIPv6IsNotLeftOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	six := spec("six")
	six.Network.IPv6 = "fd00:77::9/64"
	listener := w.create(w.process(), six)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() {
		_, _ = w.lab.Engine().Exec(ctx, listener.VMID, engine.Command{Argv: []string{"nc", "-l", "-k", "-p", fmt.Sprint(canaryPort)}, Stdin: strings.NewReader("")})
	}()
	address := netip.AddrPortFrom(listener.IPv6, canaryPort).String()
	for {
		if conn, err := w.lab.Engine().Dial(w.context(), address); err == nil {
			_ = conn.Close()
			break
		}
		time.Sleep(time.Millisecond) // a test's own listener
	}
	s := walled("both", sandbox.ModeNAT, address)
	s.Network.IPv6 = "fd00:77::10/64"
	out, err := w.process().Create(w.context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if out.Sandbox.Posture.Proof != sandbox.ProvedSimulated {
		t.Errorf("the proof is %q, warnings %v", out.Sandbox.Posture.Proof, out.Warnings)
	}
}

func TestRulesThatAreLateAreWaitedForBeforeItIsReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	c := w.canary()
	s := walled("late", sandbox.ModeNAT, c)
	s.Network.Proof = sandbox.ProofProbed // it answers SSH before its rules bite
	out, err := w.process().Create(w.context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if out.Sandbox.Posture.Proof != sandbox.ProvedSimulated || out.Timings.Firewall != 0 {
		t.Errorf("the proof is %q after a wait of %s", out.Sandbox.Posture.Proof, out.Timings.Firewall)
	}
	stop := w.tryAtOnce(out.Sandbox.VMID, c)
	time.Sleep(20 * time.Millisecond) // some tries
	if n := stop(); n != 0 {
		t.Errorf("ready, it reached the canary %d times", n)
	}
}

func TestAnAllowedTargetThatIsDownIsAWarning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	s := walled("outage", sandbox.ModeAllowlist, "192.0.2.7:443")
	s.Network.Allow = []egress.Allow{{To: "192.0.2.7/32", Ports: "443", Protocol: "tcp"}}
	out, err := w.process().Create(w.context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !warned(out, "192.0.2.7:443") {
		t.Errorf("the warnings are %v", out.Warnings)
	}
}

func TestModeOffIsTriedByDNSToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	out, err := w.process().Create(w.context(), walled("mute", sandbox.ModeOff), nil)
	if err != nil {
		t.Fatal(err)
	}
	if out.Sandbox.Posture.Proof != sandbox.ProvedSimulated {
		t.Errorf("without a canary, DNS is tried: the proof is %q, warnings %v", out.Sandbox.Posture.Proof, out.Warnings)
	}
}

func TestAManagedCreationStaysWithinItsRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	w.create(p, walled("first", sandbox.ModeNAT)) // what is asked once a run is known now
	var s sandbox.Sandbox
	if n, list := w.requests(func() { s = w.create(p, walled("second", sandbox.ModeNAT)) }); n > 18 {
		t.Errorf("a managed creation: %d requests, want at most 18\n%s", n, strings.Join(list, "\n"))
	}
	if n, list := w.requests(func() {
		if _, err := w.process().Read(w.context(), sandbox.Prior{Ref: s.Ref}); err != nil {
			t.Error(err)
		}
	}); n > 3+1+1 {
		t.Errorf("a refresh: %d requests, want at most 3 n + 1 + nodes\n%s", n, strings.Join(list, "\n"))
	}
}
