package sandbox

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/manifest"
)

func exampleSummary() TemplateSummary {
	return TemplateSummary{
		BuildID: "20261201T080000Z", BuiltAt: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC), OS: "debian:12", Profile: "standard", Grade: "A+", Score: 98,
		Source: "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst", Agents: map[string]string{"codex": "0.169.0", "amp": "0.0.1790712063-g1", "odd_one": "1:2.0~rc--1+b2"},
		Digest: strings.Repeat("ab", 32),
	}
}

func TestATemplatesMarkerBringsItsSummaryBack(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]TemplateSummary{
		"whole":              exampleSummary(),
		"minimal":            {BuildID: "b1", Agents: map[string]string{}},
		"an image by digest": {BuildID: "b1", Source: "docker.io/library/debian:12@sha256:" + strings.Repeat("0", 64), Agents: map[string]string{}},
	} {
		m, err := TemplateMarker("team-a", "abcdefghijklmnopqrstuvwxyz", 9001, PhaseReady, s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		whole, err := JoinDescription("weekly", m)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, back := SplitDescription(whole + "\n")
		got, ok := back.Summary()
		if !ok || text != "weekly" || !reflect.DeepEqual(got, s) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", name, back, got, s)
		}
		if !back.Matches("team-a", "abcdefghijklmnopqrstuvwxyz", 9001) || back.TemplateBuild != s.BuildID {
			t.Errorf("%s: %v", name, back)
		}
	}
}

func TestTheSummaryIsThatOfTheManifest(t *testing.T) {
	t.Parallel()
	m := manifest.Manifest{
		BuildID: "b7", BuiltAt: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC), Source: manifest.Source{Kind: "oci", Reference: "x"}, OS: manifest.OS{ID: "debian", Version: "13"}, Profile: "strict",
		Agents: map[string]manifest.Agent{"pi": {Version: "1.6.0"}}, Audit: &manifest.Audit{Score: 91, Grade: "A"},
	}
	file, err := m.Render()
	if err != nil {
		t.Fatal(err)
	}
	want := TemplateSummary{BuildID: "b7", BuiltAt: m.BuiltAt, OS: "debian:13", Source: "x", Profile: "strict", Grade: "A", Score: 91, Agents: map[string]string{"pi": "1.6.0"}, Digest: manifest.Digest(file)}
	if got := SummaryOf(m, file); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

// Thirty agents and a long text of the user's fit; what doesn't is refused, not cut.
func TestATemplatesMarkerHasRoom(t *testing.T) {
	t.Parallel()
	s := exampleSummary()
	for i := range 30 {
		s.Agents[fmt.Sprintf("agent-number-%d", i)] = "10.20.30"
	}
	m, err := TemplateMarker("team-a", "abcdefghijklmnopqrstuvwxyz", 9001, PhaseReady, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := JoinDescription(strings.Repeat("x", 6500), m); err != nil {
		t.Error(err)
	}
	if _, err := JoinDescription(strings.Repeat("x", MaxDescription), m); err == nil || !strings.Contains(err.Error(), "8192") {
		t.Errorf("too long a description: %v", err)
	}
	if _, err := TemplateMarker("team-a", "c", 9001, PhaseReady, TemplateSummary{BuildID: "a b"}); err == nil {
		t.Error("a build id with a space was taken")
	}
}

func TestTheMarkerOfASandboxHasNoSummary(t *testing.T) {
	t.Parallel()
	if _, ok := exampleMarker().Summary(); ok {
		t.Error("it has one")
	}
	if _, ok := (*Marker)(nil).Summary(); ok {
		t.Error("no marker has one")
	}
}
