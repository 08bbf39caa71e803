package install

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/agents"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/manifest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"
)

//go:embed scripts/*.sh
var scripts embed.FS

// Installed is what is there afterwards, as Record holds it.
type Installed struct {
	Version  int                       `json:"version"`
	Agents   map[string]manifest.Agent `json:"agents"`
	Runtimes map[string]string         `json:"runtimes,omitempty"`
}

// ParseRecord reads the file Record of a system.
func ParseRecord(file []byte) (Installed, error) {
	var i Installed
	if err := json.Unmarshal(file, &i); err != nil {
		return Installed{}, fmt.Errorf("%s: %w", Record, err)
	}
	if i.Version != 1 {
		return Installed{}, fmt.Errorf("%s has version %d, wanted 1", Record, i.Version)
	}
	return i, nil
}

// Error is a step that failed.
type Error struct {
	Agent  string // or "node", "uv"
	Step   string
	Output string
	Err    error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %s", e.Agent, e.Step)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Output != "" {
		text += "\n" + e.Output
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

type installer struct {
	runner  remote.Runner
	options Options
	say     func(string)
	result  Installed
	// root comes before every path; empty but for tests in a folder.
	root string
	// machine is the system's architecture, as uname says it: x86_64, aarch64.
	machine string
}

// Run installs what options want and returns what is there. It may be run
// again: what is installed at the wanted version is installed anew.
func Run(ctx context.Context, runner remote.Runner, options Options, say func(string)) (Installed, error) {
	return run(ctx, runner, options, say, "")
}

func run(ctx context.Context, runner remote.Runner, options Options, say func(string), root string) (Installed, error) {
	list, err := options.resolve()
	if err != nil {
		return Installed{}, err
	}
	if say == nil {
		say = func(string) {}
	}
	in := &installer{runner: runner, options: options, say: say, root: root, result: Installed{Version: 1, Agents: map[string]manifest.Agent{}, Runtimes: map[string]string{}}}
	if in.machine, err = in.script(ctx, "system", "ask for the architecture", "uname -m", nil); err != nil {
		return Installed{}, err
	}
	in.machine = strings.TrimSpace(in.machine)
	if err := in.runtimes(ctx, list); err != nil {
		return Installed{}, err
	}
	for _, w := range list {
		if err := in.agent(ctx, w); err != nil {
			return Installed{}, err
		}
	}
	return in.result, in.finish(ctx, list)
}

// runtimes brings Node.js and uv where agents need them, and checks the floors.
func (in *installer) runtimes(ctx context.Context, list []wanted) error {
	floor, needsUV := "", false
	var because string
	for _, w := range list {
		if w.Source.Kind == agents.PyPI {
			needsUV = true
		}
		if w.Source.Kind == agents.NPM && (floor == "" || newer(w.Needs.Node, floor)) {
			floor, because = w.Needs.Node, w.Name
			if floor == "" {
				floor = "0"
			}
		}
	}
	if floor != "" {
		if err := in.runtime(ctx, "node", in.options.Node, "1", []string{"node", "npm", "npx"}); err != nil {
			return err
		}
		found := in.result.Runtimes["node"]
		if floor != "0" && newer(floor, found) {
			return &Error{Agent: because, Step: "check Node.js", Err: fmt.Errorf("it needs Node.js %s or later and %s is there; give a later one in node", floor, found)}
		}
	}
	if needsUV {
		return in.runtime(ctx, "uv", in.options.UV, "1", []string{"uv"})
	}
	return nil
}

// runtime installs an archive, if one is given, and notes the version that is there.
func (in *installer) runtime(ctx context.Context, name string, d Download, strip string, commands []string) error {
	if !d.empty() {
		in.say(fmt.Sprintf("%s %s", name, d.Version))
		dir := path.Join(in.root+Root, name)
		if err := in.download(ctx, name, d, dir, commands[0], strip); err != nil {
			return err
		}
		if _, err := in.embedded(ctx, name, "link its commands", "link.sh", nil, append([]string{path.Join(dir, "bin"), in.root + Bin}, commands...)...); err != nil {
			return err
		}
	}
	out, err := in.embedded(ctx, name, "ask for its version", "version.sh", nil, commands[0], "--version")
	if err != nil {
		return fmt.Errorf("%w\n%s is needed and isn't there, or can't run: give a source for it (%s), or install it before", err, name, name)
	}
	found := versionIn(out)
	if !d.empty() && found != d.Version {
		return &Error{Agent: name, Step: "check its version", Output: out, Err: fmt.Errorf("%s says that it is %s, wanted %s", commands[0], found, d.Version)}
	}
	in.result.Runtimes[name] = found
	return nil
}

func (in *installer) download(ctx context.Context, what string, d Download, dir, command, strip string) error {
	// A folder's tool of this name is renamed by the archives' makers per machine.
	arch := in.machine
	if what == "node" {
		if other, ok := map[string]string{"x86_64": "x64", "aarch64": "arm64"}[arch]; ok {
			arch = other
		}
	}
	url, name := fill(d.URL, d.Version, arch), path.Base(d.File)
	if url != "" {
		name = path.Base(url)
	}
	archive := path.Join(in.root+Root, ".download", name)
	var content io.Reader
	args := []string{archive, strings.ToLower(d.SHA256)}
	if url != "" {
		args = append(args, url)
	} else {
		file, err := os.Open(d.File)
		if err != nil {
			return &Error{Agent: what, Step: "read its archive", Err: err}
		}
		defer file.Close()
		content = file
	}
	if _, err := in.embedded(ctx, what, "fetch its archive", "fetch.sh", content, args...); err != nil {
		return err
	}
	_, err := in.embedded(ctx, what, "unpack its archive", "unpack.sh", nil, archive, dir, command, strip)
	return err
}

func (in *installer) agent(ctx context.Context, w wanted) error {
	in.say(fmt.Sprintf("%s %s", w.Name, w.version))
	dir := path.Join(in.root+Root, w.Name)
	var err error
	switch w.Source.Kind {
	case agents.NPM:
		_, err = in.embedded(ctx, w.Name, "install the package", "npm.sh", nil, dir, w.Source.Package, w.version, yesNo(w.Source.InstallScripts), in.options.NPMRegistry)
	case agents.PyPI:
		_, err = in.embedded(ctx, w.Name, "install the package", "pypi.sh", nil, dir, w.Source.Package, w.version, pythonRange(w.Needs), in.options.PyPIIndex)
	case agents.Binary:
		err = in.download(ctx, w.Name, w.download, dir, w.Binary, "0")
	case agents.Installed:
		dir = ""
	}
	if err != nil {
		return err
	}
	if dir != "" {
		if _, err := in.embedded(ctx, w.Name, "link its command", "link.sh", nil, path.Join(dir, "bin"), in.root+Bin, w.Binary); err != nil {
			return err
		}
	}
	return in.verify(ctx, w, dir)
}

// verify asks the command itself: what a package manager says is not enough.
func (in *installer) verify(ctx context.Context, w wanted, dir string) error {
	entry := manifest.Agent{Version: w.version, Checksum: w.download.SHA256}
	if w.Source.Package != "" {
		entry.Source = string(w.Source.Kind) + ":" + w.Source.Package
	}
	if len(w.Version.Arguments) > 0 {
		out, err := in.embedded(ctx, w.Name, "ask for its version", "version.sh", nil, append([]string{w.Binary}, w.Version.Arguments...)...)
		if err != nil {
			return err
		}
		found := w.InstalledVersion(out)
		switch {
		case found == "":
			return &Error{Agent: w.Name, Step: "check its version", Output: out, Err: fmt.Errorf("%s was installed without an error and doesn't say its version: it can't work", w.Binary)}
		case w.version != "" && found != w.version:
			return &Error{Agent: w.Name, Step: "check its version", Output: out, Err: fmt.Errorf("%s says that it is %s, wanted %s", w.Binary, found, w.version)}
		}
		entry.Version = found
	}
	out, err := in.script(ctx, w.Name, "find its command", `command -v "$1" && if [ -n "$2" ]; then du -sk "$2" | cut -f1; fi`, nil, w.Binary, dir)
	if err != nil {
		return err
	}
	lines := strings.Fields(out)
	entry.Binary = lines[0]
	if len(lines) > 1 {
		if kib, err := strconv.ParseInt(lines[1], 10, 64); err == nil {
			entry.Bytes = kib << 10
		}
	}
	for _, command := range w.Needs.Commands {
		if _, err := in.script(ctx, w.Name, "look for what it needs", `command -v "$1" >/dev/null || { echo "$1 is not there: install it, $2 needs it" >&2; exit 1; }`, nil, command, w.Name); err != nil {
			return err
		}
	}
	in.result.Agents[w.Name] = entry
	return nil
}

// finish keeps agents from updating themselves, wipes what they left in homes,
// and writes down what is there.
func (in *installer) finish(ctx context.Context, list []wanted) error {
	environment, state := map[string]string{}, []string{}
	for _, w := range list {
		maps.Copy(environment, w.AutoUpdateOff.Environment)
		maps.Copy(environment, w.TelemetryOff.Environment)
		state = append(state, w.StateDirs...)
	}
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		fmt.Fprintf(&lines, "%s=%s\n", name, environment[name])
	}
	if _, err := in.embedded(ctx, "agents", "turn off updates and telemetry", "finish.sh", strings.NewReader(lines.String()), append([]string{in.root}, state...)...); err != nil {
		return err
	}
	record, err := json.MarshalIndent(in.result, "", "  ")
	if err != nil {
		return err
	}
	_, err = in.embedded(ctx, "agents", "write down what is installed", "record.sh", bytes.NewReader(append(record, '\n')), in.root)
	return err
}

func (in *installer) embedded(ctx context.Context, agent, step, name string, stdin io.Reader, args ...string) (string, error) {
	text, err := scripts.ReadFile("scripts/" + name)
	if err != nil {
		return "", err
	}
	return in.script(ctx, agent, step, string(text), stdin, args...)
}

func (in *installer) script(ctx context.Context, agent, step, text string, stdin io.Reader, args ...string) (string, error) {
	result, err := in.runner.Run(ctx, remote.Script{Text: text, Args: args, Stdin: stdin})
	if err != nil {
		return "", &Error{Agent: agent, Step: step, Err: err}
	}
	out := strings.TrimSpace(string(result.Stdout))
	if result.ExitCode != 0 {
		return "", &Error{Agent: agent, Step: step, Output: tail(out + "\n" + string(result.Stderr)), Err: fmt.Errorf("ended with %d", result.ExitCode)}
	}
	return out, nil
}

// tail is the end of an output that may be long.
func tail(s string) string {
	const most = 4000
	if s = strings.TrimSpace(s); len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func pythonRange(n agents.Needs) string {
	text := ">=" + n.Python
	if n.PythonBelow != "" {
		text += ",<" + n.PythonBelow
	}
	return text
}

// newer says whether version a comes after b; both are "1.2.3" or shorter.
func newer(a, b string) bool { return semver.Compare("v"+a, "v"+b) > 0 }

// versionIn is the first version in a text: "v22.23.3", "uv 0.9.2 (…)".
func versionIn(text string) string {
	for _, field := range strings.Fields(text) {
		field = strings.TrimPrefix(field, "v")
		if semver.IsValid("v" + field) {
			return field
		}
	}
	return ""
}
