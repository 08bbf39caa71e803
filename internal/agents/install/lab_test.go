package install

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/agents"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sshnode"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"
)

// overSSH runs scripts as a Packer communicator does.
type overSSH struct{ client *ssh.Client }

func (o overSSH) Run(_ context.Context, s remote.Script) (remote.Result, error) {
	session, err := o.client.NewSession()
	if err != nil {
		return remote.Result{}, err
	}
	defer session.Close()
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	line := "sh -c " + quote(s.Text) + " sh"
	for _, a := range s.Args {
		line += " " + quote(a)
	}
	var out, errw bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = s.Stdin, &out, &errw
	err = session.Run(line)
	result := remote.Result{Stdout: out.Bytes(), Stderr: errw.Bytes()}
	if exit := (&ssh.ExitError{}); errors.As(err, &exit) {
		result.ExitCode, err = exit.ExitStatus(), nil
	}
	return result, err
}

// simulated is a guest of the lab's simulating engine, as root.
func simulated(t *testing.T) overSSH {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	e, err := sim.New(sim.Options{})
	must(err)
	t.Cleanup(func() { must(e.Close()) })
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(err)
	signer, err := ssh.NewSignerFromKey(private)
	must(err)
	key := string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
	node, err := sshnode.Start(sshnode.Options{Dial: e.Dial, AuthorizedKeys: []string{key}})
	must(err)
	t.Cleanup(func() { must(node.Close()) })
	login := func(hostKey ssh.HostKeyCallback) *ssh.ClientConfig {
		return &ssh.ClientConfig{User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: hostKey}
	}
	jump, err := ssh.Dial("tcp", node.Address(), login(ssh.FixedHostKey(node.HostKey())))
	must(err)
	t.Cleanup(func() { _ = jump.Close() })
	must(e.CreateRoot(t.Context(), 101, engine.RootSpec{AuthorizedKeys: []string{key}}))
	must(e.Configure(t.Context(), 101, engine.Config{Hostname: "template", Limits: engine.Limits{Cores: 1, MemoryBytes: 512 << 20},
		NICs: []engine.NIC{{Name: "eth0", Bridge: "vmbr1", MAC: "BC:24:11:00:00:01", IPv4: "10.77.0.2/16", Gateway4: "10.77.0.1"}}}))
	must(e.Start(t.Context(), 101))
	conn, err := jump.DialContext(t.Context(), "tcp", "10.77.0.2:22")
	must(err)
	c, channels, requests, err := ssh.NewClientConn(conn, "10.77.0.2:22", login(ssh.InsecureIgnoreHostKey()))
	must(err)
	client := ssh.NewClient(c, channels, requests)
	t.Cleanup(func() { _ = client.Close() })
	return overSSH{client}
}

// The whole way through a guest over SSH, as in a build on the lab: Node.js from
// an archive of this machine, a package, and what is left in the guest.
func TestAgentsAreInstalledInAGuestOverSSH(t *testing.T) {
	t.Parallel()
	guest := simulated(t)
	sh := func(script string) string {
		t.Helper()
		result, err := guest.Run(t.Context(), remote.Script{Text: script})
		if err != nil || result.ExitCode != 0 {
			t.Fatalf("%s: %+v, %v", script, result, err)
		}
		return string(result.Stdout)
	}
	sh("mkdir -p /home/agent/.tester && echo secret >/home/agent/.tester/token")
	archive := nodeArchive(t)
	sum := sha256.Sum256(archive)
	local := filepath.Join(t.TempDir(), "node.tar.gz")
	if err := os.WriteFile(local, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Agents: map[string]string{"tester": ""}, Definitions: []agents.Agent{definition("tester", nil)},
		Node: Download{Version: "22.1.0", File: local, SHA256: hex.EncodeToString(sum[:])},
	}
	got, err := Run(t.Context(), guest, o, func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	if a := got.Agents["tester"]; a.Version != "2.0.0" || a.Binary != "/usr/local/bin/tester" || got.Runtimes["node"] != "22.1.0" {
		t.Errorf("installed is %+v", got)
	}
	if record, err := ParseRecord([]byte(sh("cat " + Record))); err != nil || record.Agents["tester"].Version != "2.0.0" {
		t.Errorf("the record is %+v, %v", record, err)
	}
	if left := sh("ls -A /home/agent /opt/agents; cat /etc/environment"); strings.Contains(left, ".tester") || strings.Contains(left, ".download") || !strings.Contains(left, "NO_UPDATE_TESTER=1") {
		t.Errorf("left in the guest: %s", left)
	}
	if owner := sh("stat -c '%U %a' /opt/agents/tester/bin/tester"); owner != "root 755\n" {
		t.Errorf("the command belongs to %s", owner)
	}
}
