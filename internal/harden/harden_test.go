package harden_test

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/harden"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"
)

// pretend answers each script as a test says, and remembers them.
type pretend struct {
	scripts []string
	answer  func(n int) (remote.Result, error)
}

func (p *pretend) Run(_ context.Context, s remote.Script) (remote.Result, error) {
	p.scripts = append(p.scripts, s.Text)
	if p.answer == nil {
		return remote.Result{}, nil
	}
	return p.answer(len(p.scripts))
}

func TestEveryScriptIsPOSIXShell(t *testing.T) {
	t.Parallel()
	p := &pretend{}
	for _, profile := range audit.Profiles() {
		if _, err := harden.Apply(t.Context(), p, harden.Options{Profile: profile, Seal: true, ProviderKeys: []string{providerPublicKey + " it's a \"comment\" $(reboot)"}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.scripts) != 3*len(harden.Steps()) {
		t.Fatalf("%d scripts", len(p.scripts))
	}
	for _, s := range p.scripts {
		cmd := exec.CommandContext(t.Context(), "sh", "-n")
		cmd.Stdin = strings.NewReader(s)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s\n%.200s", err, out, s)
		}
		if strings.Contains(s, "#include") {
			t.Errorf("a file is not in its place: %.200s", s)
		}
	}
}

const providerPublicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEmGpyHSqQEmHb3yQ6TQYBXzJpCZWmZw3m2N5nX5Oa1V"

func TestAStepThatFailsIsNamedAndEndsTheRun(t *testing.T) {
	t.Parallel()
	for n, step := range harden.Steps() {
		p := &pretend{answer: func(k int) (remote.Result, error) {
			if k == n+1 {
				return remote.Result{ExitCode: 1, Stdout: []byte("changed: one\n"), Stderr: []byte("first\nthe reason\n")}, nil
			}
			return remote.Result{Stdout: []byte("changed: one\nnoise\nchanged: two\n")}, nil
		}}
		res, err := harden.Apply(t.Context(), p, harden.Options{Seal: true})
		var failed *harden.StepError
		if !errors.As(err, &failed) || failed.Step.ID != step.ID || !strings.Contains(err.Error(), "the reason") {
			t.Errorf("%s: %v", step.ID, err)
		}
		if len(p.scripts) != n+1 || res.Changes() != 2*n+1 {
			t.Errorf("%s: %d scripts ran, %d changes", step.ID, len(p.scripts), res.Changes())
		}
	}
	lost := errors.New("the connection was lost")
	_, err := harden.Apply(t.Context(), &pretend{answer: func(int) (remote.Result, error) { return remote.Result{}, lost }}, harden.Options{})
	if !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
}

func TestWhatRunsIsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	var ids []string
	collect := func(id, _ string) { ids = append(ids, id) }
	run := func(f func(context.Context, remote.Runner, harden.Options) (harden.Result, error), o harden.Options) []string {
		ids = nil
		o.Step = collect
		if _, err := f(t.Context(), &pretend{}, o); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if got := run(harden.Apply, harden.Options{}); slices.Contains(got, "identity") || !slices.Contains(got, "packages") {
		t.Errorf("Apply ran %v", got)
	}
	if got := run(harden.Apply, harden.Options{SkipPackages: true}); slices.Contains(got, "packages") {
		t.Errorf("Apply without packages ran %v", got)
	}
	if got := run(harden.Apply, harden.Options{Seal: true}); got[len(got)-1] != "identity" {
		t.Errorf("the identity isn't taken last: %v", got)
	}
	if got := run(harden.Seal, harden.Options{}); !slices.Equal(got, []string{"cleanup", "identity"}) {
		t.Errorf("Seal ran %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := &pretend{}
	if _, err := harden.Apply(ctx, p, harden.Options{}); !errors.Is(err, context.Canceled) || len(p.scripts) > 0 {
		t.Errorf("after the end: %v, %d scripts", err, len(p.scripts))
	}
}

func TestOptionsThatCantBeRightAreAllNamed(t *testing.T) {
	t.Parallel()
	err := harden.Options{Profile: "loose", AgentUser: "root", AgentUID: 12, TasksMax: 1, ProviderKeys: []string{"not a key", providerPublicKey + "\n" + providerPublicKey}}.Check()
	for _, want := range []string{`profile "loose"`, `agent user "root"`, "agent uid 12", "tasks max 1", "provider key 1", "provider key 2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if err := (harden.Options{}).Check(); err != nil {
		t.Error(err)
	}
}

// Each check of the inside that a change of the system can mend has a step that mends it.
func TestEveryCheckHasItsStep(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, c := range audit.Checks() {
		known[c.ID] = true
	}
	mended := map[string]bool{}
	for _, s := range harden.Steps() {
		for _, id := range s.Checks {
			mended[id] = true
			if !known[id] {
				t.Errorf("step %s is there for %s, which is no check", s.ID, id)
			}
		}
	}
	// The container's own, the agents' and the template's, and secrets, which must be revoked, not only removed.
	others := []string{"G13.2", "G16", "G17.2", "G19", "G20"}
	for _, c := range audit.Checks() {
		if c.Part == audit.PartGuest && !mended[c.ID] && !slices.Contains(others, c.ID) {
			t.Errorf("no step is there for %s", c.ID)
		}
	}
}
