package sandbox

import (
	"reflect"
	"testing"
	"time"
)

func TestATemplatesSummarySurvivesItsMarker(t *testing.T) {
	t.Parallel()
	want := TemplateSummary{
		Name: "agents", Build: "20261201t120000-abcd", Built: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), Grade: "A+", Score: 98,
		Agents: map[string]string{"claude-code": "2.1.332", "codex": "0.171.0"}, Source: "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst",
		Manifest: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
	}
	m := Marker{Owner: "ci", Claim: "abcdefghijklmnopqrstuvwxyz", VMID: 9001, Kind: KindTemplate, Phase: PhaseReady, Extra: []string{"later=1"}}
	want.put(&m, 9001)
	want.put(&m, 9001) // a second time changes nothing
	text, err := JoinDescription("for users", &m)
	if err != nil {
		t.Fatal(err)
	}
	_, read := SplitDescription(text + "\n")
	got, ok := read.Summary()
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("read back %v %+v, want %+v", ok, got, want)
	}
	if buildOf := read.TemplateBuild; buildOf != want.Build || read.TemplateID != 9001 {
		t.Errorf("a clone would note template %d:%s", read.TemplateID, buildOf)
	}
	if read.Extra[0] != "later=1" {
		t.Errorf("a key of a newer version was lost: %v", read.Extra)
	}
}

func TestAnAgentThatCantStandInAMarkerIsLeftToTheManifest(t *testing.T) {
	t.Parallel()
	s := TemplateSummary{Name: "x", Agents: map[string]string{"odd": "1 beta", "fine": "1"}}
	m := Marker{Owner: "ci", Claim: "c", VMID: 1, Kind: KindTemplate}
	s.put(&m, 1)
	got, _ := m.Summary()
	if !reflect.DeepEqual(got.Agents, map[string]string{"fine": "1"}) {
		t.Errorf("agents %v", got.Agents)
	}
}
