package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// How a wall was proved, as Posture.Proof says it.
const (
	ProvedProbed    = "probed"    // forbidden targets, seen open from here, were closed from inside
	ProvedSimulated = "simulated" // as told by the rules of a lab that sends no packets
	ProvedReadback  = "readback"  // the rules were written and read back, and had their time
	ProvedNone      = "none"      // nobody asked
)

const (
	// probeTime bounds one look.
	probeTime = time.Second
	// DefaultProofPatience is how long a forbidden target may still be open.
	DefaultProofPatience = 15 * time.Second
)

// suspect is a target that is tried from inside.
type suspect struct {
	name      string
	at        netip.AddrPort
	dns       bool // asked over UDP, by a script
	forbidden bool
	reach     guest.Reach
	err       error
}

// prove tries the wall from inside, before the sandbox counts as ready.
func (f *finishing) prove(ctx context.Context) error {
	if f.wall == nil || !f.proof {
		return nil
	}
	n := f.spec.Network
	switch {
	case n.Proof == ProofNone:
		f.proved(ProvedNone)
		return nil
	case !f.spec.Started:
		f.proved(ProvedReadback)
		return nil
	case f.spec.WaitFor != WaitForSSH:
		f.onlyReadBack("Nothing is tried from inside without SSH (wait_for).")
		return nil
	}
	suspects, unseen := f.suspects(ctx)
	if len(unseen) > 0 {
		f.warnings.add("A canary did not answer", fmt.Sprintf("%s can't be reached from here either, so that container %d can't reach it proves nothing.", strings.Join(unseen, ", "), f.ref.VMID))
	}
	simulated, err := f.tryUntilRight(ctx, suspects)
	if err != nil {
		return err
	}
	tried, unknown := 0, error(nil)
	for _, s := range suspects {
		switch {
		case s.forbidden && s.reach == guest.ReachUnknown:
			unknown = s.err
		case s.forbidden:
			tried++
		case s.reach != guest.ReachOpen:
			f.warnings.add("An allowed target is unreachable", fmt.Sprintf("Container %d may reach %s and can't (%s): an outage there, or a route that is missing.", f.ref.VMID, s.name, s.reach))
		}
	}
	switch {
	case unknown != nil:
		f.onlyReadBack("It could not be tried from inside: " + unknown.Error())
	case tried == 0:
		f.onlyReadBack("")
	case simulated:
		f.proved(ProvedSimulated)
	default:
		f.proved(ProvedProbed)
	}
	return nil
}

func (f *finishing) proved(how string) { f.sandbox.Posture.Proof = how }

// onlyReadBack notes a wall that was written and read back, and not tried.
func (f *finishing) onlyReadBack(why string) {
	f.proved(ProvedReadback)
	if why == "" {
		why = "There is no canary that answers."
	}
	f.warnings.add("The network mode was not tried from inside", why+
		` The rules were written and read back and had their time (posture.proof = "readback"). To have them tried before a sandbox counts as ready, name listeners off the node `+
		`that the mode forbids: network.canaries = ["192.168.1.1:443"]. With proof = "none" nothing is tried, and each plan says so.`)
}

// suspects are the targets to try: the canaries that answer us, and DNS where the
// mode forbids it.
func (f *finishing) suspects(ctx context.Context) (all []*suspect, unseen []string) {
	own := f.sandbox.address()
	var mu sync.Mutex
	var looks errgroup.Group
	for _, text := range f.spec.Network.Canaries {
		at, err := netip.ParseAddrPort(text)
		if err != nil {
			continue // refused by checkProof
		}
		s := &suspect{name: text, at: at}
		permitted, _ := f.wall.filter.Permits(egress.Connection{Direction: egress.Out, From: own, To: at.Addr(), Proto: "tcp", Port: int(at.Port())}, egress.Drop)
		s.forbidden = !permitted
		looks.Go(func() error {
			looking, cancel := context.WithTimeout(ctx, 2*probeTime)
			defer cancel()
			seen := !s.forbidden
			if s.forbidden {
				reach, _ := f.m.guests.ReachFromHere(looking, s.name)
				seen = reach == guest.ReachOpen
			}
			mu.Lock()
			defer mu.Unlock()
			if seen {
				all = append(all, s)
			} else {
				unseen = append(unseen, s.name)
			}
			return nil
		})
	}
	_ = looks.Wait()
	if f.spec.Network.Mode == ModeOff && len(f.wall.policy.Resolvers) > 0 {
		at := netip.AddrPortFrom(f.wall.policy.Resolvers[0], 53)
		all = append(all, &suspect{name: "DNS at " + at.String(), at: at, dns: true, forbidden: true})
	}
	return all, unseen
}

// tryUntilRight tries all targets side by side, again and again until no
// forbidden one is open or the patience is over: rules that are late are waited
// for, rules that never come end the container.
func (f *finishing) tryUntilRight(ctx context.Context, suspects []*suspect) (simulated bool, err error) {
	if len(suspects) == 0 {
		return false, nil
	}
	began := f.m.clock.Now()
	for {
		simulated = f.try(ctx, suspects)
		var open []string
		untried := false
		for _, s := range suspects {
			if s.forbidden && s.reach == guest.ReachOpen {
				open = append(open, s.name)
			}
			untried = untried || s.forbidden && s.reach == guest.ReachUnknown
		}
		switch waited := f.m.clock.Now().Sub(began); {
		case len(open) == 0 && (!untried || waited >= 3*probeTime):
			return simulated, nil
		case len(open) == 0:
			// A guest that is busy may need a second look.
		case waited >= f.m.proofPatience:
			return simulated, f.shutIn(ctx, &Error{
				Op: "prove", Ref: f.ref, Kind: ErrExposed, What: "try its firewall from inside",
				Err: fmt.Errorf("it reached %s, which mode %q forbids, for %s after its rules should have been in force; its link is down and it is stopped",
					strings.Join(open, ", "), f.spec.Network.Mode, waited.Round(time.Second)),
				Remedy: "see whether pve-firewall runs on the node (systemctl status pve-firewall), and whether another rule lets the sandbox through",
			})
		}
		if err := f.m.pause(ctx, probeTime/4); err != nil {
			if len(open) == 0 {
				return simulated, err
			}
			// Stopped while it is open: it isn't left so.
			return simulated, f.shutIn(ctx, &Error{Op: "prove", Ref: f.ref, Kind: ErrExposed, What: "try its firewall from inside",
				Err: fmt.Errorf("it reached %s, which mode %q forbids, when the run was stopped; its link is down and it is stopped: %w", strings.Join(open, ", "), f.spec.Network.Mode, err)})
		}
	}
}

// try tries each target once.
func (f *finishing) try(ctx context.Context, suspects []*suspect) (simulated bool) {
	t := target(f.ref, f.sandbox, f.hostKey)
	resolver := ""
	var dns *suspect
	var looks errgroup.Group
	for _, s := range suspects {
		if s.dns {
			dns, resolver = s, s.at.Addr().String()
			continue
		}
		looks.Go(func() error {
			looking, cancel := context.WithTimeout(ctx, probeTime)
			defer cancel()
			s.reach, s.err = f.m.guests.ReachFrom(looking, t, s.name)
			return nil
		})
	}
	said, err := f.m.guests.Exec(ctx, t, guest.Command{Script: probeScript, Args: []string{resolver}})
	out := string(said.Stdout)
	if dns != nil {
		dns.reach, dns.err = guest.ReachUnknown, err
		switch {
		case strings.Contains(out, "open"):
			dns.reach = guest.ReachOpen
		case strings.Contains(out, "blocked"):
			dns.reach = guest.ReachSilent
		case err == nil:
			dns.err = fmt.Errorf("the container has neither dig, nslookup nor python3 to ask %s with", dns.name)
		}
		if dns.reach == guest.ReachSilent && !strings.Contains(out, "simulated") && !answersDNS(ctx, dns.at) {
			dns.reach, dns.err = guest.ReachUnknown, fmt.Errorf("%s doesn't answer from here either", dns.name)
		}
	}
	_ = looks.Wait()
	return strings.Contains(out, "simulated")
}

// answersDNS says whether a resolver answers a question from here.
func answersDNS(ctx context.Context, at netip.AddrPort) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*probeTime)
	defer cancel()
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", at.String())
	}}
	_, err := r.LookupNS(ctx, ".")
	var failure *net.DNSError
	e := &net.DNSError{}
	if errors.As(err, &e) {
		failure = e
	}
	return err == nil || failure != nil && failure.IsNotFound
}

// probeScript asks a resolver over UDP and prints "open" or "blocked", or nothing
// where there is no tool to ask with. A lab's guests have a command probe that
// tells by the rules; it says so.
const probeScript = `if command -v probe >/dev/null 2>&1; then
  echo simulated
  [ -z "$1" ] || probe udp "$1" 53
  exit 0
fi
[ -n "$1" ] || exit 0
if command -v dig >/dev/null 2>&1; then
  if dig +time=1 +tries=1 "@$1" . NS >/dev/null 2>&1; then echo open; else echo blocked; fi
elif command -v python3 >/dev/null 2>&1; then
  python3 - "$1" <<'EOF'
import socket, sys
a = sys.argv[1]
s = socket.socket(socket.AF_INET6 if ":" in a else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
try:
    s.sendto(bytes.fromhex("123401000001000000000000" + "00" + "00020001"), (a, 53))
    s.recv(512)
    print("open")
except OSError:
    print("blocked")
EOF
elif command -v nslookup >/dev/null 2>&1; then
  if timeout 2 nslookup localhost "$1" 2>&1 | grep -q "^Name:\|can't find\|NXDOMAIN"; then echo open; else echo blocked; fi
fi
`
