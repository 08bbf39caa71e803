package command

import (
	"bytes"
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
)

func init() { register(map[string]shell.Command{"ip": ip, "nc": nc, "probe": probe}) }

// ip shows addresses and links, long or brief (-br, -o).
func ip(c *shell.Call) int {
	var words []string
	brief, oneLine, want4, want6 := false, false, true, true
	for _, a := range c.Argv[1:] {
		switch a {
		case "-br", "-brief":
			brief = true
		case "-o", "-oneline":
			oneLine = true
		case "-4":
			want6 = false
		case "-6":
			want4 = false
		case "-j", "-json":
			return c.Fail("json is not simulated")
		default:
			words = append(words, a)
		}
	}
	if len(words) == 0 || !strings.HasPrefix("address", words[0]) && !strings.HasPrefix("link", words[0]) && !strings.HasPrefix("route", words[0]) {
		return c.Fail("Object \"%s\" is unknown", strings.Join(words, " "))
	}
	if strings.HasPrefix("route", words[0]) {
		for _, n := range c.Machine.Config().NICs {
			if n.Gateway4 != "" && want4 {
				c.Out("default via %s dev %s\n", n.Gateway4, n.Name)
			}
		}
		return 0
	}
	down := map[string]bool{}
	for _, n := range c.Machine.Config().NICs {
		down[n.Name] = n.LinkDown
	}
	only := words[len(words)-1]
	found := false
	for i, n := range c.Machine.Network.Interfaces() {
		if len(words) > 1 && only != n.Name && only != "show" && only != "up" {
			continue
		}
		found = true
		state, flags := "UP", "BROADCAST,MULTICAST,UP,LOWER_UP"
		switch {
		case n.Name == "lo":
			state, flags = "UNKNOWN", "LOOPBACK,UP,LOWER_UP"
		case down[n.Name]:
			state, flags = "DOWN", "NO-CARRIER,BROADCAST,MULTICAST,UP"
		}
		var shown []string
		for _, a := range n.Addresses {
			if is4 := !strings.Contains(a, ":"); is4 && want4 || !is4 && want6 {
				shown = append(shown, a)
			}
		}
		link := strings.HasPrefix("link", words[0])
		switch {
		case brief && link:
			c.Out("%-16s %-14s %s <%s>\n", n.Name, state, n.MAC, flags)
		case brief:
			c.Out("%-16s %-14s %s\n", n.Name, state, strings.Join(shown, " "))
		case oneLine && !link:
			for _, a := range shown {
				c.Out("%d: %s    %s %s scope %s %s\n", i+1, n.Name, family(a), a, scope(a), n.Name)
			}
		default:
			c.Out("%d: %s: <%s> mtu 1500 qdisc noqueue state %s group default qlen 1000\n    link/ether %s brd ff:ff:ff:ff:ff:ff\n", i+1, n.Name, flags, state, n.MAC)
			for _, a := range shown {
				if !link {
					c.Out("    %s %s scope %s %s\n", family(a), a, scope(a), n.Name)
				}
			}
		}
	}
	if !found {
		return c.Fail("Device \"%s\" does not exist.", only)
	}
	return 0
}

func family(a string) string {
	if strings.Contains(a, ":") {
		return "inet6"
	}
	return "inet"
}

func scope(a string) string {
	switch {
	case strings.HasPrefix(a, "127.") || strings.HasPrefix(a, "::1/"):
		return "host"
	case strings.HasPrefix(a, "fe80:"):
		return "link"
	}
	return "global"
}

// nc connects to a port, asks whether one is open (-z), or listens (-l, -k to go on, -p port).
func nc(c *shell.Call) int {
	f := parse(c, "lkzvnp:w:q:N46")
	if f == nil {
		return 1
	}
	if f.has("l") {
		port := f.value["p"]
		if len(f.args) > 0 {
			port = f.args[len(f.args)-1]
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			return c.Fail("port number invalid: %s", port)
		}
		return listen(c, n, f.has("k"))
	}
	if len(f.args) != 2 {
		return c.Usage("usage: nc [-z] [-w seconds] host port")
	}
	ctx := context.Context(c)
	if w, err := strconv.Atoi(f.value["w"]); err == nil {
		limited, cancel := context.WithTimeout(ctx, time.Duration(w)*time.Second)
		defer cancel()
		ctx = limited
	}
	conn, err := c.Machine.Network.Dial(ctx, net.JoinHostPort(f.args[0], f.args[1]))
	if err != nil {
		if f.has("v") {
			c.Fail("connect to %s port %s (tcp) failed: %s", f.args[0], f.args[1], err)
		}
		return 1
	}
	defer func() { _ = conn.Close() }()
	if f.has("z") {
		if f.has("v") {
			c.Fail("Connection to %s %s port [tcp/*] succeeded!", f.args[0], f.args[1])
		}
		return 0
	}
	exchange(c, conn, c.In)
	return 0
}

func listen(c *shell.Call, port int, again bool) int {
	l, err := c.Machine.Network.Listen(port)
	if err != nil {
		return c.Fail("%s", message(err))
	}
	defer context.AfterFunc(c, func() { _ = l.Close() })()
	defer func() { _ = l.Close() }()
	all, err := io.ReadAll(c.In) // what each who connects gets
	if err != nil {
		return 1
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return 1
		}
		exchange(c, conn, bytes.NewReader(all))
		_ = conn.Close()
		if !again {
			return 0
		}
	}
}

// exchange copies input to a connection and what comes back to standard output.
func exchange(c *shell.Call, conn net.Conn, in io.Reader) {
	defer context.AfterFunc(c, func() { _ = conn.Close() })()
	var sent sync.WaitGroup
	sent.Go(func() {
		_, _ = io.Copy(conn, in) // ends with the input or the connection
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	})
	copyOut(c, conn)
	sent.Wait()
}
