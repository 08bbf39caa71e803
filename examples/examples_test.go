// Package examples holds configurations that people start from. This test is why they can: each is applied, planned
// again and destroyed, by the real command line and the real binary, on a lab of its own or on the server that
// SANDBOX_ACC_ENDPOINT names.
package examples

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

// expectation is what an example's expect.json may say, where the rule "nothing is left to do" doesn't hold.
type expectation struct {
	Why      string            `json:"why"`      // for the reader; required
	Replan   map[string]string `json:"replan"`   // what the second plan shows, by address: "update", "delete,create", …
	Settles  bool              `json:"settles"`  // applied once more, nothing is left to do
	Requires []acctest.Feature `json:"requires"` // what the command line must have
	NodeSSH  bool              `json:"node_ssh"` // it is told to nodes over SSH

	Privileges map[string][]string `json:"privileges"` // what a real server's token needs beyond CONTRIBUTING.md's role, by path
}

func TestExamples(t *testing.T) {
	t.Parallel()
	mains, err := filepath.Glob("*/main.tf")
	if err != nil || len(mains) == 0 {
		t.Fatalf("no example was found (%v)", err)
	}
	for _, main := range mains {
		folder := filepath.Dir(main)
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			want := readExpectation(t, folder)
			for _, feature := range want.Requires {
				acctest.SkipUnless(t, feature)
			}
			applyPlanDestroy(t, folder, want)
		})
	}
}

func applyPlanDestroy(t *testing.T, folder string, want expectation) {
	ctx := t.Context()
	env := acctest.New(t)
	acctest.NeedsFirewall(t, env) // what people start from is filtered
	for path, privileges := range want.Privileges {
		acctest.NeedsPrivilege(t, env, path, privileges...)
	}
	variables := env.Variables()
	if want.NodeSSH {
		maps.Copy(variables, env.NodeVariables(t))
	}
	workspace, err := acctest.CommandLine(t).NewWorkspace(tfcli.WorkspaceOptions{
		Config:      folder,
		Dir:         t.TempDir(),
		ProviderDir: providerDir(t),
		Environment: variables,
	})
	if err != nil {
		t.Fatal(err)
	}

	destroyed := false
	destroy := func(ctx context.Context) error { return workspace.Destroy(ctx) }
	t.Cleanup(func() {
		if !destroyed { // a failed test still tidies up the way a user would
			if err := destroy(context.WithoutCancel(ctx)); err != nil {
				t.Log("destroy after a failure:", err)
			}
		}
	})

	if err := workspace.Apply(ctx); err != nil {
		t.Fatalf("apply: %v", err)
	}
	changes, err := workspace.Changes(ctx)
	if err != nil {
		t.Fatalf("second plan: %v", err)
	}
	if !maps.Equal(changes.Actions(), want.Replan) {
		t.Errorf("second plan: %s; expected %v", changes, want.Replan)
	}
	if want.Settles {
		applyAgain(t, workspace)
	}
	if err := destroy(ctx); err != nil {
		t.Fatalf("destroy: %v", err)
	}
	destroyed = true
}

func applyAgain(t *testing.T, workspace *tfcli.Workspace) {
	t.Helper()
	if err := workspace.Apply(t.Context()); err != nil {
		t.Fatalf("second apply: %v", err)
	}
	changes, err := workspace.Changes(t.Context())
	if err != nil {
		t.Fatalf("third plan: %v", err)
	}
	if len(changes) > 0 {
		t.Errorf("third plan: %s; nothing was expected", changes)
	}
}

func readExpectation(t *testing.T, folder string) expectation {
	t.Helper()
	var want expectation
	content, err := os.ReadFile(filepath.Join(folder, "expect.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return want
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &want); err != nil {
		t.Fatalf("%s/expect.json: %v", folder, err)
	}
	if want.Why == "" {
		t.Fatalf("%s/expect.json says no why", folder)
	}
	return want
}

// TestMain gives all tests one build of the provider.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sandbox-provider-")
	if err != nil {
		panic(err)
	}
	buildProvider = sync.OnceValue(func() error {
		_, err := tfcli.BuildProvider(context.Background(), dir)
		return err
	})
	builtProvider = dir
	code := m.Run()
	_ = os.RemoveAll(dir) // temporary; the tests' result counts
	os.Exit(code)
}

var (
	buildProvider func() error
	builtProvider string
)

func providerDir(t *testing.T) string {
	t.Helper()
	if err := buildProvider(); err != nil {
		t.Fatal(err)
	}
	return builtProvider
}
