// Package examples runs the configurations of examples/packer, as people start from them.
package examples

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/internal/packertest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	packertest.Clean()
	os.Exit(code)
}

// debian is a template file that is a whole Debian on real containers.
const debian = "debian-12-standard_12.12-1_amd64.tar.zst"

// example copies one into Packer's folder, with the variables that a lab needs.
func example(t *testing.T, c *packertest.CLI, l *lab.Lab, name string, variables map[string]any) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(packertest.Root(), "examples", "packer", name, "*.pkr.hcl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("example %s: %v", name, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c.Write(filepath.Base(file), string(text))
	}
	all := map[string]any{"provider_public_keys": []string{strings.TrimSpace(l.PublicKey())}, "os_template": "local:vztmpl/" + debian}
	for k, v := range variables {
		all[k] = v
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	c.Write("lab.auto.pkrvars.json", string(text))
}

// realLab is a lab with real containers: what hardens and audits runs in a real Debian.
func realLab(t *testing.T) *lab.Lab {
	t.Helper()
	if err := lab.CheckEngine(lab.EngineNS); err != nil {
		t.Skipf("no real containers on this machine: %v", err)
	}
	return packertest.StartLab(t, lab.Options{EngineName: lab.EngineNS, TemplateFiles: []string{debian}})
}

var artifact = regexp.MustCompile(`Template (\d+) \((\w+), build \w+\) on node pve1, audit grade (A\+|[A-F]) \((\d+)\)`)

func TestTheMinimalTemplateIsBuiltAndCloned(t *testing.T) {
	t.Parallel()
	l := realLab(t)
	c := packertest.New(t).Lab(l)
	example(t, c, l, "minimal", map[string]any{"skip_packages": true}) // a lab's guests reach no package mirror
	c.Must("init", ".")
	c.Must("validate", ".")
	out := c.Must("build", ".")
	t.Log(out)
	found := artifact.FindStringSubmatch(out)
	if found == nil || found[2] != "minimal" || !strings.HasPrefix(found[3], "A") {
		t.Fatal("the template's grade is not A or better")
	}
	fleet(t, l, found[1])
}

// fleet applies examples/fleet on the template, as small as it gets, and destroys it.
func fleet(t *testing.T, l *lab.Lab, template string) {
	t.Helper()
	dir := t.TempDir()
	main, err := os.ReadFile(filepath.Join(packertest.Root(), "examples", "fleet", "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("main.tf", string(main))
	write("cli.tfrc", fmt.Sprintf(`provider_installation {
  dev_overrides {
    "registry.terraform.io/agentsandbox/sandbox" = %[1]q
    "registry.opentofu.org/agentsandbox/sandbox" = %[1]q
  }
  direct {}
}
`, dir))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "terraform-provider-sandbox"+exe()), "./provider/terraform-provider-sandbox")
	build.Dir = packertest.Root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the provider: %v\n%s", err, out)
	}
	terraform := packertest.Terraform(t)
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), terraform, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(dir, "cli.tfrc"), "CHECKPOINT_DISABLE=1")
		for name, value := range l.Variables() {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		cmd.Env = append(cmd.Env, "SANDBOX_TEMPLATE_ID="+template)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("apply", "-auto-approve", "-no-color", "-var", "size=2")
	if out := run("plan", "-no-color", "-var", "size=2"); !strings.Contains(out, "No changes") {
		t.Errorf("the second plan says\n%s", out)
	}
	run("destroy", "-auto-approve", "-no-color", "-var", "size=2")
}

func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

func TestTheDockerTemplateIsBuiltByRoot(t *testing.T) {
	t.Parallel()
	l := realLab(t)
	c := packertest.New(t).Lab(l)
	example(t, c, l, "docker", map[string]any{"skip_packages": true, "install_docker": false})
	c.Must("init", ".")
	c.Must("validate", ".")
	c.Fails([]string{"Only root@pam may set the feature keyctl"}, "build", ".")
	c.Setenv("PROXMOX_USERNAME", "root@pam")
	c.Setenv("PROXMOX_PASSWORD", l.RootPassword())
	if out := c.Must("build", "."); artifact.FindStringSubmatch(out) == nil {
		t.Errorf("it says\n%s", out)
	}
}

func TestTheAgentsTemplateIsValid(t *testing.T) {
	t.Parallel()
	l := packertest.StartLab(t, lab.Options{})
	c := packertest.New(t).Lab(l)
	sum := strings.Repeat("0", 64)
	example(t, c, l, "agents", map[string]any{"node_sha256": sum, "uv_sha256": sum})
	c.Must("init", ".")
	c.Must("validate", ".")
	for _, agent := range []string{"claude-code", "codex", "opencode", "gemini-cli", "pi", "aider"} {
		if out := c.Must("inspect", "."); !strings.Contains(out, agent) {
			t.Errorf("%s is not among its agents", agent)
		}
	}
	c.Fails([]string{`sha256 must be given`}, "validate", "-var", "node_sha256=", ".")
}

func TestTheExamplesAreFormatted(t *testing.T) {
	t.Parallel()
	c := packertest.New(t)
	c.Must("fmt", "-check", "-recursive", filepath.Join(packertest.Root(), "examples", "packer"))
}
