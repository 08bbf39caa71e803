package sim_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sshnode"
)

// lab is an engine behind an SSH node, with a key that templates trust.
type lab struct {
	*sim.Engine
	node   *sshnode.Node
	signer ssh.Signer
	key    string // authorized_keys line
	pem    []byte
	jump   *ssh.Client
}

func newLab(t testing.TB, o sim.Options) *lab {
	t.Helper()
	e, err := sim.New(o)
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	l := &lab{Engine: e}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	l.signer, err = ssh.NewSignerFromKey(private)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	must(t, err)
	l.pem, l.key = pem.EncodeToMemory(block), string(ssh.MarshalAuthorizedKey(l.signer.PublicKey()))
	l.node, err = sshnode.Start(sshnode.Options{Dial: e.Dial, AuthorizedKeys: []string{l.key}})
	must(t, err)
	t.Cleanup(func() { must(t, l.node.Close()) })
	l.jump, err = ssh.Dial("tcp", l.node.Address(), &ssh.ClientConfig{User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(l.signer)}, HostKeyCallback: ssh.FixedHostKey(l.node.HostKey())})
	must(t, err)
	t.Cleanup(func() { _ = l.jump.Close() })
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func address(id int) string { return fmt.Sprintf("10.77.%d.%d", id/250, id%250+2) }

func config(id int) engine.Config {
	return engine.Config{Hostname: fmt.Sprintf("sb-%d", id), NICs: []engine.NIC{{Name: "eth0", Bridge: "vmbr1", MAC: fmt.Sprintf("BC:24:11:00:%02X:%02X", id/256, id%256), IPv4: address(id) + "/16", Gateway4: "10.77.0.1"}},
		Limits: engine.Limits{Cores: 2, MemoryBytes: 512 << 20}}
}

// running makes a configured guest from the base image and starts it.
func (l *lab) running(t testing.TB, id int) {
	t.Helper()
	must(t, l.CreateRoot(t.Context(), id, engine.RootSpec{AuthorizedKeys: []string{l.key}}))
	must(t, l.Configure(t.Context(), id, config(id)))
	must(t, l.Start(t.Context(), id))
}

// guest logs in through the SSH node; seen gets the host key.
func (l *lab) guest(t testing.TB, id int, user string) *ssh.Client {
	t.Helper()
	c, _, err := l.login(id, user)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (l *lab) login(id int, user string) (*ssh.Client, ssh.PublicKey, error) {
	conn, err := l.jump.Dial("tcp", address(id)+":22")
	if err != nil {
		return nil, nil, err
	}
	var seen ssh.PublicKey
	c, channels, requests, err := ssh.NewClientConn(conn, address(id)+":22", &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(l.signer)},
		HostKeyCallback: func(_ string, _ net.Addr, k ssh.PublicKey) error { seen = k; return nil }})
	if err != nil {
		return nil, seen, err
	}
	return ssh.NewClient(c, channels, requests), seen, nil
}

// output runs a command over SSH.
func output(t testing.TB, c *ssh.Client, command, stdin string) (stdout, stderr string, status int) {
	t.Helper()
	s, err := c.NewSession()
	must(t, err)
	defer func() { _ = s.Close() }()
	var out, errw bytes.Buffer
	s.Stdout, s.Stderr = &out, &errw
	s.Stdin = strings.NewReader(stdin)
	err = s.Run(command)
	var exit *ssh.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		status = exit.ExitStatus()
	default:
		t.Fatalf("%q: %v", command, err)
	}
	return out.String(), errw.String(), status
}

// sh runs a command that must succeed and returns its output.
func sh(t testing.TB, c *ssh.Client, command string) string {
	t.Helper()
	out, errw, status := output(t, c, command, "")
	if status != 0 {
		t.Fatalf("%q: status %d, %s", command, status, errw)
	}
	return out
}

// pct runs a command without SSH.
func (l *lab) pct(t testing.TB, id int, command string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	status, err := l.Exec(t.Context(), id, engine.Command{Argv: []string{"sh", "-c", command}, Stdout: &out, Stderr: &out})
	must(t, err)
	return out.String(), status
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}
