package sandbox

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/manifest"
)

// The marker of a template names its own vmid and its build (the generation, that
// clones remember), and carries a summary of its manifest, because the API can't
// read files:
//
//	kind=template phase=ready template=9000:20261201T080000Z built=2026-12-01T08:00:00Z os=debian:12
//	profile=standard grade=A score=97 agents=codex:0.169.0+opencode:1.18.33 source=local:vztmpl/debian-12…
//	sha=<SHA-256 of the manifest's file>
//
// What a value may not hold is written as "_" and two hex digits; so is "_".

// TemplateSummary is what a template's marker says of its manifest.
type TemplateSummary struct {
	BuildID string
	BuiltAt time.Time
	// OS is "debian:12".
	OS string
	// Source is what it was built from: a volume id, URL or image.
	Source  string
	Profile string // of the hardening
	// Grade and Score are the audit's at the build; Grade is empty when it had none.
	Grade string
	Score int
	// Agents are versions by name.
	Agents map[string]string
	// Digest is the SHA-256 of the manifest's file in hex: what a clone's
	// /etc/sandbox/template.json must have.
	Digest string
}

// SummaryOf sums a manifest up. file is its rendered form.
func SummaryOf(m manifest.Manifest, file []byte) TemplateSummary {
	s := TemplateSummary{
		BuildID: m.BuildID, BuiltAt: m.BuiltAt, Source: m.Source.Reference, Profile: m.Profile,
		Agents: map[string]string{}, Digest: manifest.Digest(file),
	}
	if m.OS.ID != "" {
		s.OS = m.OS.ID + ":" + m.OS.Version
	}
	if m.Audit != nil {
		s.Grade, s.Score = m.Audit.Grade, m.Audit.Score
	}
	for name, a := range m.Agents {
		s.Agents[name] = a.Version
	}
	return s
}

// NewBuildID names a build by its time. Two builds of one template in the same
// second have different vmids.
func NewBuildID(now time.Time) string { return now.UTC().Format("20060102T150405Z") }

// Keys of a template's marker.
const (
	keyBuilt   = "built"
	keyOS      = "os"
	keySource  = "source"
	keyProfile = "profile"
	keyGrade   = "grade"
	keyScore   = "score"
	keyAgents  = "agents"
	keyDigest  = "sha"
)

// TemplateMarker is the marker of a template. JoinDescription says when it is too
// long for what else is in the description: each agent takes some 20 characters
// of 8,192.
func TemplateMarker(owner, claim string, vmid int, phase Phase, s TemplateSummary) (*Marker, error) {
	if s.BuildID != "" && (!validMarkerValue(s.BuildID) || strings.Contains(s.BuildID, ":")) {
		return nil, fmt.Errorf("template: the build id %q may hold letters, digits and . _ / + - only", s.BuildID)
	}
	m := &Marker{Owner: owner, Claim: claim, VMID: vmid, Kind: KindTemplate, Phase: phase}
	if s.BuildID != "" {
		m.TemplateID, m.TemplateBuild = vmid, s.BuildID
	}
	put := func(key, value string) {
		if value != "" {
			m.Extra = append(m.Extra, key+"="+value)
		}
	}
	put(keyBuilt, markerTime(s.BuiltAt))
	put(keyOS, escapeMarker(s.OS, ":."))
	put(keyProfile, escapeMarker(s.Profile, ""))
	put(keyGrade, escapeMarker(s.Grade, "+"))
	if s.Grade != "" {
		put(keyScore, strconv.Itoa(s.Score))
	}
	agents := make([]string, 0, len(s.Agents))
	for _, name := range slices.Sorted(maps.Keys(s.Agents)) {
		agents = append(agents, escapeMarker(name, "")+":"+escapeMarker(s.Agents[name], "."))
	}
	put(keyAgents, strings.Join(agents, "+"))
	put(keySource, escapeMarker(s.Source, ":./+"))
	put(keyDigest, escapeMarker(s.Digest, ""))
	return m, nil
}

// Summary is what a template's marker says of its manifest; false when it is no
// template's. A value that can't be read is left out.
func (m *Marker) Summary() (TemplateSummary, bool) {
	if m == nil || m.Kind != KindTemplate {
		return TemplateSummary{}, false
	}
	s := TemplateSummary{Agents: map[string]string{}}
	if m.TemplateID == m.VMID {
		s.BuildID = m.TemplateBuild
	}
	for _, kv := range m.Extra {
		key, value, _ := strings.Cut(kv, "=")
		switch key {
		case keyBuilt:
			s.BuiltAt, _ = time.Parse(time.RFC3339, value)
		case keyOS:
			s.OS = unescapeMarker(value)
		case keyProfile:
			s.Profile = unescapeMarker(value)
		case keyGrade:
			s.Grade = unescapeMarker(value)
		case keyScore:
			s.Score, _ = strconv.Atoi(value)
		case keySource:
			s.Source = unescapeMarker(value)
		case keyDigest:
			s.Digest = unescapeMarker(value)
		case keyAgents:
			for part := range strings.SplitSeq(value, "+") {
				if name, version, ok := strings.Cut(part, ":"); ok {
					s.Agents[unescapeMarker(name)] = unescapeMarker(version)
				}
			}
		}
	}
	return s, true
}

// escapeMarker makes any text a marker's value. Letters, digits and single
// dashes stay, and what also lists.
func escapeMarker(s, also string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', strings.IndexByte(also, c) >= 0:
			b.WriteByte(c)
		case c == '-' && (i == 0 || s[i-1] != '-'):
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "_%02X", c)
		}
	}
	return b.String()
}

func unescapeMarker(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '_' && i+2 < len(s) {
			if raw, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				b.WriteByte(raw[0])
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
