package provider_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

// commandLine runs Terraform with the provider of this checkout as a process of its own, as a user does: what happens
// on a signal can't be seen in the test's own process.
type commandLine struct {
	path, dir string
	env       []string
}

func newCommandLine(t *testing.T, config string) *commandLine {
	t.Helper()
	cli := acctest.CommandLine(t)
	bin, dir := t.TempDir(), t.TempDir()
	if _, err := tfcli.BuildProvider(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	rc, err := cli.WriteConfig(bin, bin)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return &commandLine{cli.Path, dir, append(os.Environ(), "TF_CLI_CONFIG_FILE="+rc, "CHECKPOINT_DISABLE=1", "TF_REATTACH_PROVIDERS=")}
}

func (c *commandLine) start(t *testing.T, arguments ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(c.path, arguments...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &said
}

func (c *commandLine) run(t *testing.T, arguments ...string) string {
	t.Helper()
	cmd, said := c.start(t, arguments...)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %v\n%s", arguments, err, said)
	}
	return said.String()
}

// containers are the claims of the state, by resource index, and whether each is tainted.
func (c *commandLine) containers(t *testing.T) (claims map[string]string, tainted int) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(c.dir, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	var state struct {
		Resources []struct {
			Instances []struct {
				IndexKey   any    `json:"index_key"`
				Status     string `json:"status"`
				Attributes struct {
					Hostname string `json:"hostname"`
					Claim    string `json:"claim"`
				} `json:"attributes"`
			} `json:"instances"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(raw, &state); err != nil {
		t.Fatal(err)
	}
	claims = map[string]string{}
	for _, r := range state.Resources {
		for _, i := range r.Instances {
			claims[i.Attributes.Hostname] = i.Attributes.Claim
			if i.Status == "tainted" {
				tainted++
			}
		}
	}
	return claims, tainted
}

func TestAnInterruptedApplyOfTenIsFinishedInPlace(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "is interrupted at a chosen request")
	if runtime.GOOS == "windows" {
		t.Skip("no interrupt can be sent there")
	}
	env := acctest.New(t)
	c := newCommandLine(t, `terraform {
  required_providers {
    sandbox = { source = "`+tfcli.Source+`" }
  }
}
`+env.ProviderConfig()+`
resource "sandbox_container" "agent" {
  count    = 10
  hostname = "agent-${count.index}"
}
`)
	// The fourth start is when somebody loses patience: some are done, some are on their way, some aren't made yet.
	id, err := env.Lab.Control.Inject(t.Context(), control.Fault{Method: "POST", Pattern: `/status/start$`, Nth: 4, Kind: control.Hold})
	if err != nil {
		t.Fatal(err)
	}
	cmd, said := c.start(t, "apply", "-auto-approve", "-no-color")
	if _, err := env.Lab.Control.WaitHeld(t.Context(), id, 1, time.Minute); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("%v\n%s", err, said)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := env.Lab.Control.Release(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it ends with an error, as an interrupted apply does

	before, tainted := c.containers(t)
	if tainted > 0 {
		t.Errorf("%d are tainted\n%s", tainted, said)
	}
	dump, err := env.Lab.Control.Dump(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	existing := 0
	for _, g := range dump.Guests {
		if g.VMID >= env.VMIDs.First && g.VMID <= env.VMIDs.Last {
			existing++
		}
	}
	if existing == 0 || existing == 10 || existing != len(before) {
		t.Fatalf("%d exist, the state holds %d\n%s", existing, len(before), said)
	}

	finished := c.run(t, "apply", "-auto-approve", "-no-color")
	if strings.Contains(finished, "must be replaced") {
		t.Errorf("the next apply replaces:\n%s", finished)
	}
	after, _ := c.containers(t)
	for hostname, claim := range before {
		if after[hostname] != claim {
			t.Errorf("%s was replaced", hostname)
		}
	}
	if len(after) != 10 {
		t.Errorf("there are %d", len(after))
	}
	if again := c.run(t, "plan", "-no-color"); !strings.Contains(again, "No changes") {
		t.Errorf("the plan after that:\n%s", again)
	}
	c.run(t, "destroy", "-auto-approve", "-no-color")
}
