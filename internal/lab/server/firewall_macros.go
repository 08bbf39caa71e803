package server

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

//go:embed firewall_macros.txt
var macrosText string

// fwMacro is a name for traffic of one kind. A packet that fits one of the matches fits.
type fwMacro struct {
	name, descr string
	matches     []macroMatch
}

// macroMatch is one kind of packet: fields of a rule.
type macroMatch struct{ proto, dport, sport, icmpType string }

// macros are all, by name. Each is a line of the file: name, matches, description.
var macros = sync.OnceValue(func() []*fwMacro {
	var out []*fwMacro
	for _, line := range strings.Split(strings.TrimSpace(macrosText), "\n") {
		columns := strings.Split(line, "\t")
		if len(columns) != 3 {
			panic(fmt.Sprintf("lab: firewall: macro %q", line))
		}
		m := &fwMacro{name: columns[0], descr: columns[2]}
		for _, text := range strings.Fields(columns[1]) {
			m.matches = append(m.matches, parseMacroMatch(text))
		}
		out = append(out, m)
	}
	return out
})

// parseMacroMatch reads "tcp/80:85", "udp/67<67:68" with source ports, "icmp/echo-request", "47".
func parseMacroMatch(text string) macroMatch {
	proto, ports, _ := strings.Cut(text, "/")
	if icmpVersion(proto) != 0 {
		return macroMatch{proto: proto, icmpType: ports}
	}
	dport, sport, _ := strings.Cut(ports, "<")
	return macroMatch{proto: proto, dport: dport, sport: sport}
}

var macrosByName = sync.OnceValue(func() map[string]*fwMacro {
	out := map[string]*fwMacro{}
	for _, m := range macros() {
		out[strings.ToLower(m.name)] = m
	}
	return out
})

// findMacro finds a macro by its name in any case; nil if there is none.
func findMacro(name string) *fwMacro { return macrosByName()[strings.ToLower(name)] }

// for an IP version: those of a macro's matches that can be in it; 0 is both.
func (m *fwMacro) forVersion(version int) []macroMatch {
	var out []macroMatch
	for _, match := range m.matches {
		if v := icmpVersion(match.proto); v == 0 || version == 0 || v == version {
			out = append(out, match)
		}
	}
	return out
}

// verify refuses a rule that says otherwise what the macro says already.
func (m *fwMacro) verify(k *ruleCheck, rule map[string]string) {
	for _, match := range m.forVersion(k.version) {
		for _, f := range []struct{ name, value string }{
			{"proto", match.proto}, {"dport", match.dport}, {"sport", match.sport}, {"icmp-type", match.icmpType},
		} {
			if given := rule[f.name]; given != "" && f.value != "" && given != f.value {
				k.add(f.name, "parameter '%s' already define in macro (value = '%s')", f.name, f.value)
			}
		}
	}
}
