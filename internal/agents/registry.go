package agents

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/agext/levenshtein"
)

//go:embed registry/*.json
var files embed.FS

var load = sync.OnceValues(func() ([]Agent, error) {
	names, err := fs.Glob(files, "registry/*.json")
	if err != nil {
		return nil, err
	}
	list := make([]Agent, 0, len(names))
	for _, name := range names {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		a, err := Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b Agent) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
})

// Parse reads one agent's record and checks it.
func Parse(raw []byte) (Agent, error) {
	var a Agent
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&a); err != nil {
		return Agent{}, err
	}
	return a, a.Check()
}

// All returns the registry, by name.
func All() []Agent {
	list, err := load()
	if err != nil {
		panic("agents: the embedded registry is broken: " + err.Error()) // a test reads it whole
	}
	return slices.Clone(list)
}

// Names returns the names of all agents.
func Names() []string {
	list := All()
	names := make([]string, len(list))
	for i, a := range list {
		names[i] = a.Name
	}
	return names
}

// UnknownError is a name that no agent has.
type UnknownError struct {
	Name string
	// Nearest is the name that was probably meant; empty when none is near.
	Nearest string
}

func (e *UnknownError) Error() string {
	if e.Nearest != "" {
		return fmt.Sprintf("no agent is called %q; did you mean %q?", e.Name, e.Nearest)
	}
	return fmt.Sprintf("no agent is called %q; known are %s", e.Name, strings.Join(Names(), ", "))
}

// Find returns the agent of that name. The error of an unknown one names the
// nearest.
func Find(name string) (Agent, error) {
	list := All()
	if i := slices.IndexFunc(list, func(a Agent) bool { return a.Name == name }); i >= 0 {
		return list[i], nil
	}
	return Agent{}, &UnknownError{Name: name, Nearest: nearest(name, list)}
}

// nearest looks at the command's name too: people know "claude" or "cn".
func nearest(name string, list []Agent) string {
	name = strings.ToLower(strings.TrimSpace(name))
	best, distance := "", 4 // farther is no longer a typing error
	for _, a := range list {
		if name != "" && (name == a.Binary || name == a.Source.Package) {
			return a.Name
		}
		if d := levenshtein.Distance(name, a.Name, nil); d < distance && 2*d <= len(name) {
			best, distance = a.Name, d
		}
	}
	return best
}

// joinOr is "a, b or c".
func joinOr(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}
