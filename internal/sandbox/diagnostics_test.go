package sandbox_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

func TestDiagnosticsBundleOneSandboxWithoutSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := spec("web-1")
	s.Description = "for the demo, password=hunter2"
	made := w.create(p, s)
	if _, err := p.WriteFile(w.context(), sandbox.Prior{Ref: made.Ref}, sandbox.File{
		Path: "/var/log/syslog", Content: strings.NewReader("old line\nagent: started\nagent: API_TOKEN=abcdef0123456789 loaded\n"), Mode: 0o644,
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.lab.Control().ChangeGuest(w.context(), control.Guest{VMID: made.VMID, Set: map[string]string{"env": "KEY=topsecretvalue"}}); err != nil {
		t.Fatal(err)
	}
	w.typed(fmt.Sprintf("pvesh create /nodes/%s/lxc/%d/firewall/rules --type in --action ACCEPT --proto tcp --dport 22 --enable 1 --comment ssh", made.Node, made.VMID))
	w.typed(fmt.Sprintf("pvesh create /nodes/%s/lxc/%d/snapshot --snapname vm1 --description x", made.Node, made.VMID))
	w.settle()

	d, err := p.Diagnose(w.context(), sandbox.Prior{Ref: sandbox.Ref{VMID: made.VMID}}, sandbox.DiagnosticsSpec{JournalLines: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Unavailable) > 0 {
		t.Errorf("parts are missing: %v", d.Unavailable)
	}
	if d.Hostname != "web-1" || d.Status != sandbox.StatusRunning || d.Config["net0"] == "" || d.Claim != made.Claim {
		t.Errorf("got %+v", d)
	}
	if want := []string{"agent: started", "agent: API_TOKEN=[redacted] loaded"}; !slices.Equal(d.Journal, want) {
		t.Errorf("the journal is %q", d.Journal)
	}
	if !slices.ContainsFunc(d.Tasks, func(k sandbox.DiagnosticsTask) bool {
		return k.Type == "vzstart" && k.Status == "OK" && !k.Ended.IsZero()
	}) {
		t.Errorf("the tasks are %+v", d.Tasks)
	}
	if f := d.Firewall; f.Guest == nil || f.Datacenter == nil || f.Node == nil || !slices.Contains(f.Rules, "IN ACCEPT -p tcp -dport 22 # ssh") {
		t.Errorf("the firewall is %+v", f)
	}
	whole, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter2", "abcdef0123456789", "topsecretvalue", strings.SplitN(w.lab.Token(), "=", 2)[1]} {
		if strings.Contains(string(whole), secret) {
			t.Errorf("the bundle holds %q:\n%s", secret, whole)
		}
	}
}

// When something is wrong, some of it can't be had: the rest is what the bundle is for.
func TestDiagnosticsGoOnWithoutWhatCanNotBeHad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	token := w.newToken("sandbox@pve", "terraform")
	p := w.process(as(token), inPool(lab.Pool))
	for _, line := range w.preflight(p, sandbox.PreflightSpec{Features: nil}).Commands {
		w.typed(line)
	}
	s := spec("web-1")
	s.Started = false
	made := w.create(p, s)
	if err := w.lab.Control().FailTask(w.context(), control.TaskFault{Type: "vzstart", Exit: "startup for container failed"}); err != nil {
		t.Fatal(err)
	}
	own := w.root()
	own.Token = token
	if err := own.Line(w.context(), fmt.Sprintf("pvesh create /nodes/%s/lxc/%d/status/start", made.Node, made.VMID), &strings.Builder{}); err != nil {
		t.Fatal(err)
	}
	w.settle()

	d, err := p.Diagnose(w.context(), sandbox.Prior{Ref: made.Ref}, sandbox.DiagnosticsSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(d.Unavailable["journal"], "not running") {
		t.Errorf("the journal of a stopped container is missing because %q", d.Unavailable["journal"])
	}
	// This token may not read the node's firewall.
	if !strings.Contains(d.Unavailable["node_firewall"], "Sys.Audit") || d.Firewall.Node != nil || d.Firewall.Datacenter == nil {
		t.Errorf("firewall %+v, unavailable %v", d.Firewall, d.Unavailable)
	}
	if !slices.ContainsFunc(d.Tasks, func(k sandbox.DiagnosticsTask) bool {
		return k.Type == "vzstart" && strings.Contains(k.Status, "startup for container failed") && len(k.Log) > 0
	}) {
		t.Errorf("the failed start isn't among the tasks with its log: %+v", d.Tasks)
	}
	if d.Config["hostname"] != "web-1" {
		t.Errorf("the configuration is %v", d.Config)
	}
}

func TestDiagnosticsAreForOnesOwnSandboxes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	_, err := w.process().Diagnose(w.context(), sandbox.Prior{Ref: sandbox.Ref{VMID: lab.TemplateID}}, sandbox.DiagnosticsSpec{})
	if sandbox.CodeOf(err) != "SBX302" {
		t.Errorf("a stranger's guest: %v", err)
	}
}
