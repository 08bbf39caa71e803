// Package matrix says what each network mode lets out, target by target, and finds out what really gets out of a real
// container. What has got out is counted where it arrives, in the lab's outside, where every address answers.
package matrix

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// Target is what a sandbox tries to reach.
type Target struct {
	What  string
	Proto string // "tcp" or "udp"
	To    netip.AddrPort
	modes string
}

// ReachedBy says whether a mode lets it out. A container without any lets out all.
func (t Target) ReachedBy(mode string) bool {
	return mode == "unmanaged" || strings.Contains(" "+t.modes+" ", " "+mode+" ")
}

// The resolver that is pinned, by both versions, and what the allowlist names, at TCP port 443.
const (
	Resolver4 = "9.9.9.9"
	Resolver6 = "2620:fe::fe"
	Named4    = "151.101.2.132"
	Named6    = "2a04:4e42::644"
)

// places are tried by both IP versions, by TCP at their port and by UDP at 443; udp are the modes that let that out.
var places = []struct {
	what, v4, v6 string
	port         int
	tcp, udp     string
}{
	{"a public site", "93.184.215.14", "2606:2800:21f:cb07::1", 443, "web nat", "nat"},
	{"a public site, plain", "93.184.215.15", "2606:2800:21f:cb07::2", 80, "web nat", "nat"},
	{"a public service", "93.184.215.16", "2606:2800:21f:cb07::3", 8080, "nat", "nat"},
	{"public mail", "93.184.215.17", "2606:2800:21f:cb07::4", 25, "nat", "nat"},
	{"what the allowlist names", Named4, Named6, 443, "web nat allowlist", "nat"},
	{"the neighbour of that", "151.101.2.133", "2a04:4e42::645", 443, "web nat", "nat"},
	{"a private network", "10.99.3.4", "fd50::10", 443, "", ""},
	{"another private network", "172.20.3.4", "fc00:1::10", 443, "", ""},
	{"a home network", "192.168.50.10", "fec0::10", 443, "", ""},
	{"a tailnet", "100.101.102.103", "fd7a:115c:a1e0::53", 443, "", ""},
	{"cloud metadata", "169.254.169.254", "fd00:ec2::254", 80, "", ""},
	{"Alibaba's metadata", "100.100.100.200", "64:ff9b::a9fe:a9fe", 80, "", ""},
	{"Azure's metadata", "168.63.129.16", "::ffff:0:a83f:8110", 80, "", ""},
	{"a benchmark network", "198.18.5.6", "2002:c0a8:3201::1", 443, "", ""},
}

// datagrams are tried by UDP beside: the clock's port and the resolvers'.
var datagrams = []struct {
	what, v4, v6 string
	port         int
	modes        string
}{
	{"a public clock", "93.184.215.14", "2606:2800:21f:cb07::1", 123, "nat"},
	{"the pinned resolver", Resolver4, Resolver6, 53, "web nat allowlist"},
	{"another resolver", "8.8.4.4", "2001:4860:4860::8844", 53, "nat"},
	{"a private clock", "192.168.50.10", "fd50::10", 123, ""},
	{"a private resolver", "10.99.3.4", "fc00:1::10", 53, ""},
	{"metadata by UDP", "169.254.169.254", "fd00:ec2::254", 123, ""},
}

// Places is the number of places that are tried by both protocols.
var Places = len(places)

// Targets are all that is tried.
func Targets() []Target {
	var out []Target
	add := func(what, proto, v4, v6 string, port int, modes string) {
		for _, address := range []string{v4, v6} {
			out = append(out, Target{what, proto, netip.AddrPortFrom(netip.MustParseAddr(address), uint16(port)), modes})
		}
	}
	for _, p := range places {
		add(p.what, "tcp", p.v4, p.v6, p.port, p.tcp)
		add(p.what, "udp", p.v4, p.v6, 443, p.udp)
	}
	for _, d := range datagrams {
		add(d.what, "udp", d.v4, d.v6, d.port, d.modes)
	}
	return out
}

// Finding is a target and whether a container got through to it.
type Finding struct {
	Target
	Reached bool
}

// Try tries every target from inside a container, side by side.
func Try(ctx context.Context, l *lab.Lab, vmid int) ([]Finding, error) {
	own, err := addresses(ctx, l, vmid)
	if err != nil {
		return nil, err
	}
	targets := Targets()
	var script strings.Builder
	for _, t := range targets {
		send := "echo tick >/dev/udp/%s/%d"
		if t.Proto == "tcp" {
			send = ": <>/dev/tcp/%s/%d"
		}
		fmt.Fprintf(&script, "timeout 3 bash -c '"+send+"' 2>/dev/null &\n", t.To.Addr(), t.To.Port())
	}
	script.WriteString("wait\n")
	if err := Run(ctx, l, vmid, script.String()); err != nil {
		return nil, err
	}
	seen, err := contacts(ctx, l, own)
	if err != nil {
		return nil, err
	}
	out := make([]Finding, 0, len(targets))
	for _, t := range targets {
		out = append(out, Finding{t, seen[t.Proto+" "+t.To.String()] > 0})
	}
	return out, nil
}

// Run runs a script in a container, behind the API's back.
func Run(ctx context.Context, l *lab.Lab, vmid int, script string) error {
	_, err := l.Engine().Exec(ctx, vmid, engine.Command{Argv: []string{"bash", "-c", script}, Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}})
	return err
}

// onTheirWay is what the last packets may need.
const onTheirWay = 100 * time.Millisecond

// contacts counts who came through from some addresses, by protocol and target.
func contacts(ctx context.Context, l *lab.Lab, from map[netip.Addr]bool) (map[string]int, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(onTheirWay):
	}
	all, err := l.Contacts(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]int{}
	for _, c := range all {
		if from[c.Source.Addr()] {
			seen[map[int]string{6: "tcp", 17: "udp"}[c.Protocol]+" "+c.Dest.String()]++
		}
	}
	return seen, nil
}

// Count counts the connections and datagrams that came through from an address.
func Count(ctx context.Context, l *lab.Lab, from netip.Addr) (int, error) {
	seen, err := contacts(ctx, l, map[netip.Addr]bool{from: true})
	n := 0
	for _, times := range seen {
		n += times
	}
	return n, err
}

func addresses(ctx context.Context, l *lab.Lab, vmid int) (map[netip.Addr]bool, error) {
	interfaces, err := l.Engine().Interfaces(ctx, vmid)
	if err != nil {
		return nil, err
	}
	own := map[netip.Addr]bool{}
	for _, i := range interfaces {
		for _, a := range i.Addresses {
			if p, err := netip.ParsePrefix(a); err == nil {
				own[p.Addr()] = true
			}
		}
	}
	return own, nil
}

// Spoof has a container send under other addresses than its own: a neighbour's IP address, then with its MAC address
// too, then an address that nobody has. It returns how often something came through under one of them. The container has
// its own addresses afterwards.
func Spoof(ctx context.Context, l *lab.Lab, vmid int, neighbour netip.Addr, neighboursMAC string, nobody netip.Addr) (passed int, err error) {
	interfaces, err := l.Engine().Interfaces(ctx, vmid)
	if err != nil {
		return 0, err
	}
	ownMAC := ""
	for _, i := range interfaces {
		if i.Name == "eth0" {
			ownMAC = i.MAC
		}
	}
	counts := func() (int, error) {
		a, err := Count(ctx, l, neighbour)
		if err != nil {
			return 0, err
		}
		b, err := Count(ctx, l, nobody)
		return a + b, err
	}
	before, err := counts()
	if err != nil {
		return 0, err
	}
	const public = "93.184.215.14"
	for _, as := range []struct {
		address netip.Addr
		mac     string
	}{{neighbour, ownMAC}, {neighbour, neighboursMAC}, {nobody, ownMAC}} {
		script := fmt.Sprintf(`gw=$(ip -4 route show default | sed 's/.*via \([^ ]*\).*/\1/')
ip link set eth0 address %[3]s
ip addr add %[1]s/32 dev eth0
ip route replace %[2]s via $gw dev eth0 onlink src %[1]s
timeout 1 bash -c ': <>/dev/tcp/%[2]s/443' & timeout 1 bash -c 'echo tick >/dev/udp/%[2]s/123' & wait
ip route del %[2]s; ip addr del %[1]s/32 dev eth0; ip link set eth0 address %[4]s`, as.address, public, as.mac, ownMAC)
		if err := Run(ctx, l, vmid, script); err != nil {
			return 0, err
		}
	}
	after, err := counts()
	return after - before, err
}
