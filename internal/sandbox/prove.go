package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
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
	tried, by6, unknown := 0, false, error(nil)
	for _, s := range suspects {
		switch {
		case s.forbidden && s.reach == guest.ReachUnknown:
			unknown = s.err
		case s.forbidden:
			tried++
			by6 = by6 || s.at.Addr().Is6()
		case s.node:
		case s.reach != guest.ReachOpen:
			f.warnings.add("An allowed target is unreachable", fmt.Sprintf("Container %d may reach %s and can't (%s): an outage there, or a route that is missing.", f.ref.VMID, s.name, s.reach))
		}
	}
	if tried > 0 && !by6 && f.sandbox.IPv6.IsValid() {
		f.warnings.add("IPv6 was not tried", fmt.Sprintf("Container %d has the address %s, and no canary is reached by IPv6. Name a listener's IPv6 address as well: network.canaries = [..., \"[fd00::1]:443\"].", f.ref.VMID, f.sandbox.IPv6))
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
	var looks errgroup.Group
	var args []string
	for i, s := range suspects {
		if s.proto == "udp" {
			args = append(args, strconv.Itoa(i), s.at.Addr().String(), strconv.Itoa(int(s.at.Port())), question(s.at.Port()))
			continue
		}
		patience := probeTime
		if s.node {
			patience /= 4 // it is this side of any network
		}
		looks.Go(func() error {
			looking, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			s.reach, s.err = f.m.guests.ReachFrom(looking, t, s.at.String())
			return nil
		})
	}
	said, err := f.m.guests.Exec(ctx, t, guest.Command{Script: askScript, Args: args})
	out := strings.Split(string(said.Stdout), "\n")
	simulated = slices.Contains(out, "simulated")
	for i, s := range suspects {
		if s.proto != "udp" {
			continue
		}
		s.reach, s.err = guest.ReachUnknown, err
		switch {
		case slices.Contains(out, strconv.Itoa(i)+" open"):
			s.reach = guest.ReachOpen
		case slices.Contains(out, strconv.Itoa(i)+" blocked"):
			s.reach = guest.ReachSilent
		case err == nil:
			s.err = fmt.Errorf("the container has neither bash, python3 nor nc to ask %s with", s.name)
		}
		if s.reach == guest.ReachSilent && !s.seen && !simulated && !answers(ctx, s.at) {
			s.reach, s.err = guest.ReachUnknown, fmt.Errorf("%s doesn't answer from here either", s.name)
		}
	}
	_ = looks.Wait()
	f.judgeNode(ctx, suspects)
	return simulated
}
