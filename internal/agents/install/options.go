package install

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/agents"
)

// Where things go.
const (
	// Root holds a folder per agent, and the runtimes.
	Root = "/opt/agents"
	// Bin is where everybody finds the commands.
	Bin = "/usr/local/bin"
	// Record is what was installed, as the template's manifest takes it over.
	Record = "/etc/sandbox/agents.json"
)

// Options say what is wanted.
type Options struct {
	// Agents maps names to versions; an empty one is the registry's pin.
	Agents map[string]string
	// Definitions are agents that the registry doesn't have, or has differently.
	Definitions []agents.Agent
	// Node and UV are where Node.js and uv come from when agents need them; a zero
	// Download means that the system must have them.
	Node, UV Download
	// Binaries are the archives of agents that are one, by name: at least their
	// checksums, and where the registry's URL can't be reached, another one.
	Binaries map[string]Download
	// NPMRegistry and PyPIIndex are mirrors, as URLs; empty means the tools' own.
	NPMRegistry, PyPIIndex string
}

// Download is a file with a known content.
type Download struct {
	// Version is what it holds, such as "22.23.3" of Node.js.
	Version string
	// URL is fetched by the system itself; {version} and {arch} are replaced.
	URL string
	// File is read here and sent instead.
	File string
	// SHA256 in hex, always needed.
	SHA256 string
}

func (d Download) empty() bool { return d == Download{} }

var (
	sumPattern     = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
	pinPattern     = regexp.MustCompile(`^[0-9][0-9A-Za-z.+-]*$`)
	mirrorPattern  = regexp.MustCompile(`^https?://[^\s'"]+$`)
	addressPattern = regexp.MustCompile(`^(https?|file)://[^\s'"]+$`)
)

func (d Download) check(what string) error {
	var problems []error
	if (d.URL == "") == (d.File == "") {
		problems = append(problems, fmt.Errorf("%s: exactly one of url and file is needed", what))
	}
	if d.URL != "" && !addressPattern.MatchString(d.URL) {
		problems = append(problems, fmt.Errorf("%s: %q is no http, https or file URL", what, d.URL))
	}
	if !sumPattern.MatchString(d.SHA256) {
		problems = append(problems, fmt.Errorf("%s: sha256 must be given, 64 hexadecimal digits: what isn't checked isn't installed", what))
	}
	return errors.Join(problems...)
}

// wanted is one agent at one version.
type wanted struct {
	agents.Agent
	version  string
	download Download
}

// Check says what is wrong, all of it, before anything is asked of a system.
func (o Options) Check() error {
	_, err := o.resolve()
	return err
}

// resolve lists the agents by name.
func (o Options) resolve() ([]wanted, error) {
	var problems []error
	own := map[string]agents.Agent{}
	for _, a := range o.Definitions {
		if err := a.Check(); err != nil {
			problems = append(problems, fmt.Errorf("definition of %q: %w", a.Name, err))
		}
		own[a.Name] = a
	}
	var list []wanted
	for _, name := range slices.Sorted(maps.Keys(o.Agents)) {
		a, ok := own[name]
		if !ok {
			var err error
			if a, err = agents.Find(name); err != nil {
				problems = append(problems, err)
				continue
			}
		}
		w := wanted{Agent: a, version: o.Agents[name]}
		if w.version == "" {
			w.version = a.Source.Version
		}
		if err := o.complete(&w); err != nil {
			problems = append(problems, err)
		}
		list = append(list, w)
	}
	for name := range o.Binaries {
		if _, ok := o.Agents[name]; !ok {
			problems = append(problems, fmt.Errorf("binaries: %s is not among the agents", name))
		}
	}
	for what, d := range map[string]Download{"node": o.Node, "uv": o.UV} {
		if d.empty() {
			continue
		}
		if err := d.check(what); err != nil {
			problems = append(problems, err)
		}
		if !pinPattern.MatchString(d.Version) {
			problems = append(problems, fmt.Errorf("%s: version %q is no version; it must be what the archive holds", what, d.Version))
		}
	}
	for what, url := range map[string]string{"npm_registry": o.NPMRegistry, "pypi_index": o.PyPIIndex} {
		if url != "" && !mirrorPattern.MatchString(url) {
			problems = append(problems, fmt.Errorf("%s: %q is no http or https URL", what, url))
		}
	}
	return list, errors.Join(problems...)
}

func (o Options) complete(w *wanted) error {
	kind := w.Source.Kind
	if kind == agents.Installed {
		if w.version != "" && len(w.Version.Arguments) == 0 {
			return fmt.Errorf("%s: its version can't be asked for, so it can't be pinned", w.Name)
		}
		return nil
	}
	if !pinPattern.MatchString(w.version) {
		return fmt.Errorf("%s: %q is no version; a range or a tag such as \"latest\" is no pin", w.Name, w.version)
	}
	if kind != agents.Binary {
		return nil
	}
	w.download = o.Binaries[w.Name]
	if w.download.URL == "" && w.download.File == "" {
		w.download.URL = w.Source.URL
	}
	if w.download.SHA256 == "" {
		for _, sum := range w.Source.SHA256 { // the registry's, where it has one for the pin
			if w.version == w.Source.Version {
				w.download.SHA256 = sum
			}
		}
	}
	w.download.Version = w.version
	return w.download.check(w.Name)
}

// fill replaces {version} and {arch}.
func fill(url, version, arch string) string {
	return strings.NewReplacer("{version}", version, "{arch}", arch).Replace(url)
}
