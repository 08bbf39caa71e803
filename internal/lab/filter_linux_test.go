package lab

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

var machineCan = sync.OnceValue(func() error { return CheckEngine(EngineNS) })

// filtered is a lab of real containers whose datacenter firewall is on: a, which is filtered, and b, which listens.
type filtered struct {
	*testing.T
	lab *Lab
}

const (
	guestA, guestB     = 100000, 100001
	addressA, addressB = "10.77.1.0", "10.77.1.1"
	address6A          = "fd77::a"
	address6B          = "fd77::b"
)

func newFiltered(t *testing.T) *filtered {
	t.Helper()
	if err := machineCan(); err != nil {
		t.Skipf("this machine can't run real containers: %v", err)
	}
	l, err := Start(context.Background(), Options{EngineName: EngineNS})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &filtered{T: t, lab: l}
	for _, g := range []struct {
		vmid     int
		v4, v6   string
		firewall string
	}{{guestA, addressA, address6A, "1"}, {guestB, addressB, address6B, "0"}} {
		base := fmt.Sprintf("/nodes/pve1/lxc/%d", g.vmid)
		task(t, l, "POST", "/nodes/pve1/lxc/9000/clone", url.Values{"newid": {fmt.Sprint(g.vmid)}})
		api(t, l, "PUT", base+"/config", url.Values{"net0": {fmt.Sprintf(
			"name=eth0,bridge=vmbr0,firewall=%s,ip=%s/16,gw=10.77.0.1,ip6=%s/64", g.firewall, g.v4, g.v6)}})
		task(t, l, "POST", base+"/status/start", nil)
	}
	for _, port := range []string{"80", "443", "8080"} {
		f.sh(guestB, "httpd -p "+port+" -h /tmp; httpd -p '[::]:"+port+"' -h /tmp 2>/dev/null; true")
	}
	return f
}

// sh runs a script in a guest, behind the API's back.
func (f *filtered) sh(id int, script string) (string, int) {
	f.Helper()
	var out bytes.Buffer
	code, err := f.lab.Engine().Exec(f.Context(), id, engine.Command{Argv: []string{"bash", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil {
		f.Fatal(err)
	}
	return strings.TrimSpace(out.String()), code
}

// reach says how a connection from a guest ends: "open", "refused" or "silence", which is what lasts the patience.
func (f *filtered) reach(from int, address string, port int, patience time.Duration) string {
	f.Helper()
	out, code := f.sh(from, fmt.Sprintf("timeout %.1f bash -c ': <>/dev/tcp/%s/%d' 2>&1", patience.Seconds(), address, port))
	switch {
	case code == 0:
		return "open"
	case code == 124:
		return "silence"
	case strings.Contains(out, "refused"):
		return "refused"
	}
	return out
}

// settle waits until the firewall service has compiled all that is written and the packet filter has it. The service may
// be at it when this is called, so its second round from now counts.
func (f *filtered) settle() {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 20*time.Second)
	defer cancel()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for from := f.lab.server.FirewallRounds(); f.lab.rounds.Load() < from+2; {
		select {
		case <-look.C:
		case <-ctx.Done():
			f.Fatalf("the firewall service doesn't run: %v", ctx.Err())
		}
	}
}

func (f *filtered) set(method, path string, pairs ...string) {
	f.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	api(f.T, f.lab, method, path, form)
}

const firewallA = "/nodes/pve1/lxc/100000/firewall/"

// expect compares how connections end.
func (f *filtered) expect(want string, from int, targets ...string) {
	f.Helper()
	patience := 10 * time.Second // a busy machine's open connection may take its time
	if want == "silence" {
		patience = time.Second
	}
	for _, target := range targets {
		cut := strings.LastIndex(target, ":")
		port := 0
		if _, err := fmt.Sscan(target[cut+1:], &port); err != nil {
			f.Fatal(err)
		}
		if got := f.reach(from, target[:cut], port, patience); got != want {
			f.Errorf("from %d to %s: %s, want %s", from, target, got, want)
		}
	}
}

func TestWithoutASwitchNothingIsFiltered(t *testing.T) {
	t.Parallel()
	f := newFiltered(t)
	f.set("PUT", "/cluster/firewall/options", "enable", "0")
	f.set("POST", firewallA+"rules", "type", "out", "action", "DROP", "enable", "1")
	f.settle()
	f.expect("open", guestA, addressB+":80", address6B+":443", "10.77.0.1:8006")
	f.set("PUT", firewallA+"options", "enable", "1", "policy_out", "DROP")
	f.settle()
	f.expect("open", guestA, addressB+":80") // the datacenter's is off
}

func TestAGuestsRulesBiteInTheirOrderAndNotAtTheNode(t *testing.T) {
	t.Parallel()
	f := newFiltered(t)
	f.set("PUT", "/cluster/firewall/options", "enable", "1")
	f.set("PUT", firewallA+"options", "enable", "1", "policy_out", "DROP")
	for _, rule := range [][]string{ // each goes to the top
		{"type", "out", "action", "ACCEPT", "enable", "1", "proto", "tcp", "dport", "80,8080"},
		{"type", "out", "action", "REJECT", "enable", "1", "proto", "tcp", "dport", "8080", "dest", addressB},
		{"type", "out", "action", "ACCEPT", "enable", "0"},
	} {
		f.set("POST", firewallA+"rules", rule...)
	}
	f.settle()
	f.expect("open", guestA, addressB+":80", address6B+":80", address6B+":8080")
	f.expect("refused", guestA, addressB+":8080")
	f.expect("silence", guestA, addressB+":443", address6B+":443")
	// A node answers for itself: no guest's rule is about that.
	f.expect("open", guestA, "10.77.0.1:8006")
	f.set("POST", "/nodes/pve1/firewall/rules", "type", "in", "action", "DROP", "enable", "1", "source", addressA)
	f.settle()
	f.expect("silence", guestA, "10.77.0.1:8006")
	f.expect("open", guestB, "10.77.0.1:8006")
}

func TestWhatReachesAGuestMeetsItsOwnRules(t *testing.T) {
	t.Parallel()
	f := newFiltered(t)
	f.sh(guestA, "httpd -p 80 -h /tmp; httpd -p 8080 -h /tmp")
	f.set("PUT", "/cluster/firewall/options", "enable", "1")
	f.set("PUT", firewallA+"options", "enable", "1")
	f.set("POST", "/cluster/firewall/groups", "group", "web")
	f.set("POST", "/cluster/firewall/ipset", "name", "friends")
	f.set("POST", "/cluster/firewall/groups/web", "type", "in", "action", "ACCEPT", "enable", "1", "proto", "tcp", "dport", "80", "source", "+dc/friends")
	f.set("POST", "/cluster/firewall/aliases", "name", "all", "cidr", "10.77.0.0/16")
	f.set("POST", "/cluster/firewall/ipset/friends", "cidr", "all")
	f.set("POST", firewallA+"rules", "type", "group", "action", "web", "enable", "1")
	f.set("POST", firewallA+"rules", "type", "in", "action", "REJECT", "enable", "1", "proto", "tcp", "dport", "8080")
	f.settle()
	f.expect("open", guestB, addressA+":80")
	f.expect("refused", guestB, addressA+":8080")
	f.expect("silence", guestB, addressA+":22", address6A+":80")
	f.expect("open", guestA, addressB+":80") // answers to a connection of its own come in
	if c, err := f.dialShortly(addressA + ":22"); err == nil {
		t.Errorf("the node reached a port that no rule opens: %v", c.RemoteAddr())
	}
	f.set("POST", "/cluster/firewall/ipset/friends", "cidr", addressB, "nomatch", "1")
	f.settle()
	f.expect("silence", guestB, addressA+":80")
}

// dialShortly dials from the node, for no longer than a second.
func (f *filtered) dialShortly(address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(f.Context(), time.Second)
	defer cancel()
	return f.lab.Engine().Dial(ctx, address)
}

func TestAGuestCantUseAnothersNames(t *testing.T) {
	t.Parallel()
	f := newFiltered(t)
	f.set("PUT", "/cluster/firewall/options", "enable", "1")
	f.set("PUT", firewallA+"options", "enable", "1", "ipfilter", "1")
	f.settle()
	f.expect("open", guestA, addressB+":80", address6B+":80")
	f.sh(guestA, "ip addr add 10.77.1.77/16 dev eth0; ip -6 addr add fd77::77/64 dev eth0; ip route replace 10.77.1.1/32 dev eth0 src 10.77.1.77; ip -6 route replace fd77::b/128 dev eth0 src fd77::77")
	f.expect("silence", guestA, addressB+":80", address6B+":80")
	f.sh(guestA, "ip route del 10.77.1.1/32; ip -6 route del fd77::b/128; ip link set eth0 address 02:00:00:00:00:01")
	f.expect("silence", guestA, addressB+":80")
	f.set("PUT", firewallA+"options", "macfilter", "0", "ipfilter", "0")
	f.settle()
	f.sh(guestB, "ip neigh flush dev eth0")
	f.expect("open", guestA, addressB+":80")
}

func TestALinkThatIsDownLetsNothingPassAndOneThatComesUpDoes(t *testing.T) {
	t.Parallel()
	f := newFiltered(t)
	config := "/nodes/pve1/lxc/100000/config"
	net0 := api(t, f.lab, "GET", config, nil).(map[string]any)["net0"].(string)
	f.set("PUT", config, "net0", net0+",link_down=1")
	f.expect("silence", guestB, addressA+":22")
	if out, _ := f.sh(guestA, "cat /sys/class/net/eth0/carrier"); out != "0" {
		t.Errorf("carrier %q", out)
	}
	f.set("PUT", config, "net0", net0)
	f.expect("open", guestA, addressB+":80")
}

func TestTheFilterIsAsLateAsTheRealServers(t *testing.T) {
	t.Parallel()
	f := newFiltered(t)
	delays := Fast()
	delays.FirewallLoop = time.Hour // a service that doesn't run
	if err := f.lab.Control().SetDelays(t.Context(), delays); err != nil {
		t.Fatal(err)
	}
	f.set("PUT", "/cluster/firewall/options", "enable", "1")
	f.set("PUT", firewallA+"options", "enable", "1", "policy_out", "DROP")
	if _, err := f.lab.Control().Jump(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	f.expect("open", guestA, addressB+":80") // a minute later
	if err := f.lab.Control().SetDelays(t.Context(), Fast()); err != nil {
		t.Fatal(err)
	}
	f.settle()
	f.expect("silence", guestA, addressB+":80")
}
