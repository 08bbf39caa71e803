package node

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sshnode"
)

const (
	systemUnits = "/etc/systemd/system"
	userUnits   = "/.config/systemd/user"
)

// socket is a socket unit that listens.
type socket struct {
	address  string
	listener net.Listener

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func (s *socket) close() {
	_ = s.listener.Close()
	s.cut()
}

// cut ends the connections: the service was stopped.
func (s *socket) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}

var (
	listenStream = regexp.MustCompile(`(?m)^ListenStream=(\S+)$`)
	proxyTo      = regexp.MustCompile(`(?m)^ExecStart=\S*/systemd-socket-proxyd (\S+)$`)
)

// systemctl knows socket units, and the services that they start at the first connection.
func (n *Node) systemctl(c *shell.Call) int {
	folder, verb, units := systemUnits, "", []string(nil)
	now, quiet := false, false
	for _, a := range c.Argv[1:] {
		switch {
		case a == "--user":
			folder = shell.Getenv(c.Env, "HOME") + userUnits
		case a == "--system":
		case a == "--now":
			now = true
		case a == "--quiet", a == "-q":
			quiet = true
		case strings.HasPrefix(a, "-"):
			return c.Fail("option %s is not simulated", a)
		case verb == "":
			verb = a
		default:
			units = append(units, a)
		}
	}
	if folder == systemUnits && c.Cred.UID != 0 && verb != "is-active" && verb != "list-units" {
		return c.Fail("Failed to %s: Interactive authentication required.", verb)
	}
	status := 0
	for _, u := range units {
		if s := n.unit(c, folder, verb, u, now, quiet); s != 0 {
			status = s
		}
	}
	switch verb {
	case "daemon-reload", "enable", "disable", "start", "stop", "is-active", "reset-failed":
	case "list-units":
		n.mu.Lock()
		defer n.mu.Unlock()
		for key := range n.sockets {
			if u, ok := strings.CutPrefix(key, folder+"/"); ok {
				c.Out("%s loaded active listening\n", u)
			}
		}
	default:
		return c.Fail("Unknown command verb %s.", verb)
	}
	return status
}

func (n *Node) unit(c *shell.Call, folder, verb, u string, now, quiet bool) int {
	key := folder + "/" + u
	n.mu.Lock()
	active := n.sockets[key]
	n.mu.Unlock()
	text, err := c.Machine.FS.ReadFile(c.Cred, key)
	switch {
	case verb == "is-active":
		state := "inactive"
		if active != nil {
			state = "active"
		}
		if !quiet {
			c.Out("%s\n", state)
		}
		if active == nil {
			return 3
		}
		return 0
	case err != nil && (verb == "enable" || verb == "start"):
		return c.Fail("Unit file %s does not exist.", u)
	case verb == "enable" && !now, verb == "disable" && !now:
		return 0
	case verb == "enable", verb == "start":
		if active != nil || !strings.HasSuffix(u, ".socket") {
			return 0
		}
		m := listenStream.FindSubmatch(text)
		if m == nil {
			return c.Fail("Failed to start %s: Unit %s has a bad unit file setting.", u, u)
		}
		if err := n.listen(c, folder, u, string(m[1])); err != nil {
			return c.Fail("Job for %s failed: %s", u, reason(err))
		}
	case verb == "disable", verb == "stop":
		n.mu.Lock()
		delete(n.sockets, key)
		service := n.sockets[strings.TrimSuffix(key, ".service")+".socket"]
		n.mu.Unlock()
		if active != nil {
			active.close()
		}
		if service != nil && strings.HasSuffix(u, ".service") {
			service.cut()
		}
		if err != nil && verb == "disable" {
			return c.Fail("Failed to disable unit: Unit file %s does not exist.", u)
		}
	}
	return 0
}

func reason(err error) string {
	for _, known := range []syscall.Errno{syscall.EADDRINUSE, syscall.EADDRNOTAVAIL, syscall.EACCES} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return err.Error()
}

// listen opens a socket of this machine and serves what comes by the unit's service.
func (n *Node) listen(c *shell.Call, folder, u, address string) error {
	l, err := (&net.ListenConfig{}).Listen(n.ctx, "tcp", address)
	n.mu.Lock()
	if errors.Is(err, syscall.EADDRINUSE) {
		n.taken[address] = true
	} else {
		delete(n.taken, address)
	}
	n.mu.Unlock()
	if err != nil {
		return err
	}
	s := &socket{address: address, listener: l, conns: map[net.Conn]bool{}}
	n.mu.Lock()
	n.sockets[folder+"/"+u] = s
	n.mu.Unlock()
	service := folder + "/" + strings.TrimSuffix(u, ".socket") + ".service"
	files := c.Machine.FS
	n.work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n.work.Go(func() {
				defer func() { _ = conn.Close() }()
				s.mu.Lock()
				s.conns[conn] = true
				s.mu.Unlock()
				text, err := files.ReadFile(vfs.Root, service)
				if m := proxyTo.FindSubmatch(text); err == nil && m != nil {
					n.proxy(conn, string(m[1]))
				}
				s.mu.Lock()
				delete(s.conns, conn)
				s.mu.Unlock()
			})
		}
	})
	return nil
}

// proxy is systemd-socket-proxyd.
func (n *Node) proxy(conn net.Conn, target string) {
	guest, err := n.options.Dial(n.ctx, target)
	if err != nil {
		return
	}
	sshnode.SpliceConns(conn, guest)
}

// tailscale keeps book of what would be published.
func (n *Node) tailscale(c *shell.Call) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	line := strings.Join(c.Argv[1:], " ")
	var port, target string
	switch {
	case n.tailnet == "":
		return c.Fail("failed to connect to local tailscaled; it doesn't appear to be running")
	case strings.HasPrefix(line, "status --json"):
		c.Out("{\n  \"BackendState\": \"Running\",\n  \"Self\": {\n    \"DNSName\": \"%s.\",\n    \"Online\": true\n  }\n}\n", n.tailnet)
	case line == "serve status --json":
		var all []string
		for p, t := range n.served {
			all = append(all, fmt.Sprintf("\"%s\": {\"TCPForward\": \"%s\"}", p, strings.TrimPrefix(t, "tcp://")))
		}
		c.Out("{\"TCP\": {%s}}\n", strings.Join(all, ", "))
	case scan(line, "serve --tcp=%s off", &port):
		if _, ok := n.served[port]; !ok {
			return c.Fail("error: failed to remove TCP serve: handler does not exist")
		}
		delete(n.served, port)
	case scan(line, "serve --bg --tcp=%s %s", &port, &target):
		if n.broken != "" {
			return c.Fail("%s", n.broken)
		}
		n.served[port] = target
	default:
		return c.Fail("%q is not simulated", line)
	}
	return 0
}

func scan(line, format string, into ...any) bool {
	n, err := fmt.Sscanf(line, format, into...)
	return err == nil && n == len(into)
}

// Tailscale joins the node to a tailnet under a name, "node.tail1234.ts.net"; serving fails with a message, if there is one.
func (n *Node) Tailscale(name, failure string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tailnet, n.broken = name, failure
}

// Served are the ports that Tailscale publishes, and where they lead.
func (n *Node) Served() map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := map[string]string{}
	for p, t := range n.served {
		out[p] = t
	}
	return out
}
