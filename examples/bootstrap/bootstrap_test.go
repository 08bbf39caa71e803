// Package bootstrap tests the script that prepares a node: against stand-ins for the node's commands, of which pveum and
// pvesh work on a lab, so that what it prints is a provider block for a server that is ready.
package bootstrap

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/pveum"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/preflight"
)

// Variables by which this test's binary is told to be one of the node's commands.
const (
	standIn    = "SANDBOX_TEST_STANDIN"
	standInURL = "SANDBOX_TEST_ENDPOINT"
	standInKey = "SANDBOX_TEST_TOKEN"
	standInCA  = "SANDBOX_TEST_CA"
)

func TestMain(m *testing.M) {
	if os.Getenv(standIn) != "" {
		os.Exit(beCommand(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// beCommand is pveum or pvesh, by the first argument.
func beCommand(argv []string) int {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(os.Getenv(standInCA)))
	cli := pveum.CLI{
		Endpoint: os.Getenv(standInURL), Token: os.Getenv(standInKey),
		HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}},
	}
	if err := cli.Run(context.Background(), argv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 255
	}
	return 0
}

// node is a Proxmox VE node for the script: a lab behind pveum and pvesh, a folder for its files, and a record of what
// else it ran.
type node struct {
	t    *testing.T
	lab  *lab.Lab
	bin  string
	root string
	log  string
}

func newNode(t *testing.T) *node {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	if err := exec.CommandContext(t.Context(), "perl", "-MJSON::PP", "-e", "1").Run(); err != nil {
		t.Skip("no perl with JSON::PP, as every Proxmox VE node has")
	}
	l, err := lab.Start(context.WithoutCancel(t.Context()), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	dir := t.TempDir()
	n := &node{t: t, lab: l, bin: filepath.Join(dir, "bin"), root: filepath.Join(dir, "root"), log: filepath.Join(dir, "log")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"pveum": standIn + "=1 exec '" + self + "' pveum \"$@\"",
		"pvesh": standIn + "=1 exec '" + self + "' pvesh \"$@\"",
		// -u: root; a name: whether useradd has made it.
		"id":         `if [ "$1" = -u ]; then echo 0; else [ -e "$NODE_ROOT/made-$1" ]; fi`,
		"hostname":   "echo " + l.Nodes()[0],
		"pveversion": "echo pve-manager/9.2.11/14a22df35955d97d",
		"ip": `case "$*" in
  *"route get"*) echo "1.1.1.1 via 192.0.2.1 dev vmbr0 src 192.0.2.10 uid 0" ;;
  *"to match"*) echo "default via 192.0.2.1 dev vmbr0 onlink"; cat "$NODE_ROOT/routes" 2>/dev/null || true ;;
esac`,
		"useradd":   `for last; do :; done; touch "$NODE_ROOT/made-$last"; echo "useradd $*" >>"$NODE_LOG"`,
		"userdel":   `for last; do :; done; rm "$NODE_ROOT/made-$last"; rm -rf "$NODE_ROOT/var/lib/$last"; echo "userdel $*" >>"$NODE_LOG"`,
		"systemctl": `echo "systemctl $*" >>"$NODE_LOG"`,
		"loginctl":  `echo "loginctl $*" >>"$NODE_LOG"`,
		"sysctl":    `echo "sysctl $*" >>"$NODE_LOG"`,
	} {
		n.write(filepath.Join(n.bin, name), "#!/bin/sh\n"+body+"\n", 0o755)
	}
	n.write(filepath.Join(n.root, "etc/ssh/ssh_host_ed25519_key.pub"), l.SSHHostKey()+" root@node\n", 0o644)
	return n
}

func (n *node) write(path, content string, mode os.FileMode) {
	n.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		n.t.Fatal(err)
	}
}

// run runs the script and returns what it printed.
func (n *node) run(args ...string) (string, error) {
	n.t.Helper()
	cmd := exec.CommandContext(n.t.Context(), "bash", append([]string{"bootstrap.sh"}, args...)...)
	cmd.Env = append(os.Environ(),
		"PATH="+n.bin+":"+os.Getenv("PATH"), "SANDBOX_BOOTSTRAP_ROOT="+n.root, "NODE_ROOT="+n.root, "NODE_LOG="+n.log,
		standInURL+"="+n.lab.Endpoint(), standInKey+"="+n.lab.Token(), standInCA+"="+n.lab.CAPEM(),
		"SSH_CONNECTION=198.51.100.7 50000 192.0.2.10 22")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func (n *node) must(args ...string) string {
	n.t.Helper()
	out, err := n.run(args...)
	if err != nil {
		n.t.Fatalf("bootstrap.sh %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// everything is the server's state that the script could change, and the node's files.
func (n *node) everything() string {
	n.t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(n.lab.CAPEM()))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	cli := pveum.CLI{Endpoint: n.lab.Endpoint(), Token: n.lab.Token(), HTTP: client}
	var out strings.Builder
	name := n.lab.Nodes()[0]
	for _, path := range []string{
		"/access/roles", "/access/users", "/access/acl", "/pools", "/nodes/" + name + "/network", "/nodes/" + name + "/firewall/rules",
		"/cluster/firewall/ipset", "/cluster/firewall/options",
	} {
		if err := cli.Run(n.t.Context(), []string{"pvesh", "get", path, "--output-format", "json"}, &out); err != nil {
			n.t.Fatal(err)
		}
	}
	err := filepath.Walk(n.root, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			content, _ := os.ReadFile(path)
			fmt.Fprintf(&out, "%s %s\n%s\n", path, info.Mode(), content)
		}
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return out.String()
}

const (
	nodeKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl node"
	jumpKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJjI1wR0tKk1dyBwr5oEuKfNOGbVV0jmn4n0JrWUuRyd jump"
)

var whole = []string{"--storage", lab.Storage, "--node-key", nodeKey, "--jump-key", jumpKey, "--sandboxes", "16"}

func with(args ...string) []string { return append(slices.Clone(whole), args...) }

func TestWithoutApplyNothingIsChanged(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.everything()
	out := n.must(whole...)
	if after := n.everything(); after != before {
		t.Errorf("something was changed:\n%s", after)
	}
	for _, want := range []string{
		"would   role SandboxGuests: VM.Allocate", "would   user sandbox@pve", "would   token sandbox@pve!terraform, with privilege separation",
		"would   SandboxGuests on /pool/sandbox for sandbox@pve and sandbox@pve!terraform", "would   bridge vmbr1, 10.77.0.1/16", "would   masquerading of 10.77.0.0/16",
		"would   198.51.100.7/32 in it", "would   node rule: nothing from vmbr1 to the node", "would   its keys: port exposures and jump host to 16 addresses",
		"Nothing was changed",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it doesn't say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "doing") || strings.Contains(out, "SANDBOX_API_TOKEN") {
		t.Errorf("it says it did something:\n%s", out)
	}
	if _, err := os.Stat(n.log); err == nil {
		t.Error("it ran commands that change the node")
	}
}

func TestApplyIsIdempotentAndUndoTakesAllOfItAway(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.everything()
	n.must(with("--apply")...)
	made := n.everything()
	again := n.must(with("--apply")...)
	if strings.Contains(again, "doing") {
		t.Errorf("the second time it did something:\n%s", again)
	}
	if got := n.everything(); got != made {
		t.Error("the second time it changed something")
	}
	if strings.Contains(again, "SANDBOX_API_TOKEN=") {
		t.Error("it shows a token that it can't know")
	}
	n.keysAreRestricted()

	// A role that was widened and a right that was taken away: another run puts them right and touches nothing else.
	n.command("pveum", "role", "modify", "SandboxTemplate", "--privs", "VM.Audit,VM.Clone,VM.Allocate")
	n.command("pveum", "acl", "delete", "/pool/sandbox", "--tokens", "sandbox@pve!terraform", "--roles", "SandboxGuests")
	out := n.must(with("--apply")...)
	if got := strings.Count(out, "doing"); got != 2 {
		t.Errorf("of two things that drifted it mended %d:\n%s", got, out)
	}
	made = n.everything()

	shown := n.must(with("--undo")...)
	if got := n.everything(); got != made {
		t.Errorf("undo without --apply changed something:\n%s", shown)
	}
	undone := n.must(with("--undo", "--apply")...)
	if after := n.everything(); after != before {
		t.Errorf("something is left. It said:\n%s\nbefore:\n%s\nafter:\n%s", undone, before, after)
	}
	log, err := os.ReadFile(n.log)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"systemctl enable --now sandbox-nat.service", "systemctl disable --now sandbox-nat.service", "loginctl enable-linger sandbox-node", "userdel --remove sandbox-node"} {
		if !strings.Contains(string(log), want) {
			t.Errorf("%q wasn't run:\n%s", want, log)
		}
	}
}

func (n *node) command(argv ...string) {
	n.t.Helper()
	cmd := exec.CommandContext(n.t.Context(), filepath.Join(n.bin, argv[0]), argv[1:]...)
	cmd.Env = append(os.Environ(), standInURL+"="+n.lab.Endpoint(), standInKey+"="+n.lab.Token(), standInCA+"="+n.lab.CAPEM())
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

// The roles in the script are those that the provider asks for, to the privilege.
func TestRolesAreThePreflights(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("bootstrap.sh")
	if err != nil {
		t.Fatal(err)
	}
	features := append(preflight.DefaultFeatures(), preflight.TemplateFiles, preflight.Templates)
	plan := preflight.Least(preflight.Target{PoolID: "p", TemplateID: 9000, Bridges: []string{"b"}}, features, "")
	written := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^  \[([A-Za-z]+)\]='([^']*)'$`).FindAllStringSubmatch(string(script), -1) {
		written[preflight.DefaultPrefix+m[1]] = strings.Fields(m[2])
	}
	for _, r := range plan.Roles {
		if !slices.Equal(written[r.ID], r.Privileges) {
			t.Errorf("role %s is %v in the script, and must be %v", r.ID, written[r.ID], r.Privileges)
		}
		delete(written, r.ID)
	}
	if len(written) > 0 {
		t.Errorf("the script has roles that nobody needs: %v", written)
	}
}

// What it prints works: with that token, pool, bridge and ranges the preflight finds nothing missing, and a sandbox lives.
func TestWhatItPrintsIsAReadyProvider(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	out := n.must("--apply", "--storage", lab.Storage, "--jump-key", jumpKey, "--bridge", "vmbr5", "--enable-firewall", "--backup-storage", "local", "--file-storage", "local")
	// A clone needs the bridge that its template is on, too.
	n.command("pvesh", "set", "/nodes/"+n.lab.Nodes()[0]+"/lxc/9000/config", "--net0", "name=eth0,bridge=vmbr5,ip=dhcp")
	value := func(pattern string) string {
		t.Helper()
		m := regexp.MustCompile(pattern).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("it prints nothing like %s:\n%s", pattern, out)
		}
		return m[1]
	}
	if got := value(`host_key = "([^"]+)"`); got != n.lab.SSHHostKey() {
		t.Errorf("the host key is %q", got)
	}
	if got := value(`proxmox_url\s+= "([^"]+)"`); got != "https://192.0.2.10:8006/api2/json" {
		t.Errorf("Packer's address is %q", got)
	}
	client, err := pve.New(pve.Config{
		Endpoint: n.lab.Endpoint(), Token: value(`SANDBOX_API_TOKEN='([^']+)'`), TLS: pve.TLSConfig{Fingerprint: value(`fingerprint = "([^"]+)"`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	m, err := sandbox.NewManager(client, sandbox.Settings{
		Owner: "test", PoolID: value(`pool_id     = "([^"]+)"`), Storage: value(`storage     = "([^"]+)"`), Bridge: value(`bridge      = "([^"]+)"`),
		TemplateID: lab.TemplateID, Nodes: []string{value(`nodes       = \["([^"]+)"`)}, VMIDs: sandbox.VMIDRange{First: 100000, Last: 100015},
		Management: []netip.Prefix{netip.MustParsePrefix(value(`management_cidrs = \["([^"]+)"\]`))},
		Guest:      guest.Config{Username: lab.GuestUser, Auth: guest.Auth{PrivateKey: n.lab.PrivateKey()}},
	}, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen, err := m.Preflight(ctx, sandbox.PreflightSpec{Features: append(preflight.DefaultFeatures(), preflight.TemplateFiles, preflight.Templates), BackupStorage: "local", FileStorage: "local"})
	if err != nil {
		t.Fatal(err)
	}
	if missing := preflight.Missing(seen.Privileges); len(missing) > 0 || len(seen.Findings) > 0 {
		t.Errorf("the preflight misses %v and finds %+v", missing, seen.Findings)
	}
	made, err := m.Create(ctx, sandbox.Spec{Hostname: "first", WaitFor: sandbox.WaitForNone, Network: sandbox.Network{IPv4: sandbox.AddressNone}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Destroy(ctx, made.Sandbox.Ref, ""); err != nil {
		t.Error(err)
	}
}

func TestItRefusesWhatWouldEndBadly(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write(filepath.Join(n.root, "routes"), "", 0o644)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a network that isn't a /16":          {[]string{"--network", "10.77.0.0/24"}, "A.B.0.0/16"},
		"a key that is private":               {[]string{"--jump-key", "-----BEGIN"}, "no public key"},
		"a sandbox among the administrators":  {[]string{"--management", "10.77.3.4/32"}, "must not be in the management set"},
		"an unknown node":                     {[]string{"--node", "nosuch"}, "no node nosuch"},
		"an unknown option":                   {[]string{"--force"}, "unknown option"},
		"a role's name that isn't one":        {[]string{"--role-prefix", "a b"}, "can't be right"},
		"more sandboxes than sshd has places": {[]string{"--sandboxes", "5000"}, "1 to 4096"},
	} {
		out, err := n.run(append(c.args, "--apply")...)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v, it says\n%s\nwant %q", name, err, out, c.want)
		}
	}
	n.write(filepath.Join(n.root, "routes"), "10.77.0.0/16 via 192.0.2.3 dev vmbr0\n", 0o644)
	if out, err := n.run("--apply"); err == nil || !strings.Contains(out, "has a route into 10.77.0.0/16 already") {
		t.Errorf("a network that is in use: %v\n%s", err, out)
	}
}

func TestShellcheckFindsNothing(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("no shellcheck")
	}
	gate := filepath.Join(t.TempDir(), "gate")
	program, err := exec.CommandContext(t.Context(), "bash", "bootstrap.sh", "--print-gate").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gate, program, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), tool, "bootstrap.sh", gate).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
