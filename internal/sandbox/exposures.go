package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/exposure"
)

var (
	// ErrNoExposure says that the node has no such exposure.
	ErrNoExposure = errors.New("the node has no such exposure")
	// ErrExposureExists says that the container's port is exposed already.
	ErrExposureExists = errors.New("the container's port is exposed already")
)

// The ports that are given where none is asked for.
const (
	FirstHostPort = 20000
	LastHostPort  = 29999
	hostPortTries = 16
)

// RuleEveryAddress allows an exposure on all addresses of the node.
const RuleEveryAddress = "every_address"

// ExposureSpec is what is wanted of a port exposure.
type ExposureSpec struct {
	Container Ref
	HostKey   string // of the container, "" believes it at first contact
	Port      int    // in the container
	Via       exposure.Via
	Address   netip.Addr // of the node, for ViaAddress
	HostPort  int        // on the node; 0 takes a free one
	// AllowRisks may name RuleEveryAddress.
	AllowRisks []Risk
}

// Exposure is a port exposure as the node holds it.
type Exposure struct {
	exposure.Entry
	Container Ref // with the node that the exposure is on
	// Host is the name or address that it is reached by, "" when Tailscale can't say.
	Host string
}

// listen is the address that the node listens on.
func (s ExposureSpec) listen() netip.Addr {
	if s.Via == exposure.ViaAddress {
		return s.Address
	}
	return exposure.Loopback
}

// nodeLocks let one exposure at a time be made or removed on a node.
type nodeLocks struct {
	mu  sync.Mutex
	all map[string]chan struct{}
}

func (l *nodeLocks) lock(ctx context.Context, node string) (unlock func(), err error) {
	l.mu.Lock()
	if l.all == nil {
		l.all = map[string]chan struct{}{}
	}
	c := l.all[node]
	if c == nil {
		c = make(chan struct{}, 1)
		l.all[node] = c
	}
	l.mu.Unlock()
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// CheckExposureSpec validates without any request.
func (m *Manager) CheckExposureSpec(spec ExposureSpec) []Problem {
	var p problems
	every := spec.Address.IsValid() && spec.Address.IsUnspecified()
	allowed := slices.ContainsFunc(spec.AllowRisks, func(r Risk) bool { return r.Rule == RuleEveryAddress && strings.TrimSpace(r.Reason) != "" })
	switch {
	case spec.Via == exposure.ViaAddress && !spec.Address.IsValid():
		p.add("address", "The address is missing", `via = "address" needs the node's address to listen on.`)
	case spec.Via != exposure.ViaAddress && spec.Address.IsValid():
		p.add("address", "The address has no meaning", fmt.Sprintf(`address goes with via = "address"; this exposure is made via %q.`, spec.Via))
	case spec.Address == exposure.Loopback:
		p.add("address", "That is the node's loopback", `Say via = "loopback", without an address.`)
	case every && !allowed:
		p.add("address", "The port would be open on every address of the node", "Whoever can reach the node could use it. Name one address"+
			fmt.Sprintf(`; or, if it must be, say so: allow_risks = [{ rule = %q, reason = "…" }].`, RuleEveryAddress))
	case spec.Address.IsValid() && !spec.Address.Is4():
		p.add("address", "The address is not IPv4", "Exposures listen on IPv4 addresses.")
	case m.settings.Addresses != nil && spec.Address.IsValid() && m.settings.Addresses.CIDR.Contains(spec.Address):
		p.add("address", "Sandboxes could reach the exposure", fmt.Sprintf("%s lies in the sandboxes' own network %s: every sandbox could use the port, past its network mode.", spec.Address, m.settings.Addresses.CIDR))
	}
	for i, r := range spec.AllowRisks {
		if r.Rule != RuleEveryAddress {
			p.add(fmt.Sprintf("allow_risks[%d].rule", i), fmt.Sprintf("%q is no rule of an exposure", r.Rule), "The one rule is "+RuleEveryAddress+".")
		}
	}
	return p
}

// CheckExposure looks at the node, before anything is changed, whether the port
// can be had: two requests over SSH. An exposure that exists already, and is
// ours to change, is no problem. A node that can't be asked is a warning.
func (m *Manager) CheckExposure(ctx context.Context, spec ExposureSpec) ([]Problem, error) {
	p := problems(m.CheckExposureSpec(spec))
	if asError(p) != nil {
		return p, nil //nolint:nilerr // the problems are what is returned
	}
	s, err := m.read(ctx, Prior{Ref: spec.Container}, true)
	if errors.Is(err, ErrGone) {
		return p, nil // it may be made by the same apply
	}
	if err != nil {
		return nil, err
	}
	if spec.HostPort == 0 {
		return p, nil
	}
	by, err := m.portHolder(ctx, s.Node, spec)
	if errors.Is(err, ErrNodeSSH) {
		p.warn("", "Whether the port is free can't be seen", fmt.Sprintf("%v.", err))
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	if by != "" {
		p.add("host_port", "The port is taken on the node", fmt.Sprintf("%s:%d on node %s is taken by %s. Choose another host_port, or leave it out to be given a free one.", spec.listen(), spec.HostPort, s.Node, by))
	}
	return p, nil
}

// portHolder says by whom the port on the node is taken, "" if by nobody but the exposure itself.
func (m *Manager) portHolder(ctx context.Context, node string, spec ExposureSpec) (string, error) {
	listed, err := m.askNode(ctx, "check", spec.Container, node, "list")
	if err != nil {
		return "", err
	}
	entries, _ := exposure.ParseList(listed)
	name := exposure.Name(spec.Container.VMID, spec.Port)
	own := ""
	for _, e := range entries {
		switch {
		case e.Name == name:
			own = e.Listen.String()
		case int(e.Listen.Port()) == spec.HostPort && overlaps(e.Listen.Addr(), spec.listen()):
			return "the exposure " + e.Name, nil
		}
	}
	ports, err := m.askNode(ctx, "check", spec.Container, node, "ports")
	if err != nil {
		return "", err
	}
	for _, local := range strings.Fields(ports) {
		at := strings.LastIndexByte(local, ':')
		if at < 0 || local == own || local[at+1:] != fmt.Sprint(spec.HostPort) {
			continue
		}
		host, _, _ := strings.Cut(strings.Trim(local[:at], "[]"), "%")
		addr, err := netip.ParseAddr(host)
		if host == "*" || err == nil && overlaps(addr, spec.listen()) {
			return "another program, which listens on " + local, nil
		}
	}
	return "", nil
}

// overlaps says whether two listeners on one port are in each other's way.
func overlaps(a, b netip.Addr) bool {
	return a == b || a.IsUnspecified() || b.IsUnspecified()
}

// Expose makes the exposure, or changes it to spec. An exposure of that port
// that is there already, and listens elsewhere, is an error unless update is
// set: somebody else manages it. After an error nothing of it is left on the node.
func (m *Manager) Expose(ctx context.Context, spec ExposureSpec, update bool) (Exposure, error) {
	if err := m.requireOwner("expose"); err != nil {
		return Exposure{}, err
	}
	if err := asError(m.CheckExposureSpec(spec)); err != nil {
		return Exposure{}, err
	}
	s, target, err := m.verifiedAddress(ctx, spec)
	if err != nil {
		return Exposure{}, err
	}
	unlock, err := m.exposing.lock(ctx, s.Node)
	if err != nil {
		return Exposure{}, err
	}
	defer unlock()
	out := Exposure{Container: s.Ref, Host: spec.listen().String()}
	if spec.Via == exposure.ViaTailscale {
		if out.Host, err = m.tailnetName(ctx, s.Ref); err != nil {
			return Exposure{}, err
		}
	}
	request := exposure.Request{VMID: s.VMID, Port: spec.Port, Target: target, Claim: s.Claim, Tailscale: spec.Via == exposure.ViaTailscale}
	if !update {
		if err := m.refuseExposed(ctx, s.Ref, spec); err != nil {
			return Exposure{}, err
		}
	}
	if err := m.letIn(ctx, s, spec.HostKey, "add", spec.Port); err != nil {
		return Exposure{}, err
	}
	if err := m.letNodeIn(ctx, s, spec.Port, target); err != nil {
		return Exposure{}, err
	}
	made := false
	defer func() {
		if !made && !update {
			m.shutNodeOut(context.WithoutCancel(ctx), s.Ref, spec.Port)
		}
	}()
	for try := range hostPortTries {
		request.Listen = netip.AddrPortFrom(spec.listen(), uint16(spec.candidate(try)))
		said, err := m.askNode(ctx, "expose", s.Ref, s.Node, request.String())
		if errors.Is(err, ErrPortTaken) && spec.HostPort == 0 && try < hostPortTries-1 {
			continue
		}
		if err != nil {
			return Exposure{}, m.undoLost(ctx, s.Ref, request, err)
		}
		if out.Entry, err = exposure.ParseEntry(strings.TrimSpace(said)); err != nil {
			return Exposure{}, &Error{Op: "expose", Ref: s.Ref, What: "understand node " + s.Node, Kind: ErrNodeSSH, Err: err}
		}
		made = true
		m.log.InfoContext(ctx, "a port was exposed", "exposure", out.Name, "node", s.Node, "listen", out.Listen.String(), "target", out.Target.String())
		return out, nil
	}
	return Exposure{}, err
}

// candidate is the port that is tried: the wanted one, or one that the exposure's own numbers lead to, so that it is
// given the same again.
func (s ExposureSpec) candidate(try int) int {
	if s.HostPort != 0 {
		return s.HostPort
	}
	return FirstHostPort + (s.Container.VMID*31+s.Port*7+try*613)%(LastHostPort-FirstHostPort+1)
}

// undoLost takes away what may have been made by a request whose answer was lost.
func (m *Manager) undoLost(ctx context.Context, ref Ref, request exposure.Request, cause error) error {
	if !errors.Is(cause, ErrNodeSSH) {
		return cause // the node said so itself, and has tidied up
	}
	again, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if _, err := m.askNode(again, "expose", ref, ref.Node, unexposeRequest(ref, request.Port)); err != nil {
		var e *Error
		if errors.As(cause, &e) {
			c := *e
			c.Remedy = fmt.Sprintf("when node %s can be reached again, apply again; %s may have been made there all the same", ref.Node, exposure.Name(ref.VMID, request.Port))
			return &c
		}
	}
	return cause
}

// refuseExposed refuses a port that is exposed already, elsewhere than is wanted.
func (m *Manager) refuseExposed(ctx context.Context, ref Ref, spec ExposureSpec) error {
	listed, err := m.askNode(ctx, "expose", ref, ref.Node, "list")
	if err != nil {
		return err
	}
	entries, _ := exposure.ParseList(listed)
	for _, e := range entries {
		taken := e.Listen.Addr() == spec.listen() && (int(e.Listen.Port()) == spec.HostPort || spec.HostPort == 0)
		if e.VMID == ref.VMID && e.Port == spec.Port && e.Claim == ref.Claim && (!taken || e.Via() != spec.Via || m.exposed.has(e.Name)) {
			return &Error{Op: "expose", Ref: ref, What: fmt.Sprintf("expose port %d", spec.Port), Kind: ErrExposureExists,
				Err:    fmt.Errorf("node %s has %s already, which listens on %s", ref.Node, e.Name, e.Listen),
				Remedy: fmt.Sprintf("a port has one exposure; if it is yours: terraform import sandbox_port_exposure.<name> %d/%d", ref.VMID, spec.Port)}
		}
	}
	m.exposed.add(exposure.Name(ref.VMID, spec.Port))
	return nil
}

// verifiedAddress is the container's own IPv4 address: that which the server
// gave it; or, where the container asked a DHCP server and says itself what it
// got, that at which a login proves it.
func (m *Manager) verifiedAddress(ctx context.Context, spec ExposureSpec) (Sandbox, netip.Addr, error) {
	s, err := m.read(ctx, Prior{Ref: spec.Container}, spec.Container.Claim == "")
	if err != nil {
		return s, netip.Addr{}, err
	}
	refuse := func(kind error, what, remedy string) (Sandbox, netip.Addr, error) {
		return s, netip.Addr{}, &Error{Op: "expose", Ref: s.Ref, Kind: kind, What: what, Remedy: remedy}
	}
	switch {
	case !s.IPv4.IsValid() && s.Status != StatusRunning:
		return refuse(ErrNotRunning, "its address isn't known while it is "+string(s.Status), "start it, or give it an address of the range (network.ipv4 = \"auto\")")
	case !s.IPv4.IsValid():
		return refuse(ErrNotReady, "it has no IPv4 address", "exposures lead to IPv4 addresses")
	case s.Network.IPv4 == AddressDHCP:
		t := target(s.Ref, s, spec.HostKey)
		t.Address = s.IPv4.String()
		if _, err := m.await(ctx, s, &t); err != nil {
			return s, netip.Addr{}, err
		}
	}
	return s, s.IPv4, nil
}

func (m *Manager) tailnetName(ctx context.Context, ref Ref) (string, error) {
	said, err := m.askNode(ctx, "expose", ref, ref.Node, "tailnet")
	return strings.TrimSpace(said), err
}

func unexposeRequest(ref Ref, port int) string {
	return fmt.Sprintf("unexpose %d %d %s", ref.VMID, port, ref.Claim)
}
