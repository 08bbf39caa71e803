package examples

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/agents"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/internal/packertest"
)

// exampleAgents are what examples/packer/agents installs, with what their makers' own programs print for --version.
var exampleAgents = map[string]string{
	"claude-code": "%s (Claude Code)", "codex": "codex-cli %s", "opencode": "%s", "gemini-cli": "%s", "pi": "%s", "aider": "aider %s",
}

// standIn is a shell script in the place of a package manager: whatever package it is asked for, at the registry's version,
// gets a command that says that version. A lab's guests reach no registry; the managers' own traps are tested with the real
// npm in internal/agents/install.
func standIn(t *testing.T, kind agents.SourceKind, where string) string {
	t.Helper()
	var script strings.Builder
	script.WriteString("#!/bin/sh\nset -e\nif [ \"$1\" = --version ]; then echo 0.9.13; exit; fi\nfor last; do :; done\n")
	script.WriteString(where)
	script.WriteString("mkdir -p \"$bin\"\ncase $last in\n")
	for name, says := range exampleAgents {
		a, err := agents.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if a.Source.Kind != kind {
			continue
		}
		join := map[agents.SourceKind]string{agents.NPM: "@", agents.PyPI: "=="}[kind]
		fmt.Fprintf(&script, "%s%s%s) command=%s says='%s' ;;\n", a.Source.Package, join, a.Source.Version, a.Binary, fmt.Sprintf(says, a.Source.Version))
	}
	script.WriteString("*) echo \"404 $last\" >&2; exit 1 ;;\nesac\nprintf '#!/bin/sh\\necho \"%s\"\\n' \"$says\" >\"$bin/$command\"\nchmod 755 \"$bin/$command\"\n")
	return script.String()
}

// archive writes a tar.gz and returns where it is, and its checksum.
func archive(t *testing.T, name string, files map[string]string) (file, sum string) {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for at, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: at, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(out.Bytes())
	return file, hex.EncodeToString(digest[:])
}

func TestTheAgentsTemplateIsBuilt(t *testing.T) {
	t.Parallel()
	l := realLab(t)
	c := packertest.New(t).Lab(l)
	npm := standIn(t, agents.NPM, "for p; do case $before in --prefix) bin=$p/bin ;; esac; before=$p; done\n")
	node, nodeSum := archive(t, "node.tar.gz", map[string]string{"node/bin/node": "#!/bin/sh\necho v22.23.3\n", "node/bin/npx": "#!/bin/sh\n", "node/bin/npm": npm})
	uv, uvSum := archive(t, "uv.tar.gz", map[string]string{"uv/uv": standIn(t, agents.PyPI, "bin=$UV_TOOL_BIN_DIR\n")})
	example(t, c, l, "agents", map[string]any{"skip_packages": true, "node_file": node, "node_sha256": nodeSum, "uv_file": uv, "uv_sha256": uvSum})
	c.Must("init", ".")
	c.Must("validate", ".")
	out := c.Must("build", ".")
	for name := range exampleAgents {
		a, err := agents.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if want := name + " " + a.Source.Version; !strings.Contains(out, want) {
			t.Errorf("the artifact doesn't say %s", want)
		}
	}
	t.Log(out)
}
