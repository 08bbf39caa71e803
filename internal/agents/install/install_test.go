package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha1" // npm names archives by it
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/agents"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"
)

// registry is an npm registry with packages of one file.
type registry struct {
	*httptest.Server
	packages map[string]map[string]any // name -> packument
	archives map[string][]byte
}

func newRegistry(t *testing.T) *registry {
	r := &registry{packages: map[string]map[string]any{}, archives: map[string][]byte{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if archive, ok := r.archives[req.URL.Path]; ok {
			_, _ = w.Write(archive)
			return
		}
		p, ok := r.packages[strings.TrimPrefix(req.URL.Path, "/")]
		if !ok {
			http.NotFound(w, req)
			return
		}
		_ = json.NewEncoder(w).Encode(p)
	}))
	t.Cleanup(r.Close)
	return r
}

// add publishes a package whose command is a shell script; extra is merged into
// its package.json.
func (r *registry) add(t *testing.T, name, version, command string, extra map[string]any, files map[string]string) {
	t.Helper()
	meta := map[string]any{"name": name, "version": version, "bin": map[string]string{name: "cli.sh"}}
	for k, v := range extra {
		meta[k] = v
	}
	raw, err := json.Marshal(meta)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"package/package.json": string(raw), "package/cli.sh": "#!/bin/sh\n" + command + "\n"}
	for k, v := range files {
		all["package/"+k] = v
	}
	archive := pack(t, all)
	at := fmt.Sprintf("/%s/-/%s-%s.tgz", name, name, version)
	r.archives[at] = archive
	sum := sha1.Sum(archive)
	meta["dist"] = map[string]any{"tarball": r.URL + at, "shasum": hex.EncodeToString(sum[:])}
	if _, ok := extra["scripts"]; ok {
		meta["hasInstallScript"] = true
	}
	if r.packages[name] == nil {
		r.packages[name] = map[string]any{"name": name, "versions": map[string]any{}, "dist-tags": map[string]any{}}
	}
	r.packages[name]["versions"].(map[string]any)[version] = meta
	r.packages[name]["dist-tags"].(map[string]any)["latest"] = version
}

func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	for name, content := range files {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// system is a folder to install into, and the way to run scripts for it: this
// machine's own shell, with the folder's commands first.
type system struct {
	root   string
	runner remote.Command
}

func newSystem(t *testing.T) *system {
	t.Helper()
	// Versions are asked for by nobody, who must get through to it. Only the test's own folders are opened.
	dir := t.TempDir()
	for _, own := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(own, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &system{root: dir, runner: remote.Command{Env: []string{"PATH=" + dir + Bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C.UTF-8"}}}
}

func (s *system) install(t *testing.T, o Options) (Installed, error) {
	t.Helper()
	return run(t.Context(), s.runner, o, func(line string) { t.Log(line) }, s.root)
}

func (s *system) read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(s.root + name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(raw)
}

func needsNPM(t *testing.T) {
	t.Helper()
	for _, command := range []string{"npm", "node"} {
		if _, err := exec.LookPath(command); err != nil {
			t.Skipf("there is no %s on this machine; the trap is npm's own", command)
		}
	}
}

func definition(name string, change func(*agents.Agent)) agents.Agent {
	a := agents.Agent{
		Name: name, Binary: name, Source: agents.Source{Kind: agents.NPM, Package: name, Version: "2.0.0"},
		Version:   agents.Version{Arguments: []string{"--version"}, Pattern: `([0-9]+\.[0-9]+\.[0-9]+)`},
		Headless:  agents.Headless{PromptVia: agents.ViaStdin},
		StateDirs: []string{"~/." + name}, Licence: agents.Licence{Name: "MIT"},
		AutoUpdateOff: agents.Switch{Environment: map[string]string{"NO_UPDATE_" + strings.ToUpper(name): "1"}},
	}
	if change != nil {
		change(&a)
	}
	return a
}

func TestAnAgentIsInstalledPinnedAndWrittenDown(t *testing.T) {
	t.Parallel()
	needsNPM(t)
	reg := newRegistry(t)
	reg.add(t, "tester", "1.0.0", "echo 1.0.0", nil, nil)
	reg.add(t, "tester", "2.0.0", "echo tester 2.0.0", nil, nil)
	reg.add(t, "tester", "3.0.0", "echo 3.0.0", nil, nil)
	s := newSystem(t)
	if err := os.MkdirAll(s.root+"/home/agent/.tester/sessions", 0o700); err != nil {
		t.Fatal(err)
	}
	o := Options{Agents: map[string]string{"tester": ""}, Definitions: []agents.Agent{definition("tester", nil)}, NPMRegistry: reg.URL}
	for range 2 { // again is allowed and changes nothing
		got, err := s.install(t, o)
		if err != nil {
			t.Fatal(err)
		}
		a := got.Agents["tester"]
		if a.Version != "2.0.0" || a.Binary != s.root+Bin+"/tester" || a.Source != "npm:tester" || a.Bytes <= 0 || got.Runtimes["node"] == "" {
			t.Errorf("installed is %+v", got)
		}
		record, err := ParseRecord([]byte(s.read(t, Record)))
		if err != nil || record.Agents["tester"] != a {
			t.Errorf("the record is %+v, %v", record, err)
		}
		if env := s.read(t, "/etc/environment"); strings.Count(env, "NO_UPDATE_TESTER=1") != 1 {
			t.Errorf("/etc/environment is %q", env)
		}
		if env := s.read(t, "/etc/profile.d/sandbox-agents.sh"); env != "export NO_UPDATE_TESTER='1'\n" {
			t.Errorf("the profile is %q", env)
		}
	}
	if _, err := os.Stat(s.root + "/home/agent/.tester"); !os.IsNotExist(err) {
		t.Errorf("state in a home was left: %v", err)
	}
	info, err := os.Stat(s.root + Root + "/tester/bin/tester")
	if err != nil || info.Mode()&0o022 != 0 {
		t.Errorf("others may write the command: %v %v", info, err)
	}
}

// npm takes a release that Node.js is too old for, and only warns.
func TestNPMTrapAnEngineThatIsTooOld(t *testing.T) {
	t.Parallel()
	needsNPM(t)
	reg := newRegistry(t)
	reg.add(t, "tester", "2.0.0", "echo 2.0.0", map[string]any{"engines": map[string]string{"node": ">=999"}}, nil)
	s := newSystem(t)
	_, err := s.install(t, Options{Agents: map[string]string{"tester": "2.0.0"}, Definitions: []agents.Agent{definition("tester", nil)}, NPMRegistry: reg.URL})
	if err == nil || !strings.Contains(err.Error(), "EBADENGINE") {
		t.Errorf("got %v", err)
	}
	if s.read(t, Record) != "" {
		t.Error("a failed installation was written down")
	}
	if _, err := os.Lstat(s.root + Bin + "/tester"); !os.IsNotExist(err) {
		t.Errorf("a command was left: %v", err)
	}
}

// A package's install script brings the binary: npm runs it only where it is named (12), or not with ignore-scripts.
func TestNPMTrapTheInstallScript(t *testing.T) {
	t.Parallel()
	needsNPM(t)
	reg := newRegistry(t)
	command := `[ -e "$(dirname "$(readlink -f "$0")")/native" ] && echo 2.0.0 || echo "native binary not installed"`
	reg.add(t, "tester", "2.0.0", command, map[string]any{"scripts": map[string]string{"postinstall": "touch native"}}, nil)
	for _, runs := range []bool{true, false} {
		s := newSystem(t)
		own := definition("tester", func(a *agents.Agent) { a.Source.InstallScripts = runs })
		got, err := s.install(t, Options{Agents: map[string]string{"tester": ""}, Definitions: []agents.Agent{own}, NPMRegistry: reg.URL})
		if runs && (err != nil || got.Agents["tester"].Version != "2.0.0") {
			t.Errorf("with its install script: %+v, %v", got, err)
		}
		if !runs && (err == nil || !strings.Contains(err.Error(), "doesn't say its version") || !strings.Contains(err.Error(), "native binary not installed")) {
			t.Errorf("without its install script the command is dead, and the answer was %+v, %v", got, err)
		}
	}
}

// An installation that ends with 0 and holds another version than the pin.
func TestNPMTrapACommandThatIsAnotherVersion(t *testing.T) {
	t.Parallel()
	needsNPM(t)
	reg := newRegistry(t)
	reg.add(t, "tester", "2.0.0", "echo 1.9.9", nil, nil)
	s := newSystem(t)
	_, err := s.install(t, Options{Agents: map[string]string{"tester": ""}, Definitions: []agents.Agent{definition("tester", nil)}, NPMRegistry: reg.URL})
	if err == nil || !strings.Contains(err.Error(), "tester says that it is 1.9.9, wanted 2.0.0") {
		t.Errorf("got %v", err)
	}
}

func TestAPackageThatIsNotThere(t *testing.T) {
	t.Parallel()
	needsNPM(t)
	s := newSystem(t)
	_, err := s.install(t, Options{Agents: map[string]string{"tester": ""}, Definitions: []agents.Agent{definition("tester", nil)}, NPMRegistry: newRegistry(t).URL})
	var step *Error
	if !errors.As(err, &step) || step.Agent != "tester" || !strings.Contains(step.Output, "404") {
		t.Errorf("got %v", err)
	}
}

func TestBinariesAndRuntimesAreCheckedByTheirSums(t *testing.T) {
	t.Parallel()
	machine, err := exec.CommandContext(t.Context(), "uname", "-m").Output()
	if err != nil {
		t.Skipf("there is no uname: %v", err)
	}
	archive := pack(t, map[string]string{"tester": "#!/bin/sh\necho tester 2.0.0\n"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if want := "/v2.0.0/tester-" + strings.TrimSpace(string(machine)) + ".tar.gz"; r.URL.Path != want {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(archive)
	}))
	t.Cleanup(server.Close)
	sum := sha256.Sum256(archive)
	own := definition("tester", func(a *agents.Agent) {
		a.Source = agents.Source{Kind: agents.Binary, Version: "2.0.0", URL: "https://example.com/v{version}/x"}
	})
	options := func(sum string) Options {
		return Options{
			Agents: map[string]string{"tester": ""}, Definitions: []agents.Agent{own},
			Binaries: map[string]Download{"tester": {URL: server.URL + "/v{version}/tester-{arch}.tar.gz", SHA256: sum}},
		}
	}
	s := newSystem(t)
	_, err = s.install(t, options(strings.Repeat("0", 64)))
	if err == nil || !strings.Contains(err.Error(), "checksum mismatch") || !strings.Contains(err.Error(), hex.EncodeToString(sum[:])) {
		t.Errorf("a wrong checksum: %v", err)
	}
	if left, err := filepath.Glob(s.root + Root + "/*"); err != nil || len(left) > 0 {
		t.Errorf("after a wrong checksum there is %v, %v", left, err)
	}
	got, err := s.install(t, options(hex.EncodeToString(sum[:])))
	if err != nil || got.Agents["tester"].Version != "2.0.0" || got.Agents["tester"].Checksum != hex.EncodeToString(sum[:]) {
		t.Fatalf("got %+v, %v", got, err)
	}

	// The same from a file of this machine, for a system without a network.
	local := filepath.Join(t.TempDir(), "tester.tar.gz")
	if err := os.WriteFile(local, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	o := options(hex.EncodeToString(sum[:]))
	o.Binaries["tester"] = Download{File: local, SHA256: hex.EncodeToString(sum[:])}
	if got, err = newSystem(t).install(t, o); err != nil || got.Agents["tester"].Version != "2.0.0" {
		t.Errorf("from a file: %+v, %v", got, err)
	}
}

// nodeArchive is laid out as Node.js's, and its npm makes the command of any package.
func nodeArchive(t *testing.T) []byte {
	t.Helper()
	return pack(t, map[string]string{
		"node-v22.1.0-linux-x64/bin/node": "#!/bin/sh\necho v22.1.0\n",
		"node-v22.1.0-linux-x64/bin/npm":  "#!/bin/sh\nfor p; do case $last in --prefix) prefix=$p ;; esac; last=$p; done\nmkdir -p \"$prefix/bin\"\nprintf '#!/bin/sh\\necho 2.0.0\\n' >\"$prefix/bin/tester\"\nchmod 755 \"$prefix/bin/tester\"\n",
		"node-v22.1.0-linux-x64/bin/npx":  "#!/bin/sh\n",
	})
}

func TestNodeIsInstalledFromAGivenSourceAndItsFloorIsKept(t *testing.T) {
	t.Parallel()
	archive := nodeArchive(t)
	local := filepath.Join(t.TempDir(), "node.tar.gz")
	if err := os.WriteFile(local, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(archive)
	for floor, fault := range map[string]string{"22.1.0": "", "22.2.0": "it needs Node.js 22.2.0 or later and 22.1.0 is there"} {
		own := definition("tester", func(a *agents.Agent) { a.Needs.Node = floor })
		got, err := newSystem(t).install(t, Options{
			Agents: map[string]string{"tester": ""}, Definitions: []agents.Agent{own},
			Node: Download{Version: "22.1.0", File: local, SHA256: hex.EncodeToString(sum[:])},
		})
		switch {
		case fault == "" && (err != nil || got.Runtimes["node"] != "22.1.0"):
			t.Errorf("got %+v, %v", got, err)
		case fault != "" && (err == nil || !strings.Contains(err.Error(), fault)):
			t.Errorf("got %v, wanted %s", err, fault)
		}
	}
}

func TestOptionsAreCheckedBeforeAnythingIsAsked(t *testing.T) {
	t.Parallel()
	never := runnerFunc(func(remote.Script) (remote.Result, error) {
		t.Error("the system was asked")
		return remote.Result{}, nil
	})
	for want, o := range map[string]Options{
		`did you mean "claude-code"`:         {Agents: map[string]string{"claude": ""}},
		`"latest" is no version`:             {Agents: map[string]string{"codex": "latest"}},
		`sha256 must be given`:               {Agents: map[string]string{"goose": ""}},
		`pi is not among the agents`:         {Agents: map[string]string{"codex": ""}, Binaries: map[string]Download{"pi": {}}},
		`exactly one of url and file`:        {Node: Download{Version: "22.0.0", SHA256: strings.Repeat("a", 64)}},
		`is no http or https URL`:            {NPMRegistry: "ftp://x"},
		`it must be what the archive holds`:  {UV: Download{URL: "https://example.com/uv.tar.gz", SHA256: strings.Repeat("a", 64)}},
		`binary:`:                            {Definitions: []agents.Agent{{Name: "x", Source: agents.Source{Kind: agents.Installed}, Headless: agents.Headless{PromptVia: agents.ViaStdin}}}},
		`its version can't be asked for, so`: {Agents: map[string]string{"x": "1.0.0"}, Definitions: []agents.Agent{{Name: "x", Binary: "x", Source: agents.Source{Kind: agents.Installed}, Headless: agents.Headless{PromptVia: agents.ViaStdin}}}},
	} {
		if _, err := Run(t.Context(), never, o, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, wanted %s", o, err, want)
		}
	}
}

type runnerFunc func(remote.Script) (remote.Result, error)

func (f runnerFunc) Run(_ context.Context, s remote.Script) (remote.Result, error) { return f(s) }

// A connection that breaks is no success, and names what was being done.
func TestABrokenConnectionNamesItsStep(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection broke")
	_, err := Run(t.Context(), runnerFunc(func(s remote.Script) (remote.Result, error) {
		if strings.HasPrefix(s.Text, "# npm.sh") {
			return remote.Result{}, broken
		}
		return remote.Result{Stdout: []byte("v22.23.3")}, nil
	}), Options{Agents: map[string]string{"codex": ""}}, nil)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "codex: install the package") {
		t.Errorf("got %v", err)
	}
}
