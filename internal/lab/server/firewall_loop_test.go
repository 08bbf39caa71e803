package server

import (
	"net/netip"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// towards is a connection of guest 9000, by its interface, to an address.
func towards(lab *ctLab, protocol int, to string) engine.Connection {
	return engine.Connection{
		From: 9000, FromMAC: parseNet(lab.s.st.Guests[9000].Config["net0"])["hwaddr"], Protocol: protocol,
		Source: netip.MustParseAddrPort("10.77.1.0:40000"), Dest: netip.MustParseAddrPort(to),
	}
}

// filtered gives guest 9000 a firewall and its interface the flag, and turns the datacenter's switch on.
func filtered(t *testing.T) *ctLab {
	t.Helper()
	lab := newCTLab(t)
	delays := *lab.s.delays()
	delays.FirewallLoop = time.Hour // rounds are the tests'
	lab.s.lock()
	lab.s.opt.Delays = &delays
	guest := lab.s.st.Guests[9000]
	guest.Config["net0"] += ",firewall=1"
	lab.s.unlock()
	lab.ok("PUT", "/cluster/firewall/options", form{"enable": "1"})
	lab.ok("PUT", "/nodes/pve1/lxc/9000/firewall/options", form{"enable": "1", "policy_out": "ACCEPT"})
	lab.ok("POST", guestRules, form{"type": "out", "action": "REJECT", "dest": "192.168.0.0/16", "proto": "tcp", "dport": "22:80", "enable": "1"})
	lab.ok("POST", guestRules, form{"type": "out", "action": "DROP", "dest": "10.0.0.0/8", "enable": "1"})
	return lab
}

func TestRulesBiteWithTheNextRoundOfTheServiceAndNotBefore(t *testing.T) {
	t.Parallel()
	lab := filtered(t)
	private := towards(lab, 6, "10.1.2.3:443")
	if v := lab.s.judge(private); v != engine.Accepted {
		t.Errorf("before a round: %v", v)
	}
	lab.s.compileFirewall()
	for to, want := range map[string]engine.Verdict{
		"10.1.2.3:443": engine.Dropped, "192.168.1.1:80": engine.Rejected, "192.168.1.1:81": engine.Accepted, "9.9.9.9:53": engine.Accepted,
	} {
		if v := lab.s.judge(towards(lab, 6, to)); v != want {
			t.Errorf("%s: %v, want %v", to, v, want)
		}
	}
	if v := lab.s.judge(towards(lab, 17, "192.168.1.1:53")); v != engine.Accepted {
		t.Errorf("UDP by a rule about TCP: %v", v)
	}
	// What is written now counts from the next round on.
	lab.ok("PUT", "/nodes/pve1/lxc/9000/firewall/options", form{"enable": "0"})
	if v := lab.s.judge(private); v != engine.Dropped {
		t.Errorf("right after a write the old rules don't count: %v", v)
	}
	lab.s.compileFirewall()
	if v := lab.s.judge(private); v != engine.Accepted {
		t.Errorf("the guest's switch is off: %v", v)
	}
}

func TestNothingIsFilteredWhileTheDatacentersSwitchIsOff(t *testing.T) {
	t.Parallel()
	lab := filtered(t)
	lab.ok("PUT", "/cluster/firewall/options", form{"enable": "0"})
	lab.s.compileFirewall()
	if v := lab.s.judge(towards(lab, 6, "10.1.2.3:443")); v != engine.Accepted || lab.s.FirewallCompiled() != nil {
		t.Errorf("%v", v)
	}
}

func TestOnAnotherNodeAGuestHasNoRulesUntilTheNextRound(t *testing.T) {
	t.Parallel()
	lab := filtered(t)
	lab.s.compileFirewall()
	lab.s.lock()
	lab.s.st.Guests[9000].Node = "elsewhere"
	lab.s.unlock()
	if v := lab.s.judge(towards(lab, 6, "10.1.2.3:443")); v != engine.Accepted {
		t.Errorf("right after a migration: %v", v)
	}
	lab.s.compileFirewall()
	if v := lab.s.judge(towards(lab, 6, "10.1.2.3:443")); v != engine.Dropped {
		t.Errorf("after a round: %v", v)
	}
}

func TestSpoofedAddressesAreDroppedByTheAddressFilter(t *testing.T) {
	t.Parallel()
	lab := filtered(t)
	lab.ok("PUT", "/nodes/pve1/lxc/9000/firewall/options", form{"ipfilter": "1"})
	lab.s.compileFirewall()
	spoofed := towards(lab, 6, "9.9.9.9:53")
	spoofed.Source = netip.MustParseAddrPort("10.9.9.9:40000")
	if v := lab.s.judge(spoofed); v != engine.Dropped {
		t.Errorf("from another address: %v", v)
	}
}
