package lxc

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/agents/install"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/manifest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"
)

// collectScript prints what is in the system, each part under a line of its own.
const collectScript = `
echo "== os"; cat /etc/os-release 2>/dev/null || true
echo "== packages"; if command -v dpkg-query >/dev/null 2>&1; then dpkg-query -W -f '${Package}\t${Version}\t${Architecture}\n'; elif command -v apk >/dev/null 2>&1; then apk info -v 2>/dev/null; fi
echo "== agents"; cat "$1" 2>/dev/null || true
echo "== harden"; cat "$2" 2>/dev/null || true
echo "== end"`

// packagesLimit bounds what is read of the lists, in bytes.
const packagesLimit = 4 << 20

// record is what sandbox-harden has noted.
type record struct {
	hardened bool
	Profile  string `json:"profile"`
	Agent    string `json:"agent"`
}

// collect fills in what the system says of itself: its distribution, packages, and what the provisioners recorded.
func collect(ctx context.Context, runner remote.Runner, m *manifest.Manifest) (record, error) {
	var hardening record
	res, err := runner.Run(ctx, remote.Script{Text: collectScript, Args: []string{install.Record, audit.RecordPath}, Limit: packagesLimit})
	if err != nil {
		return hardening, err
	}
	if res.ExitCode != 0 {
		return hardening, fmt.Errorf("list what is in it: exit status %d: %s", res.ExitCode, strings.TrimSpace(string(res.Stderr)))
	}
	parts := split(string(res.Stdout))
	m.OS = parseRelease(parts["os"])
	m.Packages = parsePackages(parts["packages"])
	if text := strings.TrimSpace(parts["agents"]); text != "" {
		installed, err := install.ParseRecord([]byte(text))
		if err != nil {
			return hardening, err
		}
		m.Agents, m.Runtimes = installed.Agents, installed.Runtimes
	}
	if text := strings.TrimSpace(parts["harden"]); text != "" {
		if err := json.Unmarshal([]byte(text), &hardening); err != nil {
			return hardening, fmt.Errorf("%s: %w", audit.RecordPath, err)
		}
		hardening.hardened, m.Profile = true, hardening.Profile
	}
	return hardening, nil
}

// split takes the output apart at its "== name" lines.
func split(output string) map[string]string {
	parts := map[string]string{}
	name := ""
	for line := range strings.Lines(output) {
		if next, ok := strings.CutPrefix(line, "== "); ok {
			name = strings.TrimSpace(next)
			continue
		}
		parts[name] += line
	}
	return parts
}

func parseRelease(text string) manifest.OS {
	var os manifest.OS
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(value, `"'`)
		switch key {
		case "ID":
			os.ID = value
		case "VERSION_ID":
			os.Version = value
		}
	}
	return os
}

func parsePackages(text string) []manifest.Package {
	var out []manifest.Package
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) == 3 && f[0] != "" {
			out = append(out, manifest.Package{Name: f[0], Version: f[1], Architecture: f[2]})
		}
	}
	return out
}
