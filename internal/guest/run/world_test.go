package run_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest/run"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sshnode"
)

// box is one guest of the lab, simulated or, with SANDBOX_LAB_ENGINE=ns, a real container; SANDBOX_LAB_IMAGE may say of
// which base image.
type box struct {
	t      *testing.T
	engine engine.Engine
	config guest.Config
	pool   *guest.Pool
	target guest.Target
}

func newBox(t *testing.T) *box { t.Helper(); return newBoxOf(t, 0) }

// newBoxOf makes one with a root disk of a size in bytes; 0 means any.
func newBoxOf(t *testing.T, disk int64) *box {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	e := newEngine(t)
	node, err := sshnode.Start(sshnode.Options{Dial: e.Dial, AuthorizedKeys: []string{line}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	host, port, err := net.SplitHostPort(node.Address())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	config := guest.Config{
		Auth:      guest.Auth{PrivateKey: string(pem.EncodeToMemory(block))},
		ProxyJump: &guest.ProxyJump{Host: host, Port: n, HostKey: string(ssh.MarshalAuthorizedKey(node.HostKey()))},
	}
	pool, err := guest.NewPool(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	const id = 101
	err = errors.Join(
		e.CreateRoot(t.Context(), id, engine.RootSpec{Image: os.Getenv("SANDBOX_LAB_IMAGE"), AuthorizedKeys: []string{line}, Bytes: disk}),
		e.Configure(t.Context(), id, engine.Config{Hostname: "box", NICs: []engine.NIC{{
			Name: "eth0", Bridge: "vmbr0", MAC: "BC:24:11:00:00:01", IPv4: "10.77.0.9/16", Gateway4: "10.77.0.1"}}}),
		e.Start(t.Context(), id))
	if err != nil {
		t.Fatal(err)
	}
	b := &box{t: t, engine: e, config: config, pool: pool, target: guest.Target{ID: "101", Name: "box", Address: "10.77.0.9"}}
	ready, err := pool.WaitReady(t.Context(), b.target)
	if err != nil {
		t.Fatal(err)
	}
	b.target.HostKey = ready.HostKey
	return b
}

func newEngine(t *testing.T) engine.Engine {
	t.Helper()
	var e engine.Engine
	var err error
	if os.Getenv("SANDBOX_LAB_ENGINE") == "ns" {
		e, err = ns.New(ns.Options{Folder: t.TempDir()})
	} else {
		e, err = sim.New(sim.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// Exec makes a box a run.Guest.
func (b *box) Exec(ctx context.Context, cmd guest.Command) (guest.Result, error) {
	return b.pool.Exec(ctx, b.target, cmd)
}

// sh runs code as root and returns what it prints.
func (b *box) sh(code string, args ...string) string {
	b.t.Helper()
	res, err := b.Exec(b.t.Context(), guest.Command{Script: code, Args: args})
	if err != nil {
		b.t.Fatalf("%s: %v", code, err)
	}
	return string(res.Stdout) + string(res.Stderr)
}

const key = "0123456789abcdef01234567"

func request(code string) run.Request {
	return run.Request{Key: key, User: "agent", Limit: time.Minute, Grace: time.Second, Agent: run.Launch{Code: code}}
}

// start looks and starts, as every caller does.
func (b *box) start(r run.Request) run.Started {
	b.t.Helper()
	if _, err := run.Look(b.t.Context(), b, r.Key, r.User, "", nil); err != nil {
		b.t.Fatal("look:", err)
	}
	s, err := run.Start(b.t.Context(), b, r)
	if err != nil {
		b.t.Fatal("start:", err)
	}
	return s
}

// end waits for a run's end.
func (b *box) end(id string) run.State {
	b.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		s, err := run.Poll(b.t.Context(), b, id, -1<<20, 1<<20)
		if err != nil {
			b.t.Fatal("poll:", err)
		}
		if s.Status != run.Running && s.Status != run.Starting {
			return s
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the run doesn't end: %+v\n%s", s, b.sh("ps -ef; ls -lR /var/lib/sandbox/runs /run/sandbox/runs; cat /var/lib/sandbox/runs/*/supervisor.log"))
		}
	}
}

// as is the box for another login.
func (b *box) as(user string) *box {
	b.t.Helper()
	b.sh(`install -d -m 700 -o "$1" -g "$1" "/home/$1/.ssh"; cp /root/.ssh/authorized_keys "/home/$1/.ssh/"; chown -R "$1" "/home/$1/.ssh"`, user)
	other := *b
	other.config.Username = user
	pool, err := guest.NewPool(other.config)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = pool.Close() })
	other.pool = pool
	return &other
}
