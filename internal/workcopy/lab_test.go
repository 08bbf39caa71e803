//go:build unix

package workcopy

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sshnode"
)

// reached is a simulated guest, reached through SSH and entered as root.
type reached struct {
	pool   *guest.Pool
	target guest.Target
}

func (r *reached) Exec(ctx context.Context, cmd guest.Command) (guest.Result, error) {
	return r.pool.Exec(ctx, r.target, cmd)
}

func (r *reached) sh(t testing.TB, user, script string) string {
	t.Helper()
	res, err := r.Exec(t.Context(), guest.Command{Script: script, User: user})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%s: exit %d, %s, %v", script, res.ExitCode, res.Stderr, err)
	}
	return string(res.Stdout)
}

func newGuest(t testing.TB) *reached {
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
	e, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
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
	pool, err := guest.NewPool(guest.Config{
		Auth:      guest.Auth{PrivateKey: string(pem.EncodeToMemory(block))},
		ProxyJump: &guest.ProxyJump{Host: host, Port: n, HostKey: string(ssh.MarshalAuthorizedKey(node.HostKey()))},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	err = errors.Join(
		e.CreateRoot(t.Context(), 101, engine.RootSpec{AuthorizedKeys: []string{line}}),
		e.Configure(t.Context(), 101, engine.Config{Hostname: "box", NICs: []engine.NIC{{Name: "eth0", Bridge: "vmbr1", MAC: "BC:24:11:00:00:01", IPv4: "10.77.0.1/24", Gateway4: "10.77.0.254"}}}),
		e.Start(t.Context(), 101),
	)
	if err != nil {
		t.Fatal(err)
	}
	r := &reached{pool: pool, target: guest.Target{ID: "101", Name: "box", Address: "10.77.0.1"}}
	if _, err := pool.WaitReady(t.Context(), r.target); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAWorkingCopyInALabGuestBelongsToTheRunsUser(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	source := t.TempDir()
	put(t, source, files{"a.txt": "1\n", "run*": "#!/bin/sh\n", "d/b": "b\n", "l@": "d/b", "gone": "g\n"})
	for name, dir := range map[string]string{"in the home": "/home/agent/work", "elsewhere": "/srv/deep"} {
		t.Run(name, func(t *testing.T) {
			p := Place{Guest: g, User: "agent", Dir: dir, State: filepath.Dir(dir) + "/.work.sandbox"}
			send(t, p, source)
			if got := strings.TrimSpace(g.sh(t, "", "stat -c '%U %a' "+dir+"/a.txt "+dir+"/run "+dir+"/d "+dir)); got != "agent 644\nagent 755\nagent 755\nagent 755" {
				t.Errorf("files are of %s", got)
			}
			g.sh(t, "agent", "cd "+dir+"; echo 2 > a.txt; echo new > new; rm gone; mkdir node_modules out; echo x > node_modules/x; echo built > out/app; ln -s /etc/passwd bad")
			if _, err := MakeCheckpoint(t.Context(), p, "after"); err != nil {
				t.Fatal(err)
			}
			c := collect(t, p)
			target := t.TempDir()
			put(t, target, files{"a.txt": "1\n", "gone": "g\n"})
			if err := Apply(t.Context(), target, c); err != nil {
				t.Fatal(err)
			}
			if got := content(t, target); !maps.Equal(got, files{"a.txt": "2\n", "new": "new\n", "out/app": "built\n"}) || len(c.LeftOut) != 1 {
				t.Errorf("there is %v, left out %v", got, c.LeftOut)
			}
			out := t.TempDir()
			if brought, _ := bringOut(t, p, Wanted{Pattern: "out/app", Destination: out + "/app"}); len(brought) != 1 || brought[0].Size != 6 {
				t.Errorf("brought %v", brought)
			}
			g.sh(t, "agent", "cd "+dir+"; rm -r a.txt out")
			if err := RestoreCheckpoint(t.Context(), p, "after"); err != nil {
				t.Fatal(err)
			}
			if got := g.sh(t, "agent", "cat "+dir+"/a.txt "+dir+"/out/app"); got != "2\nbuilt\n" {
				t.Errorf("restored: %s", got)
			}
		})
	}
	t.Run("a guest without git says so", func(t *testing.T) {
		p := Place{Guest: g, User: "agent", Dir: "/home/agent/repo", State: "/home/agent/.repo.sandbox"}
		_, err := Clone(t.Context(), p, Repo{URL: "https://example.org/r.git", Branch: "b"})
		var missing *MissingTool
		if !errors.As(err, &missing) || missing.Tool != "git" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a folder behind a link isn't given away", func(t *testing.T) {
		g.sh(t, "agent", "ln -s /etc /home/agent/etc; ln -s /var/spool /home/agent/spool")
		for _, dir := range []string{"/home/agent/etc/new", "/home/agent/spool"} {
			p := Place{Guest: g, User: "agent", Dir: dir, State: "/home/agent/.x.sandbox"}
			if _, err := Send(t.Context(), p, Source{Dir: source}); err == nil {
				t.Errorf("%s was filled", dir)
			}
		}
		if got := strings.TrimSpace(g.sh(t, "", "stat -c %U /etc /var/spool; ls /etc/new 2>/dev/null || :")); got != "root\nroot" {
			t.Errorf("now they are of %s", got)
		}
	})
}

func BenchmarkSending10000Files(b *testing.B) {
	source := b.TempDir()
	for i := range 10_000 {
		name := filepath.Join(source, strconv.Itoa(i%100), strconv.Itoa(i))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(strings.Repeat("x", 2000)), 0o600)); err != nil {
			b.Fatal(err)
		}
	}
	g := newGuest(b)
	for b.Loop() {
		send(b, Place{Guest: g, User: "agent", Dir: "/home/agent/w", State: "/home/agent/.w"}, source)
	}
}

// cutting breaks the connection once so many bytes have gone in or come out.
type cutting struct {
	*reached
	after int
}

func (c *cutting) Exec(ctx context.Context, cmd guest.Command) (guest.Result, error) {
	if cmd.Stdin != nil {
		cmd.Stdin = &cutReader{c, cmd.Stdin}
	}
	if cmd.Stdout != nil {
		cmd.Stdout = &cutWriter{c, cmd.Stdout}
	}
	return c.pool.Exec(ctx, c.target, cmd)
}

func (c *cutting) count(n int) {
	before := c.after
	if c.after -= n; before > 0 && c.after <= 0 {
		c.pool.Disconnect(c.target)
	}
}

type cutReader struct {
	c *cutting
	r io.Reader
}

func (r *cutReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.c.count(n)
	return n, err
}

type cutWriter struct {
	c *cutting
	w io.Writer
}

func (w *cutWriter) Write(p []byte) (int, error) {
	w.c.count(len(p))
	return w.w.Write(p)
}

func TestAConnectionThatBreaksLosesNothing(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	// More than an SSH channel holds on the way (2 MiB), so that what is cut off can't have arrived.
	source := t.TempDir()
	put(t, source, files{"a": strings.Repeat("x", 2<<20), "b": strings.Repeat("y", 1<<20), "c": "c"})
	p := Place{Guest: g, User: "agent", Dir: "/home/agent/work", State: "/home/agent/.work.sandbox"}
	var lost *guest.LostError

	cut := p
	cut.Guest = &cutting{g, 64 << 10}
	if _, err := Send(t.Context(), cut, Source{Dir: source}); !errors.As(err, &lost) {
		t.Fatalf("cut while sending: %v", err)
	}
	send(t, p, source) // what half arrived is ours, and gives way
	if c := collect(t, p); len(c.List) != 0 {
		t.Errorf("after sending again: %+v", c)
	}

	g.sh(t, "agent", "cd /home/agent/work; cat b a > new; rm c; mkdir out; cat a b > out/big")
	cut.Guest = &cutting{g, 64 << 10}
	if c, err := Collect(t.Context(), cut, NewIgnore(nil), Limits{}); err == nil || len(c.List) != 0 {
		t.Errorf("cut while collecting: %d changes, %v", len(c.List), err)
	}
	if c := collect(t, p); len(c.List) != 3 {
		t.Errorf("collected again: %d changes", len(c.List))
	}

	out := t.TempDir()
	cut.Guest = &cutting{g, 64 << 10}
	if _, _, err := BringOut(t.Context(), cut, []Wanted{{Pattern: "out/big", Destination: out + "/"}}); err == nil {
		t.Error("cut while bringing out: no error")
	}
	if got := content(t, out); len(got) != 0 {
		t.Errorf("half a file is there: %s", got.names())
	}
	if brought, _ := bringOut(t, p, Wanted{Pattern: "out/big", Destination: out + "/"}); len(brought) != 1 || brought[0].Size != 3<<20 {
		t.Errorf("brought %v", brought)
	}
}
