package bootstrap

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/exposure"
)

// gate runs the program behind the node key with what a client asked for.
type gate struct {
	t                  *testing.T
	program, home, bin string
}

func newGate(t *testing.T) *gate {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	dir := t.TempDir()
	g := &gate{t: t, program: filepath.Join(dir, "gate"), home: filepath.Join(dir, "home"), bin: filepath.Join(dir, "bin")}
	text, err := exec.CommandContext(t.Context(), "bash", "bootstrap.sh", "--print-gate").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		g.program: string(text),
		filepath.Join(g.bin, "systemctl"): "#!/bin/sh\necho \"$*\" >>\"$HOME/systemctl.log\"\n" +
			"case \"$*\" in *is-active*) echo active ;; *enable*) [ ! -e \"$HOME/broken\" ] || { echo 'Job failed.' >&2; exit 1; } ;; esac\n",
		filepath.Join(g.bin, "ss"):        "#!/bin/sh\ncat \"$HOME/ports\" 2>/dev/null || true\n",
		filepath.Join(g.bin, "ip"):        "#!/bin/sh\necho \"$4 dev vmbr1 src 10.77.0.1 uid 0\"\n",
		filepath.Join(g.bin, "tailscale"): "#!/bin/sh\necho \"$*\" >>\"$HOME/tailscale.log\"\n" + `case "$*" in "status "*) printf '{\n "Self": {\n  "DNSName": "node.tail-net.ts.net.",\n' ;; "serve status"*) echo '{"TCP":{"18081":{"TCPForward":"127.0.0.1:18081"}}}' ;; esac` + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(g.home, 0o700); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *gate) ask(command string) (string, error) {
	cmd := exec.CommandContext(g.t.Context(), "sh", g.program)
	cmd.Env = []string{"PATH=" + g.bin + ":" + os.Getenv("PATH"), "HOME=" + g.home, "SSH_ORIGINAL_COMMAND=" + command}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const (
	claimA = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	claimB = "bbbbbbbbbbbbbbbbbbbbbbbb22"
)

func (g *gate) must(command string) string {
	g.t.Helper()
	out, err := g.ask(command)
	if err != nil {
		g.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

// fails asks for something that must end with a code and say something.
func (g *gate) fails(command string, code int, says string) {
	g.t.Helper()
	out, err := g.ask(command)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code || !strings.Contains(out, says) {
		g.t.Errorf("%s: %v\n%s", command, err, out)
	}
}

func (g *gate) file(name string) string {
	content, _ := os.ReadFile(filepath.Join(g.home, name)) // "" where there is none
	return string(content)
}

func (g *gate) put(name, content string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.home, name), []byte(content), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

const unitFolder = ".config/systemd/user/"

func TestTheGateExposesListsAndUnexposes(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.put("ports", "LISTEN 0 128 0.0.0.0:22 0.0.0.0:*\nLISTEN 0 128 [::]:8006 [::]:*\n")
	if out := g.must("expose 100007 8080 127.0.0.1 18080 10.77.1.7 " + claimA + " direct"); out != "sbx-100007-8080 127.0.0.1:18080 10.77.1.7:8080 active "+claimA+" direct\n" {
		t.Errorf("it says %q", out)
	}
	g.must("expose 100008 22 192.0.2.10 2222 10.77.1.8 " + claimB + " direct")
	if socket := g.file(unitFolder + "sbx-100007-8080.socket"); !strings.Contains(socket, "ListenStream=127.0.0.1:18080\n") || !strings.Contains(socket, "Claim="+claimA+"\n") {
		t.Errorf("the socket is %s", socket)
	}
	if service := g.file(unitFolder + "sbx-100007-8080.service"); !strings.Contains(service, "systemd-socket-proxyd 10.77.1.7:8080\n") {
		t.Errorf("the service is %s", service)
	}
	if out := g.must("list"); out != "sbx-100007-8080 127.0.0.1:18080 10.77.1.7:8080 active "+claimA+" direct\nsbx-100008-22 192.0.2.10:2222 10.77.1.8:22 active "+claimB+" direct\n" {
		t.Errorf("the list is %q", out)
	}
	if out := g.must("ports"); out != "0.0.0.0:22\n[::]:8006\n" {
		t.Errorf("the ports are %q", out)
	}
	if out := g.must("source 10.77.1.7"); out != "10.77.0.1\n" {
		t.Errorf("the node's address is %q", out)
	}
	g.fails("source 192.168.1.1", 64, "no sandbox's address")
	g.fails("unexpose 100007 8080 "+claimB, 73, "another sandbox's")
	g.must("unexpose 100007 8080 " + claimA)
	g.must("unexpose 100007 8080 " + claimA) // a second time
	g.fails("show 100007 8080", 66, "no sbx-100007-8080")
	if out := g.must("list"); strings.Contains(out, "100007") || !strings.Contains(out, "100008") {
		t.Errorf("then the list is %q", out)
	}
	log := g.file("systemctl.log")
	for _, want := range []string{"--user enable --quiet --now sbx-100007-8080.socket", "--user disable --quiet --now sbx-100007-8080.socket"} {
		if !strings.Contains(log, want) {
			t.Errorf("%q wasn't run:\n%s", want, log)
		}
	}
}

func TestTheGateGivesNoPortTwiceAndTakesNobodys(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.put("ports", "LISTEN 0 128 0.0.0.0:18099 0.0.0.0:*\n")
	g.must("expose 100007 8080 127.0.0.1 18080 10.77.1.7 " + claimA + " direct")
	g.fails("expose 100008 80 127.0.0.1 18080 10.77.1.8 "+claimB+" direct", 75, "127.0.0.1:18080 is taken by sbx-100007-8080")
	g.fails("expose 100008 80 127.0.0.1 18099 10.77.1.8 "+claimB+" direct", 75, "taken by another program (0.0.0.0:18099)")
	g.fails("expose 100007 8080 127.0.0.1 18081 10.77.1.9 "+claimB+" direct", 73, "another sandbox's")
	g.must("expose 100007 8080 127.0.0.1 18082 10.77.1.7 " + claimA + " direct") // the same exposure on another port
	if out := g.must("list"); out != "sbx-100007-8080 127.0.0.1:18082 10.77.1.7:8080 active "+claimA+" direct\n" {
		t.Errorf("the list is %q", out)
	}
	// What systemd doesn't start leaves nothing behind.
	g.put("broken", "")
	g.fails("expose 100009 80 192.0.2.99 18083 10.77.1.9 "+claimB+" direct", 69, "Job failed.")
	if left := g.file(unitFolder+"sbx-100009-80.socket") + g.file(unitFolder+"sbx-100009-80.service"); left != "" {
		t.Errorf("left is %s", left)
	}
}

func TestTheGatePublishesByTailscale(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	if out := g.must("expose 100007 8080 127.0.0.1 18081 10.77.1.7 " + claimA + " tailscale"); !strings.HasSuffix(out, " active "+claimA+" tailscale\n") {
		t.Errorf("it says %q", out)
	}
	if out := g.must("expose 100007 81 127.0.0.1 18082 10.77.1.7 " + claimA + " tailscale"); !strings.Contains(out, " unpublished ") {
		t.Errorf("what isn't among the served ones is %q", out)
	}
	if out := g.must("tailnet"); out != "node.tail-net.ts.net\n" {
		t.Errorf("the name is %q", out)
	}
	g.must("unexpose 100007 8080 " + claimA)
	for _, want := range []string{"serve --bg --tcp=18081 tcp://127.0.0.1:18081", "serve --tcp=18081 off"} {
		if !strings.Contains(g.file("tailscale.log"), want) {
			t.Errorf("%q wasn't run", want)
		}
	}
}

func TestTheGateAsksTheTarget(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	show := fmt.Sprintf("show 100007 %d", port)
	g.must(fmt.Sprintf("expose 100007 %d 127.0.0.1 18080 10.77.1.7 %s direct", port, claimA))
	service := filepath.Join(g.home, unitFolder, fmt.Sprintf("sbx-100007-%d.service", port))
	content, err := os.ReadFile(service)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(service, bytes.ReplaceAll(content, []byte("10.77.1.7:"), []byte("127.0.0.1:")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := g.must(show); !strings.HasSuffix(out, " direct open\n") {
		t.Errorf("with a listener it says %q", out)
	}
	_ = listener.Close()
	if out := g.must(show); !strings.HasSuffix(out, " direct refused\n") {
		t.Errorf("without it says %q", out)
	}
}

func TestTheGateKnowsNothingElse(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	const rest = " " + claimA + " direct"
	for _, command := range []string{
		"", "sh", "id; reboot", "list; id", "list && id", "list $(id)", "list `id`", "list\nid", "LIST", "list 100007", "ports x",
		"expose 100007 8080 127.0.0.1 18080 192.168.1.1" + rest,     // no sandbox
		"expose 100007 8080 127.0.0.1 18080 10.77.1.7 extra" + rest, // too much
		"expose 100007 8080 127.0.0.1 18080 10.77.1.7",              // too little
		"expose 100007 8080 127.0.0.1 80 10.77.1.7" + rest,          // a privileged port
		"expose 100007 8080 0.0.0.0 18080 10.77.1.7" + rest,         // everywhere
		"expose 100007 8080 0.0.0.1 18080 10.77.1.7" + rest,         //
		"expose 100007 8080 010.1.1.1 18080 10.77.1.7" + rest,       // read as octal by some
		"expose 100007 8080 10.77.0.1 18080 10.77.1.7" + rest,       // for the sandboxes
		"expose 100007 0 127.0.0.1 18080 10.77.1.7" + rest,          //
		"expose 100007 70000 127.0.0.1 18080 10.77.1.7" + rest,      //
		"expose ../x 8080 127.0.0.1 18080 10.77.1.7" + rest,         //
		"expose 100007 8080 127.0.0.1 18080 10.77.1.777" + rest,     //
		"expose 100007 8080 127.0.0.1 18080 10.77.1" + rest,         //
		"expose 100007 8080 localhost 18080 10.77.1.7" + rest,       //
		"expose * 8080 127.0.0.1 18080 10.77.1.7" + rest,            //
		"expose 100007 8080 127.0.0.1 18080 10.77.1.7 AAAA direct",
		"expose 100007 8080 127.0.0.1 18080 10.77.1.7 " + claimA[1:] + " direct",
		"expose 100007 8080 127.0.0.1 18080 10.77.1.7 " + claimA + " funnel",
		"expose 100007 8080 192.0.2.10 18080 10.77.1.7 " + claimA + " tailscale",
		"unexpose 100007 8080", "unexpose ../../x 8080 " + claimA, "expose", "show 100007", "show ../x 8080",
		"expose 100007 8080 127.0.0.1 18080 10.77.1.7" + rest + "\nListen",
	} {
		if out, err := g.ask(command); err == nil {
			t.Errorf("%q went: %s", command, out)
		}
	}
	if g.file("systemctl.log")+g.file("tailscale.log") != "" {
		t.Error("a refused request reached systemd")
	}
	if _, err := os.Stat(filepath.Join(g.home, ".config")); err == nil {
		t.Error("a refused request wrote files")
	}
}

// The script carries the program that the provider runs where it logs in as root.
func TestTheGateIsTheProvidersProgram(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	text, err := os.ReadFile(g.program)
	if err != nil {
		t.Fatal(err)
	}
	if want := exposure.Gate("10.77"); string(text) != want {
		t.Error("bootstrap.sh's program isn't internal/sandbox/exposure/gate.sh: copy it into gate_text")
	}
}

// keysAreRestricted looks at what sshd will read: the forced command, and each address that the jump key may open, and nothing else.
func (n *node) keysAreRestricted() {
	n.t.Helper()
	content, err := os.ReadFile(filepath.Join(n.root, "var/lib/sandbox-node/.ssh/authorized_keys"))
	if err != nil {
		n.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	if len(lines) != 3 {
		n.t.Fatalf("the file is\n%s", content)
	}
	if lines[1] != `restrict,command="/usr/local/lib/sandbox-node/gate" `+nodeKey {
		n.t.Errorf("the node key's line is %s", lines[1])
	}
	jump := lines[2]
	if !strings.HasPrefix(jump, "restrict,port-forwarding,") || strings.Count(jump, "permitopen=") != 16 ||
		!strings.Contains(jump, `permitopen="10.77.1.0:22",`) || !strings.Contains(jump, `permitopen="10.77.1.15:22",`) || !strings.Contains(jump, `command="/usr/sbin/nologin"`) {
		n.t.Errorf("the jump key's line is %s", jump)
	}
}
