// Package packertest runs the real Packer with this plugin, installed as `packer init` would, against a lab.
package packertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
)

// Version is that of the plugin which the tests build: a release, for which ">= 0.1.0" holds.
const Version = "0.1.0"

// Address is the plugin's, as required_plugins names it.
const Address = "github.com/agentsandbox/sandbox"

// Root is the repository, found from the test's folder upwards.
func Root() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	for {
		if exists(filepath.Join(dir, "GNUmakefile")) {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "."
		}
		dir = up
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// binary is where a tool of the repository is, or the PATH's; the test is skipped without it, and fails in CI.
func binary(t testing.TB, name string) string {
	t.Helper()
	if path := filepath.Join(Root(), ".cache", "bin", name); executable(path) {
		return path
	}
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("there is no %s: make %s builds it", name, name)
		}
		t.Skipf("there is no %s: make %s builds it", name, name)
	}
	return path
}

func executable(path string) bool {
	in, err := os.Stat(path)
	return err == nil && in.Mode()&0o111 != 0
}

// Packer is the command's path.
func Packer(t testing.TB) string { return binary(t, "packer") }

// SDC is packer-sdc's path.
func SDC(t testing.TB) string { return binary(t, "packer-sdc") }

// Terraform is the command line that applies what was built: the user's Terraform or OpenTofu, else the repository's.
func Terraform(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("TF_ACC_TERRAFORM_PATH"); path != "" {
		return path
	}
	for _, name := range []string{"terraform", "tofu"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return binary(t, "tofu")
}

// builtIn is the folder of what Plugin has built.
var builtIn string

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "packer-plugin-sandbox-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	module := "github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox"
	path := filepath.Join(dir, "packer-plugin-sandbox")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-X "+module+"/version.VersionPrerelease= -X "+module+"/version.Version="+Version, "-o", path, ".")
	cmd.Dir = filepath.Join(Root(), "packer", "packer-plugin-sandbox")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the plugin: %w\n%s", err, out)
	}
	return path, nil
})

// Plugin is the plugin's binary, built once per test program.
func Plugin(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Clean removes what Plugin has built; for TestMain.
func Clean() {
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
}

// CLI is Packer in a folder of its own.
type CLI struct {
	t      testing.TB
	Dir    string
	packer string
	env    []string
}

// New makes a folder with the plugin in the layout that `packer init` makes, checksum and all.
func New(t testing.TB) *CLI {
	t.Helper()
	c := &CLI{t: t, Dir: t.TempDir(), packer: Packer(t)}
	plugins := filepath.Join(c.Dir, "plugins")
	where := filepath.Join(plugins, filepath.FromSlash(Address))
	name := fmt.Sprintf("packer-plugin-sandbox_v%s_x5.0_%s_%s", Version, runtime.GOOS, runtime.GOARCH)
	if err := os.MkdirAll(where, 0o755); err != nil { //nolint:gosec // a test's folder
		t.Fatal(err)
	}
	content, err := os.ReadFile(Plugin(t))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	err = errors.Join(os.Link(Plugin(t), filepath.Join(where, name)),
		os.WriteFile(filepath.Join(where, name+"_SHA256SUM"), []byte(hex.EncodeToString(sum[:])), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	c.env = append(clean(os.Environ()), "CHECKPOINT_DISABLE=1", "PACKER_PLUGIN_PATH="+plugins, "PACKER_CONFIG_DIR="+filepath.Join(c.Dir, "config"),
		"PACKER_CACHE_DIR="+filepath.Join(c.Dir, "cache"), "PACKER_NO_COLOR=1", "TMPDIR="+c.Dir)
	return c
}

// clean is the environment without what would change a build.
func clean(env []string) []string {
	var out []string
	for _, kv := range env {
		if !strings.HasPrefix(kv, "SANDBOX_") && !strings.HasPrefix(kv, "PROXMOX_") && !strings.HasPrefix(kv, "PACKER_") && !strings.HasPrefix(kv, "PKR_") {
			out = append(out, kv)
		}
	}
	return out
}

// Lab adds the variables of a lab, as a user would have them from its environment file.
func (c *CLI) Lab(l *lab.Lab) *CLI {
	for name, value := range l.Variables() {
		c.Setenv(name, value)
	}
	return c
}

// Setenv sets a variable.
func (c *CLI) Setenv(name, value string) { c.env = append(c.env, name+"="+value) }

// Write writes a file of the configuration.
func (c *CLI) Write(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.Dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil { //nolint:gosec // a test's folder
		c.t.Fatal(err)
	}
}

// Result is how a command ended.
type Result struct {
	Code int
	Out  string // both streams
}

// Command prepares a run of Packer.
func (c *CLI) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.packer, args...)
	cmd.Dir, cmd.Env = c.Dir, c.env
	return cmd
}

// Run runs Packer.
func (c *CLI) Run(args ...string) Result {
	c.t.Helper()
	var out bytes.Buffer
	cmd := c.Command(c.t.Context(), args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatalf("packer %v: %v", args, err)
	}
	return Result{Code: cmd.ProcessState.ExitCode(), Out: out.String()}
}

// Must runs Packer, which must succeed.
func (c *CLI) Must(args ...string) string {
	c.t.Helper()
	r := c.Run(args...)
	if r.Code != 0 {
		c.t.Fatalf("packer %v: exit status %d\n%s", args, r.Code, r.Out)
	}
	return r.Out
}

// Fails runs Packer, which must fail and say each of the texts.
func (c *CLI) Fails(texts []string, args ...string) string {
	c.t.Helper()
	r := c.Run(args...)
	if r.Code == 0 {
		c.t.Fatalf("packer %v succeeded\n%s", args, r.Out)
	}
	flat := strings.Join(strings.Fields(r.Out), " ")
	for _, text := range texts {
		if !strings.Contains(flat, strings.Join(strings.Fields(text), " ")) {
			c.t.Errorf("packer %v doesn't say %q:\n%s", args, text, r.Out)
		}
	}
	return r.Out
}

// StartLab starts a lab for a test.
func StartLab(t testing.TB, o lab.Options) *lab.Lab {
	t.Helper()
	l, err := lab.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close the lab: %v", err)
		}
	})
	return l
}
