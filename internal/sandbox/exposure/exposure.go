// Package exposure says how a sandbox's port is exposed on its node: what the units are called, what the program on the
// node is asked and answers, and what a reverse proxy in front of it is told. It sends nothing.
package exposure

import (
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Name is the name of the systemd units of an exposure, and of the exposure: "sbx-100012-8080".
func Name(vmid, port int) string { return fmt.Sprintf("sbx-%d-%d", vmid, port) }

var namePattern = regexp.MustCompile(`^sbx-([1-9][0-9]{2,8})-([1-9][0-9]{0,4})$`)

// ParseName takes a name apart. Anything else than what Name makes is an error, so that a forged unit is nobody's.
func ParseName(name string) (vmid, port int, err error) {
	m := namePattern.FindStringSubmatch(name)
	if m == nil {
		return 0, 0, fmt.Errorf("%q is no exposure: its name is sbx-<vmid>-<port>", name)
	}
	vmid, _ = strconv.Atoi(m[1]) // digits, few of them
	port, _ = strconv.Atoi(m[2])
	if port > 65535 {
		return 0, 0, fmt.Errorf("%q is no exposure: %d is no port", name, port)
	}
	return vmid, port, nil
}

// Via is how an exposure is reached.
type Via string

// The ways.
const (
	ViaLoopback  Via = "loopback"  // 127.0.0.1 of the node: by SSH forwarding, or a proxy there
	ViaTailscale Via = "tailscale" // the node's name in its tailnet
	ViaAddress   Via = "address"   // an address of the node
)

// Loopback is what ViaLoopback listens on. Other addresses of 127.0.0.0/8 are addresses like any.
var Loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// States of an exposure.
const (
	StateOpen        = "open"        // it listens, and the sandbox's port answers
	StateRefused     = "refused"     // it listens; nothing listens in the sandbox
	StateSilent      = "silent"      // it listens; the sandbox doesn't answer at all
	StateInactive    = "inactive"    // the node doesn't listen
	StateUnpublished = "unpublished" // it listens, and Tailscale doesn't serve it
	StateStale       = "stale"       // it leads to an address that isn't the container's
	StateListening   = "listening"   // it listens; the sandbox wasn't asked
	StateOrphaned    = "orphaned"    // its container doesn't exist any more
)

// Entry is one exposure as a node tells it.
type Entry struct {
	Name       string
	VMID, Port int
	Listen     netip.AddrPort
	Target     netip.AddrPort // invalid when the node has lost it
	State      string
	Claim      string // of the container that it was made for, "" when it carries none
	Tailscale  bool
}

// Via is how the exposure is reached, by where it listens.
func (e Entry) Via() Via {
	switch {
	case e.Tailscale:
		return ViaTailscale
	case e.Listen.Addr() == Loopback:
		return ViaLoopback
	}
	return ViaAddress
}

// ParseEntry reads a line of the node's: "name listen target state claim via", and for one that was shown what its
// target answers.
func ParseEntry(line string) (Entry, error) {
	f := strings.Fields(line)
	if len(f) != 6 && len(f) != 7 {
		return Entry{}, fmt.Errorf("the node said %q, which is no exposure", line)
	}
	e := Entry{Name: f[0], Claim: strings.Trim(f[4], "-"), Tailscale: f[5] == "tailscale"}
	var err error
	if e.VMID, e.Port, err = ParseName(f[0]); err != nil {
		return Entry{}, err
	}
	if e.Listen, err = netip.ParseAddrPort(f[1]); err != nil {
		return Entry{}, fmt.Errorf("%s listens on %q: %w", e.Name, f[1], err)
	}
	e.Target, _ = netip.ParseAddrPort(f[2]) // without one it is stale
	switch {
	case f[3] == StateUnpublished:
		e.State = StateUnpublished
	case f[3] != "active":
		e.State = StateInactive
	case len(f) == 7:
		e.State = f[6]
	default:
		e.State = StateListening
	}
	return e, nil
}

// ParseList reads the node's list. Units whose names or contents aren't those of exposures come back as errors beside it.
func ParseList(text string) (entries []Entry, strange []error) {
	for _, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		e, err := ParseEntry(line)
		if err != nil {
			strange = append(strange, err)
			continue
		}
		entries = append(entries, e)
	}
	return entries, strange
}

//go:embed gate.sh
var gate string

// Gate is the program that a node runs for requests. With a prefix, "10.77", it is the one behind the login
// sandbox-node: it exposes only addresses that begin so, by units of that login. Without, it is root's.
func Gate(prefix string) string { return strings.Replace(gate, "@PREFIX@", prefix, 1) }

// How the program ends, beside 0.
const (
	ExitRefused = 64 // the request is none, or not allowed to this login
	ExitMissing = 66
	ExitFailed  = 69
	ExitForeign = 73
	ExitTaken   = 75
)

// Request is a request to expose a port.
type Request struct {
	VMID, Port int
	Listen     netip.AddrPort
	Target     netip.Addr
	Claim      string
	Tailscale  bool
}

// String is the request as the node's program takes it.
func (r Request) String() string {
	via := "direct"
	if r.Tailscale {
		via = "tailscale"
	}
	return fmt.Sprintf("expose %d %d %s %d %s %s %s", r.VMID, r.Port, r.Listen.Addr(), r.Listen.Port(), r.Target, r.Claim, via)
}

// URL is where an exposure is reached: "http://127.0.0.1:18080". The port is left out where it is the scheme's own.
func URL(scheme, host string, port int) (string, error) {
	switch {
	case scheme != "tcp" && scheme != "http" && scheme != "https":
		return "", fmt.Errorf("%q is no scheme of an exposure: tcp, http or https", scheme)
	case port < 1 || port > 65535:
		return "", fmt.Errorf("%d is no port", port)
	case !validHost(host):
		return "", fmt.Errorf("%q is neither a host name nor an IP address", host)
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		host = "[" + host + "]"
	}
	if scheme == "http" && port == 80 || scheme == "https" && port == 443 {
		return scheme + "://" + host, nil
	}
	return fmt.Sprintf("%s://%s:%d", scheme, host, port), nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*\.?$`)

func validHost(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Zone() == ""
	}
	return len(host) <= 253 && hostName.MatchString(host)
}

// Route is one entry of a reverse proxy.
type Route struct {
	Host    string // name that clients ask for, "web.example.org"
	Backend string // where it leads: "127.0.0.1:18080", or a URL of http or tcp without a path
}

// ErrProxy is the kind of every error of Proxy.
var ErrProxy = errors.New("no proxy configuration can be made of it")

// Proxy renders the configuration of a reverse proxy, "caddy" or "nginx", for routes in their order. Names and backends
// that could end a block, or stand twice, are refused.
func Proxy(kind string, routes []Route) (string, error) {
	seen := map[string]bool{}
	var b strings.Builder
	for i, r := range routes {
		backend, err := proxyBackend(r.Backend)
		switch {
		case !hostName.MatchString(r.Host) || len(r.Host) > 253 || strings.HasSuffix(r.Host, "."):
			return "", fmt.Errorf("%w: %q is no host name", ErrProxy, r.Host)
		case err != nil:
			return "", err
		case seen[strings.ToLower(r.Host)]:
			return "", fmt.Errorf("%w: %s stands there twice", ErrProxy, r.Host)
		}
		seen[strings.ToLower(r.Host)] = true
		if i > 0 {
			b.WriteString("\n")
		}
		switch kind {
		case "caddy": // a Caddyfile: certificates and WebSockets need no word
			fmt.Fprintf(&b, "%s {\n\treverse_proxy %s\n}\n", r.Host, backend)
		case "nginx":
			fmt.Fprintf(&b, nginxBlock, r.Host, backend)
		default:
			return "", fmt.Errorf("%w: %q is no proxy that is known: caddy or nginx", ErrProxy, kind)
		}
	}
	return b.String(), nil
}

// Development servers push changes over WebSockets and event streams, hence the headers, and no buffering.
const nginxBlock = `server {
    listen 80;
    server_name %s;

    location / {
        proxy_pass http://%s;
        proxy_http_version 1.1;
        proxy_set_header Host $host;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection "upgrade";
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_buffering off;
        proxy_read_timeout 1h;
    }
}
`

func proxyBackend(text string) (string, error) {
	for _, scheme := range []string{"http://", "tcp://"} {
		text = strings.TrimPrefix(text, scheme)
	}
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return "", fmt.Errorf("%w: %q is no host:port", ErrProxy, text)
	}
	host, number := text[:at], text[at+1:]
	port, err := strconv.Atoi(number)
	if err != nil || port < 1 || port > 65535 || strconv.Itoa(port) != number {
		return "", fmt.Errorf("%w: %q has no port", ErrProxy, text)
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if addr, err := netip.ParseAddr(bare); err == nil && addr.Is6() {
		if host != "["+bare+"]" {
			return "", fmt.Errorf("%w: an IPv6 address stands in brackets, not as in %q", ErrProxy, text)
		}
		return text, nil
	}
	if !validHost(host) {
		return "", fmt.Errorf("%w: %q is no host:port", ErrProxy, text)
	}
	return text, nil
}

// DevelopmentPorts are those that development servers listen on by default, by what is found there.
func DevelopmentPorts() map[string]int64 {
	return map[string]int64{"node": 3000, "vite": 5173, "django": 8000, "web": 8080, "jupyter": 8888}
}
