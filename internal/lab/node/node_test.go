package node_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/node"
)

// start makes a node whose guests all say what they were called by.
func start(t *testing.T) *node.Node {
	t.Helper()
	n := node.New(node.Options{Address: netip.MustParsePrefix("10.77.0.1/16"), Dial: func(_ context.Context, address string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = io.WriteString(theirs, "I am "+address)
			_ = theirs.Close()
		}()
		return ours, nil
	}})
	t.Cleanup(n.Close)
	return n
}

func run(t *testing.T, n *node.Node, user, line string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	code, err := n.Exec(t.Context(), user, line, nil, strings.NewReader(""), &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), code
}

func TestASocketUnitListensAndLeadsToTheGuest(t *testing.T) {
	t.Parallel()
	n := start(t)
	port, err := n.Occupy(0)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.socket": fmt.Sprintf("[Socket]\nListenStream=127.0.0.1:%d\n", port), "a.service": "[Service]\nExecStart=/lib/systemd/systemd-socket-proxyd 10.77.1.7:80\n",
	} {
		if err := n.WriteFile("/etc/systemd/system/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, code := run(t, n, "root", "systemctl enable --now a.socket"); code == 0 || !strings.Contains(out, "address already in use") {
		t.Errorf("on a port that is taken: %d, %s", code, out)
	}
	n.Vacate(port)
	if out, code := run(t, n, node.Login, "systemctl enable --now a.socket"); code == 0 {
		t.Errorf("the login may start root's units: %s", out)
	}
	if out, code := run(t, n, "root", "systemctl enable --now a.socket && systemctl is-active a.socket && ss -Hltn"); code != 0 || !strings.Contains(out, fmt.Sprintf("127.0.0.1:%d ", port)) || !strings.HasPrefix(out, "active\n") {
		t.Errorf("%d, %s", code, out)
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); string(answer) != "I am 10.77.1.7:80" {
		t.Errorf("it answers %q, %v", answer, err)
	}
	if out, code := run(t, n, "root", "systemctl disable --now a.socket; systemctl is-active a.socket"); code != 3 || len(n.Listening()) > 0 {
		t.Errorf("%d, %s, %v", code, out, n.Listening())
	}
}

func TestItSaysWhereItReachesGuestsFrom(t *testing.T) {
	t.Parallel()
	n := start(t)
	if out, _ := run(t, n, node.Login, "ip -4 route get 10.77.1.7; id -un"); !strings.Contains(out, "src 10.77.0.1 ") || !strings.HasSuffix(out, node.Login+"\n") {
		t.Errorf("%s", out)
	}
	if out, code := run(t, n, "root", "tailscale status --json"); code == 0 {
		t.Errorf("without a tailnet: %s", out)
	}
}
