package examples

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/target"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

const firstSandbox = "../templates/guides/first-sandbox.md.tmpl"

// guide is the guide "From a fresh server to an agent's patch", and its blocks by kind, in order.
func guide(t *testing.T) (text string, blocks map[string][]string) {
	t.Helper()
	content, err := os.ReadFile(firstSandbox)
	if err != nil {
		t.Fatal(err)
	}
	blocks = map[string][]string{}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(content), -1) {
		blocks[m[1]] = append(blocks[m[1]], m[2])
	}
	for _, kind := range []string{"packer", "terraform", "tf"} {
		if len(blocks[kind]) != 1 {
			t.Fatalf("the guide has %d blocks of %s, want one", len(blocks[kind]), kind)
		}
	}
	return string(content), blocks
}

func TestTheGuideFirstSandboxHasNineStepsEachWithWhatItPrints(t *testing.T) {
	t.Parallel()
	text, _ := guide(t)
	steps := regexp.MustCompile(`(?m)^## (\d)\. `).FindAllStringSubmatchIndex(text, -1)
	if len(steps) != 9 {
		t.Fatalf("there are %d steps", len(steps))
	}
	for i, at := range steps {
		end := len(text)
		if i+1 < len(steps) {
			end = steps[i+1][0]
		} else if rest := strings.Index(text[at[1]:], "\n## "); rest >= 0 {
			end = at[1] + rest
		}
		step := text[at[0]:end]
		if n := text[at[2]:at[3]]; n != fmt.Sprint(i+1) {
			t.Errorf("step %d is numbered %s", i+1, n)
		}
		if !strings.Contains(step, "```shell\n") {
			t.Errorf("step %d has no command", i+1)
		}
		if !strings.Contains(step, "```text\n") && !strings.Contains(step, "prints ") {
			t.Errorf("step %d doesn't say what it prints", i+1)
		}
	}
}

// What step 6 and step 8 show is one configuration: valid, whatever the lab can do.
func TestDocumentationOfTheFirstSandboxIsValid(t *testing.T) {
	t.Parallel()
	_, blocks := guide(t)
	config := t.TempDir()
	write(t, filepath.Join(config, "main.tf"), blocks["terraform"][0])
	write(t, filepath.Join(config, "run.tf"), blocks["tf"][0])
	workspace, err := acctest.CommandLine(t).NewWorkspace(tfcli.WorkspaceOptions{Config: config, Dir: t.TempDir(), ProviderDir: providerDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	validate(t, workspace.Terraform, nil)
}

// scriptedCodex is an agent that does what the guide's prompt asks for, and fails without its key.
const scriptedCodex = `#!/bin/sh
case $1 in --version) echo codex-cli 0.169.0; exit 0 ;; esac
[ -n "$OPENAI_API_KEY" ] || { echo "no key" >&2; exit 1; }
printf 'one\ntwo\nthree\nfour\nfive\n' >NOTES.md
`

// The guide, from packer build to the patch, on real containers. What a reader writes in place of the guide's names is
// written here too; the agent is a script, because its registry can't be reached from a lab.
func TestTheGuideFirstSandboxRunsOnRealContainers(t *testing.T) {
	t.Parallel()
	if os.Getenv("SANDBOX_LAB_ENGINE") != lab.EngineNS {
		t.Skip("it needs a Debian to harden: make test-ns runs it")
	}
	_, blocks := guide(t)
	packer := packerCommand(t)
	l, err := lab.Start(context.WithoutCancel(t.Context()), lab.Options{EngineName: lab.EngineNS, TemplateFiles: []string{"debian-12-standard_12.12-1_amd64.tar.zst"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	described, err := target.FromLab(l, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	makePool(t, &described, "sandbox")

	// Steps 1 and 5.
	folder := t.TempDir()
	template := blocks["packer"][0]
	agent := regexp.MustCompile(`(?s)  provisioner "sandbox-agents" \{.*?\n  \}\n`)
	if !agent.MatchString(template) {
		t.Fatal("the guide's template installs no agent")
	}
	inPlace := fmt.Sprintf("  provisioner \"shell\" {\n    inline = [%q]\n  }\n",
		"cat >/usr/local/bin/codex <<'EOF'\n"+scriptedCodex+"EOF\nchmod 755 /usr/local/bin/codex")
	template = agent.ReplaceAllLiteralString(template, strings.ReplaceAll(inPlace, "${", "$${"))
	write(t, filepath.Join(folder, "agents.pkr.hcl"), strings.ReplaceAll(template, "vmbr1", lab.Bridge))
	variables, err := json.Marshal(map[string]any{
		"provider_public_keys": []string{strings.TrimSpace(l.PublicKey())}, "os_template": "local:vztmpl/debian-12-standard_12.12-1_amd64.tar.zst",
		"skip_packages": true, "node_sha256": strings.Repeat("0", 64),
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "mine.auto.pkrvars.json"), string(variables))
	for _, args := range [][]string{{"init", "."}, {"validate", "."}, {"build", "."}} {
		out := packer(folder, l.Variables(), args...)
		if args[0] == "build" && !regexp.MustCompile(`Template \d+ \(agents, build \w+\) on node pve1.*audit grade A`).MatchString(out) {
			t.Errorf("packer build ended with\n%s", out)
		}
	}

	// Steps 6 to 9.
	config := t.TempDir()
	jump := described.SSH.ProxyJump
	mine := strings.NewReplacer(
		"https://192.0.2.10:8006", l.Endpoint(), "local-zfs", lab.Storage, "vmbr1", lab.Bridge, "~/.ssh/sandbox", described.SSH.PrivateKeyFile,
		`host     = "192.0.2.10"`, fmt.Sprintf("host     = %q\n      port     = %d", jump.Host, jump.Port), `"sandbox-node"`, fmt.Sprintf("%q", jump.Username),
		"10.77.0.1/32", l.Management().String(),
	).Replace(blocks["terraform"][0])
	mine = regexp.MustCompile(`fingerprint = ".*?"`).ReplaceAllLiteralString(mine, fmt.Sprintf("fingerprint = %q", l.Fingerprint()))
	mine = regexp.MustCompile(`host_key = ".*?"`).ReplaceAllLiteralString(mine, fmt.Sprintf("host_key = %q", jump.HostKey))
	write(t, filepath.Join(config, "main.tf"), mine)
	environment := map[string]string{"SANDBOX_API_TOKEN": l.Token(), "SANDBOX_FIREWALL_SETTLE": l.FirewallSettle().String()}
	key := tfexec.Var("openai_api_key=a key of this test's")
	var said bytes.Buffer
	workspace, err := acctest.CommandLine(t).NewWorkspace(tfcli.WorkspaceOptions{Config: config, Dir: t.TempDir(), ProviderDir: providerDir(t), Environment: environment, Stdout: &said})
	if err != nil {
		t.Fatal(err)
	}
	app := filepath.Join(workspace.Dir, "app")
	if err := os.Mkdir(app, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(app, "main.sh"), "echo hello\n")
	ctx := t.Context()
	if err := workspace.Apply(ctx); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	grade, _, _ := strings.Cut(output(t, workspace, "audit"), ",")
	if !audit.Grade(grade).AtLeast(audit.GradeA) {
		t.Errorf("the audit says %s", output(t, workspace, "audit"))
	}
	write(t, filepath.Join(workspace.Dir, "run.tf"), blocks["tf"][0])
	if err := workspace.Apply(ctx, key); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	if run := output(t, workspace, "run"); !strings.HasPrefix(run, "succeeded") || !strings.Contains(run, "NOTES.md") {
		t.Errorf("the run: %s", run)
	}
	apply := exec.CommandContext(ctx, "git", "apply", "--stat", "--apply", "../fix.patch")
	apply.Dir = app
	if out, err := apply.CombinedOutput(); err != nil || !strings.Contains(string(out), "NOTES.md") {
		t.Errorf("git apply: %v\n%s", err, out)
	}
	if notes, err := os.ReadFile(filepath.Join(app, "NOTES.md")); err != nil || strings.Count(string(notes), "\n") != 5 {
		t.Errorf("NOTES.md: %q, %v", notes, err)
	}
	if err := workspace.Destroy(ctx, key); err != nil {
		t.Errorf("destroy: %v\n%s", err, said.String())
	}
}

func output(t *testing.T, w *tfcli.Workspace, name string) string {
	t.Helper()
	var all map[string]tfexec.OutputMeta
	all, err := w.Output(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var text string
	if err := json.Unmarshal(all[name].Value, &text); err != nil {
		t.Fatalf("output %s: %v", name, err)
	}
	return text
}

func makePool(t *testing.T, described *target.Target, id string) {
	t.Helper()
	client, err := pve.New(described.Connection())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.CreatePool(t.Context(), id, "of a test"); err != nil {
		t.Fatal(err)
	}
}

// packerCommand builds the plugin into the layout that `packer init` is content with, and returns what runs Packer.
func packerCommand(t *testing.T) func(dir string, environment map[string]string, args ...string) string {
	t.Helper()
	root, err := tfcli.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	packer := filepath.Join(root, ".cache", "bin", "packer")
	if _, err := os.Stat(packer); err != nil {
		if packer, err = exec.LookPath("packer"); err != nil {
			t.Skip("there is no Packer: make packer builds it")
		}
	}
	const version = "0.1.0"
	module := "github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox"
	plugins := t.TempDir()
	binary := filepath.Join(plugins, "github.com", "agentsandbox", "sandbox", fmt.Sprintf("packer-plugin-sandbox_v%s_x5.0_%s_%s", version, runtime.GOOS, runtime.GOARCH))
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags", "-X "+module+"/version.VersionPrerelease= -X "+module+"/version.Version="+version, "-o", binary, ".")
	build.Dir = filepath.Join(root, "packer", "packer-plugin-sandbox")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	write(t, binary+"_SHA256SUM", hex.EncodeToString(sum[:]))
	return func(dir string, environment map[string]string, args ...string) string {
		t.Helper()
		environment = maps.Clone(environment)
		maps.Copy(environment, map[string]string{"PACKER_PLUGIN_PATH": plugins, "PACKER_CONFIG_DIR": t.TempDir(), "CHECKPOINT_DISABLE": "1", "PACKER_NO_COLOR": "1"})
		cmd := exec.CommandContext(t.Context(), packer, args...)
		cmd.Dir, cmd.Env = dir, os.Environ()
		for name, value := range environment {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("packer %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
}
