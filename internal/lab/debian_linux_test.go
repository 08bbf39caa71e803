package lab

import (
	"bytes"
	"context"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// TestATemplateOfTheDebianImageBoots clones a template of the larger image and looks around in it.
func TestATemplateOfTheDebianImageBoots(t *testing.T) {
	t.Parallel()
	if err := machineCan(); err != nil {
		t.Skipf("this machine can't run real containers: %v", err)
	}
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		t.Skipf("this machine can't build the image: %v", err)
	}
	l, err := Start(context.Background(), Options{EngineName: EngineNS, Image: "debian-12"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	task(t, l, "POST", "/nodes/pve1/lxc/9000/clone", url.Values{"newid": {"100000"}})
	api(t, l, "PUT", "/nodes/pve1/lxc/100000/config", url.Values{"net0": {"name=eth0,bridge=vmbr0,ip=10.77.1.0/16,gw=10.77.0.1"}})
	task(t, l, "POST", "/nodes/pve1/lxc/100000/status/start", nil)
	for script, want := range map[string]string{
		"cat /etc/debian_version":                  "12.",
		"id agent && command -v apt-get ss git":    "/usr/bin/ss",
		"ip -4 addr show eth0 | grep -o 'inet .*'": "10.77.1.0/16",
	} {
		var out bytes.Buffer
		if code, err := l.Engine().Exec(t.Context(), 100000, engine.Command{Argv: []string{"bash", "-c", script}, Stdout: &out, Stderr: &out}); err != nil || code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %d %v %q", script, code, err, out.String())
		}
	}
	conn, err := l.Engine().Dial(t.Context(), "10.77.1.0:22")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	banner := make([]byte, 8)
	if _, err := conn.Read(banner); err != nil || string(banner) != "SSH-2.0-" {
		t.Errorf("its SSH server says %q, %v", banner, err)
	}
}
