package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

// maxTemplateRequests is how many requests a minimal template may take, polls not counted.
const maxTemplateRequests = 15

// minimalTemplate is built on the lab: no provisioner, so that what is counted is the builder's.
const minimalTemplate = `
variable "key" { type = string }

source "sandbox-lxc" "bench" {
  os_template          = %q
  template_name        = "bench"
  provider_public_keys = [var.key]
  rootfs { disk_size = 1 }
}

build { sources = ["source.sandbox-lxc.bench"] }
`

// measurePacker measures the Packer half: the audit, and a template's build by the real Packer.
func measurePacker(ctx context.Context, log io.Writer, report func(Metric)) error {
	if err := measureAudit(ctx, log, report); err != nil {
		return err
	}
	return measureTemplate(ctx, log, report)
}

func measureTemplate(ctx context.Context, log io.Writer, report func(Metric)) (err error) {
	root, err := tfcli.RepositoryRoot()
	if err != nil {
		return err
	}
	packer := filepath.Join(root, ".cache", "bin", "packer")
	if _, err := os.Stat(packer); err != nil {
		return errors.New("there is no .cache/bin/packer: make packer builds it")
	}
	dir, err := os.MkdirTemp("", "sandbox-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	plugin, err := installPacker(ctx, root, dir)
	if err != nil {
		return err
	}
	startup, err := describePlugin(ctx, plugin)
	if err != nil {
		return err
	}
	report(shown("plugin_startup_ms", fmt.Sprint(startup.Milliseconds())))

	l, err := lab.Start(ctx, lab.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	configuration := filepath.Join(dir, "bench.pkr.hcl")
	if err := os.WriteFile(configuration, fmt.Appendf(nil, minimalTemplate, lab.TemplateFile), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, packer, "build", "-var", "key="+strings.TrimSpace(l.PublicKey()), configuration)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "PACKER_PLUGIN_PATH="+filepath.Join(dir, "plugins"), "PACKER_CONFIG_DIR="+filepath.Join(dir, "config"), "PACKER_NO_COLOR=1", "TMPDIR="+dir)
	for name, value := range l.Variables() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if err := l.Control().ResetRequests(ctx); err != nil {
		return err
	}
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("packer build: %w\n%s", err, out)
	}
	took := time.Since(began)
	requests, err := l.Control().Requests(ctx)
	if err != nil {
		return err
	}
	counted, polls := 0, 0
	seen := map[string]bool{}
	for _, r := range requests.Entries {
		path := r.Path
		if u, err := url.Parse(path); err == nil {
			path = u.Path
		}
		// A poll is a question that a wait asks: after tasks, a guest's state or its addresses; and any that was asked before.
		question := r.Method + " " + path
		waits := strings.Contains(path, "/tasks") || strings.HasSuffix(path, "/interfaces") || strings.HasSuffix(path, "/status/current")
		if r.Method == http.MethodGet && (seen[question] || waits) {
			polls++
			continue
		}
		seen[question] = true
		counted++
		fmt.Fprintf(log, "  %s\n", question)
	}
	fmt.Fprintf(log, "minimal template on the lab: %d requests and %d polls in %v\n", counted, polls, took.Round(time.Millisecond))
	report(atMost("template_requests", counted, maxTemplateRequests))
	report(shown("template_polls", fmt.Sprint(polls)))
	return nil
}

// installPacker builds the plugin into the layout that Packer loads plugins from.
func installPacker(ctx context.Context, root, dir string) (string, error) {
	const module = "github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox"
	folder := filepath.Join(dir, "plugins", "github.com", "agentsandbox", "sandbox")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", err
	}
	target := filepath.Join(folder, fmt.Sprintf("packer-plugin-sandbox_v0.1.0_x5.0_%s_%s", runtime.GOOS, runtime.GOARCH))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w -X "+module+"/version.VersionPrerelease=", "-o", target, ".")
	cmd.Dir = filepath.Join(root, "packer", "packer-plugin-sandbox")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the Packer plugin: %w\n%s", err, out)
	}
	content, err := os.ReadFile(target)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return target, os.WriteFile(target+"_SHA256SUM", []byte(hex.EncodeToString(sum[:])), 0o600)
}

// describePlugin starts the plugin as Packer does to learn what it has, the fastest of five.
func describePlugin(ctx context.Context, plugin string) (time.Duration, error) {
	best := time.Hour
	for range 5 {
		began := time.Now()
		out, err := exec.CommandContext(ctx, plugin, "describe").Output()
		if err != nil {
			return 0, fmt.Errorf("packer-plugin-sandbox describe: %w", err)
		}
		best = min(best, time.Since(began))
		if !json.Valid(out) {
			return 0, fmt.Errorf("packer-plugin-sandbox describe prints no JSON: %q", out)
		}
	}
	return best, nil
}
