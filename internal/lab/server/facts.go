package server

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

//go:embed facts.json
var factsJSON []byte

// paramFact is what the API says about one parameter.
type paramFact struct {
	Type       string               `json:"type"`
	Format     string               `json:"format"`
	Keys       map[string]paramFact `json:"keys"` // a property string's keys: "name=eth0,bridge=vmbr0"
	Pattern    string               `json:"pattern"`
	Enum       []string             `json:"enum"`
	Requires   string               `json:"requires"`
	Min        *float64             `json:"min"`
	Max        *float64             `json:"max"`
	MinLen     *float64             `json:"minlen"`
	MaxLen     *float64             `json:"maxlen"`
	Optional   bool                 `json:"optional"`
	DefaultKey bool                 `json:"defaultkey"`
}

// methodFact is what the API says about one method of one path.
type methodFact struct {
	Params    map[string]paramFact `json:"params"`
	Check     *permExpr            `json:"check"`
	User      string               `json:"user"` // "all": any login; "world": none needed
	Protected bool                 `json:"protected"`
	Node      bool                 `json:"node"` // handled by the node in the path
	Open      bool                 `json:"-"`    // parameters that aren't listed are let through
}

var loadFacts = sync.OnceValue(func() map[string]*methodFact {
	facts := map[string]*methodFact{}
	if err := json.Unmarshal(factsJSON, &facts); err != nil {
		panic(fmt.Sprintf("lab: facts.json: %v", err))
	}
	return facts
})

// indexed says how many numbered parameters of a kind there are: net0 to net31.
var indexed = map[string]int{"net": 32, "mp": 256, "dev": 256, "unused": 256, "link": 8}

var numbered = regexp.MustCompile(`^([a-z]+)(0|[1-9][0-9]*)$`)

// fact finds a parameter's fact; numbered ones stand in the table as net[n].
func (m *methodFact) fact(name string) (paramFact, bool) {
	if f, ok := m.Params[name]; ok {
		return f, !strings.HasSuffix(name, "[n]")
	}
	if kind, ok := splitNumbered(name); ok {
		f, ok := m.Params[kind+"[n]"]
		return f, ok
	}
	return paramFact{}, false
}

// splitNumbered splits net0 into net; false for what isn't numbered or beyond the highest number.
func splitNumbered(name string) (string, bool) {
	m := numbered.FindStringSubmatch(name)
	if m == nil || len(m[2]) > 4 {
		return "", false
	}
	n := 0
	for _, digit := range m[2] {
		n = n*10 + int(digit-'0')
	}
	return m[1], n < indexed[m[1]]
}

var (
	patternsMu sync.Mutex
	patterns   = map[string]*regexp.Regexp{}
)

// matches applies a pattern of the API, which is a Perl regular expression for the whole value.
func matches(pattern, value string) bool {
	patternsMu.Lock()
	re := patterns[pattern]
	if re == nil {
		goPattern := strings.NewReplacer("(?^:", "(?:", "(?^i:", "(?i:", "{0,4096}", "*").Replace(pattern) // Go repeats up to 1000
		re = regexp.MustCompile(`\A(?:` + goPattern + `)\z`)
		patterns[pattern] = re
	}
	patternsMu.Unlock()
	return re.MatchString(value)
}
