// Package examples runs the configurations of examples/packer, as people start from them.
package examples

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
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

// example copies one into Packer's folder.
func example(t *testing.T, c *packertest.CLI, name string) {
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
}

// variables are those that have no default, and what a lab needs otherwise.
func variables(t *testing.T, c *packertest.CLI, l *lab.Lab, more map[string]any) {
	t.Helper()
	all := map[string]any{"provider_public_keys": []string{strings.TrimSpace(l.PublicKey())}, "os_template": "local:vztmpl/" + debian}
	for k, v := range more {
		all[k] = v
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	c.Write("lab.auto.pkrvars.json", string(text))
}

func TestTheMinimalTemplateIsBuiltAndCloned(t *testing.T) {
	t.Parallel()
	engine := os.Getenv("SANDBOX_LAB_ENGINE")
	if err := lab.CheckEngine(engine); err != nil {
		t.Skip(err)
	}
	l := packertest.StartLab(t, lab.Options{EngineName: engine, TemplateFiles: []string{debian}})
	c := packertest.New(t).Lab(l)
	example(t, c, "minimal")
	variables(t, c, l, map[string]any{"skip_packages": true})
	c.Must("init", ".")
	c.Must("validate", ".")
	t.Log(c.Must("build", "."))
	_ = context.Background
}
