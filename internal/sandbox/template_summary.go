package sandbox

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// TemplateSummary is what a template's marker says about it: the API can't read files, so that what a configuration
// decides by stands there. The whole manifest is the file /etc/sandbox/template.json inside.
type TemplateSummary struct {
	// Name is the template's name, the same for all of its generations.
	Name string
	// Build tells one generation from another; a sandbox's marker names the one that it was cloned from.
	Build string
	// Built is when the build ended, to the second.
	Built time.Time
	// Grade ("A+" to "F") and Score (0 to 100) are the audit's; Grade is empty where none was made.
	Grade string
	Score int
	// Agents are the coding agents inside: version by name.
	Agents map[string]string
	// Source is what it was made of: a template file's volume id, an image reference, or "ct/<vmid>".
	Source string
	// Manifest is the SHA-256 of /etc/sandbox/template.json, in hex.
	Manifest string
}

// The keys of a template's marker, besides template=<own vmid>:<build>.
const (
	summaryName     = "name"
	summaryBuilt    = "built"
	summaryGrade    = "grade"  // <grade>:<score>
	summaryAgents   = "agents" // <name>:<version>/<name>:<version>
	summaryManifest = "manifest"
)

// longestAgents bounds the list of agents in a marker, in characters; what is beyond is in the manifest alone.
const longestAgents = 400

// Summary reads the summary out of a template's marker; false for a guest that is no template of ours.
func (m *Marker) Summary() (TemplateSummary, bool) {
	if m == nil || m.Kind != KindTemplate {
		return TemplateSummary{}, false
	}
	s := TemplateSummary{Build: m.TemplateBuild, Source: m.TemplateFile, Agents: map[string]string{}}
	for _, kv := range m.Extra {
		key, value, _ := strings.Cut(kv, "=")
		switch key {
		case summaryName:
			s.Name = value
		case summaryBuilt:
			s.Built, _ = time.Parse(time.RFC3339, value) // a newer form reads as unknown
		case summaryGrade:
			grade, score, _ := strings.Cut(value, ":")
			s.Grade = grade
			s.Score, _ = strconv.Atoi(score)
		case summaryAgents:
			for entry := range strings.SplitSeq(value, "/") {
				if name, version, ok := strings.Cut(entry, ":"); ok {
					s.Agents[name] = version
				}
			}
		case summaryManifest:
			s.Manifest = value
		}
	}
	return s, true
}

// put writes the summary into the marker of the template with an id. A value that can't stand in a marker is left out:
// the manifest has it.
func (s TemplateSummary) put(m *Marker, vmid int) {
	m.TemplateID, m.TemplateBuild = vmid, s.Build
	if validMarkerValue(s.Source) {
		m.TemplateFile = s.Source
	}
	keep := m.Extra[:0:0]
	for _, kv := range m.Extra {
		key, _, _ := strings.Cut(kv, "=")
		if !slices.Contains([]string{summaryName, summaryBuilt, summaryGrade, summaryAgents, summaryManifest}, key) {
			keep = append(keep, kv)
		}
	}
	add := func(key, value string) {
		if validMarkerValue(value) {
			keep = append(keep, key+"="+value)
		}
	}
	add(summaryName, s.Name)
	if !s.Built.IsZero() {
		add(summaryBuilt, markerTime(s.Built))
	}
	if s.Grade != "" {
		add(summaryGrade, s.Grade+":"+strconv.Itoa(s.Score))
	}
	add(summaryAgents, s.agentList())
	add(summaryManifest, s.Manifest)
	m.Extra = keep
}

func (s TemplateSummary) agentList() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Agents)) {
		entry := name + ":" + s.Agents[name]
		if !validMarkerValue(entry) || strings.Contains(entry, "/") {
			continue
		}
		if b.Len()+len(entry)+1 > longestAgents {
			break
		}
		if b.Len() > 0 {
			b.WriteByte('/')
		}
		b.WriteString(entry)
	}
	return b.String()
}
