package bootstrap

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
			"case \"$*\" in *is-active*) echo active ;; esac\n",
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

func TestTheGateExposesListsAndUnexposes(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for _, command := range []string{"expose 100007 8080 127.0.0.1 18080 10.77.1.7", "expose 100008 22 192.0.2.10 2222 10.77.1.8"} {
		if out, err := g.ask(command); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	socket, err := os.ReadFile(filepath.Join(g.home, ".config/systemd/user/sbx-100007-8080.socket"))
	if err != nil || !strings.Contains(string(socket), "ListenStream=127.0.0.1:18080\n") {
		t.Errorf("the socket is %s, %v", socket, err)
	}
	service, err := os.ReadFile(filepath.Join(g.home, ".config/systemd/user/sbx-100007-8080.service"))
	if err != nil || !strings.Contains(string(service), "systemd-socket-proxyd 10.77.1.7:8080\n") {
		t.Errorf("the service is %s, %v", service, err)
	}
	if out, err := g.ask("list"); err != nil || out != "sbx-100007-8080 127.0.0.1:18080 10.77.1.7:8080 active\nsbx-100008-22 192.0.2.10:2222 10.77.1.8:22 active\n" {
		t.Errorf("the list is %q, %v", out, err)
	}
	if out, err := g.ask("unexpose 100007 8080"); err != nil {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := g.ask("unexpose 100007 8080"); err != nil {
		t.Errorf("a second time: %s, %v", out, err)
	}
	if out, _ := g.ask("list"); strings.Contains(out, "100007") || !strings.Contains(out, "100008") {
		t.Errorf("then the list is %q", out)
	}
	log, _ := os.ReadFile(filepath.Join(g.home, "systemctl.log"))
	for _, want := range []string{"--user enable --quiet --now sbx-100007-8080.socket", "--user disable --quiet --now sbx-100007-8080.socket"} {
		if !strings.Contains(string(log), want) {
			t.Errorf("%q wasn't run:\n%s", want, log)
		}
	}
}

func TestTheGateKnowsNothingElse(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for _, command := range []string{
		"", "sh", "id; reboot", "list; id", "list && id", "list $(id)", "list `id`", "list\nid", "LIST",
		"expose 100007 8080 127.0.0.1 18080 192.168.1.1",     // no sandbox
		"expose 100007 8080 127.0.0.1 18080 10.77.1.7 extra", // too much
		"expose 100007 8080 127.0.0.1 80 10.77.1.7",          // a privileged port
		"expose 100007 8080 0.0.0.0 18080 10.77.1.7",         // everywhere
		"expose 100007 8080 10.77.0.1 18080 10.77.1.7",       // for the sandboxes
		"expose 100007 0 127.0.0.1 18080 10.77.1.7",          //
		"expose 100007 70000 127.0.0.1 18080 10.77.1.7",      //
		"expose ../x 8080 127.0.0.1 18080 10.77.1.7",         //
		"expose 100007 8080 127.0.0.1 18080 10.77.1.777",     //
		"expose 100007 8080 127.0.0.1 18080 10.77.1",         //
		"expose 100007 8080 localhost 18080 10.77.1.7",       //
		"expose * 8080 127.0.0.1 18080 10.77.1.7",            //
		"unexpose 100007", "unexpose ../../x 8080", "expose", //
		"expose 100007 8080 127.0.0.1 18080 10.77.1.7\nListen", //
	} {
		if out, err := g.ask(command); err == nil {
			t.Errorf("%q went: %s", command, out)
		}
	}
	if _, err := os.Stat(filepath.Join(g.home, "systemctl.log")); err == nil {
		t.Error("a refused request reached systemd")
	}
	if _, err := os.Stat(filepath.Join(g.home, ".config")); err == nil {
		t.Error("a refused request wrote files")
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
