package examples

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

// fragment is a piece of configuration that a reader may copy.
type fragment struct {
	from    string // file and line
	content string
}

// Whatever the documentation shows is valid against the schema: the README's example, and the examples and templates
// that docs/ is generated from. One validate for all of them, each as a module of its own.
func TestDocumentationFragmentsAreValid(t *testing.T) {
	t.Parallel()
	cli := acctest.CommandLine(t)
	fragments := readFragments(t)
	root := t.TempDir()
	var modules, imports strings.Builder
	for i, f := range fragments {
		if strings.Contains(f.content, "identity = {") && !acctest.Has(t, acctest.ResourceIdentity) {
			t.Logf("%s: left out, %s has no %s", f.from, cli.Name(), acctest.ResourceIdentity)
			continue
		}
		module := fmt.Sprintf("fragment-%d", i)
		writeModule(t, filepath.Join(root, module), f)
		if isImport(f.content) { // only a root module may import; what it imports to is beside it
			fmt.Fprintf(&imports, "# %s\n%s", f.from, strings.Replace(f.content, "to = ", "to = module."+module+".", 1))
		}
		fmt.Fprintf(&modules, "# %s\nmodule %q {\n  source = \"./%s\"\n%s}\n", f.from, module, module, inputs(f.content))
	}
	write(t, filepath.Join(root, "main.tf"), providerSource+modules.String()+imports.String())

	workspace, err := cli.NewWorkspace(tfcli.WorkspaceOptions{Config: root, Dir: t.TempDir(), ProviderDir: providerDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := workspace.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	validate(t, workspace.Terraform, fragments)
}

func validate(t *testing.T, tf *tfexec.Terraform, fragments []fragment) {
	t.Helper()
	result, err := tf.Validate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range result.Diagnostics {
		if d.Severity != "error" {
			continue
		}
		where := "?"
		if d.Range != nil {
			where = d.Range.Filename
			var n int
			if _, err := fmt.Sscanf(filepath.ToSlash(where), "fragment-%d/", &n); err == nil && n < len(fragments) {
				where = fragments[n].from
			}
		}
		t.Errorf("%s: %s: %s", where, d.Summary, d.Detail)
	}
}

var variableBlock = regexp.MustCompile(`(?m)^variable "(\w+)"`)

// inputs gives a module's variables no value: what the reader would be asked for is none of a validation's business.
func inputs(content string) string {
	var out strings.Builder
	for _, name := range variableBlock.FindAllStringSubmatch(content, -1) {
		fmt.Fprintf(&out, "  %s = null\n", name[1])
	}
	return out.String()
}

func isImport(content string) bool { return strings.HasPrefix(content, "import {") }

// writeModule makes a fragment a module: with the provider's source, unless it says that itself, and an import with the
// resource that it imports to, as the example of that resource has it.
func writeModule(t *testing.T, dir string, f fragment) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	content := f.content
	if isImport(content) {
		content = importedResource(t, f)
	}
	write(t, filepath.Join(dir, "main.tf"), content)
	if !strings.Contains(content, "required_providers") {
		write(t, filepath.Join(dir, "versions.tf"), providerSource)
	}
}

const providerSource = "terraform {\n  required_providers {\n    sandbox = {\n      source = \"" + tfcli.Source + "\"\n    }\n  }\n}\n"

var importTo = regexp.MustCompile(`to = (\w+)\.\w+`)

func importedResource(t *testing.T, f fragment) string {
	t.Helper()
	to := importTo.FindStringSubmatch(f.content)
	if to == nil {
		t.Fatalf("%s: an import block without a target", f.from)
	}
	example, err := os.ReadFile(filepath.Join("resources", to[1], "resource.tf"))
	if err != nil {
		t.Fatal(err)
	}
	return string(example)
}

// readFragments collects the fenced blocks marked as Terraform's from the README and the generated documentation.
func readFragments(t *testing.T) []fragment {
	t.Helper()
	files := []string{filepath.Join("..", "README.md"), filepath.Join("..", "CONTRIBUTING.md")}
	err := filepath.WalkDir(filepath.Join("..", "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var fragments []fragment
	for _, file := range files {
		fragments = append(fragments, fencedBlocks(t, file)...)
	}
	if len(fragments) < 10 {
		t.Fatalf("only %d fragments were found in %d files: the documentation isn't where this test looks", len(fragments), len(files))
	}
	return fragments
}

func fencedBlocks(t *testing.T, path string) []fragment {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var fragments []fragment
	var current *strings.Builder
	scanner := bufio.NewScanner(file)
	for line := 1; scanner.Scan(); line++ {
		text := scanner.Text()
		switch {
		case current == nil && (text == "```terraform" || text == "```hcl"):
			current = &strings.Builder{}
			fragments = append(fragments, fragment{from: fmt.Sprintf("%s:%d", strings.TrimPrefix(filepath.ToSlash(path), "../"), line)})
		case current != nil && text == "```":
			fragments[len(fragments)-1].content = current.String()
			current = nil
		case current != nil:
			current.WriteString(text + "\n")
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return fragments
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
