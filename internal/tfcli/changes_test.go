package tfcli

import (
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
)

func TestAChangeShowsWhatDiffersAndNothingElse(t *testing.T) {
	t.Parallel()
	change := &tfjson.Change{
		Before:          map[string]any{"memory": 4096.0, "hostname": "a", "password": "old", "status": "stopped"},
		After:           map[string]any{"memory": 512.0, "hostname": "a", "password": "new"},
		AfterUnknown:    map[string]any{"status": true},
		BeforeSensitive: map[string]any{"password": true},
		AfterSensitive:  map[string]any{"password": true},
	}
	got := Change{Address: "x.y", Action: "update", Attributes: attributes(change)}.String()
	want := "x.y: update memory 4096 -> 512, password (sensitive) -> (sensitive)"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAnAttributeWithAnUnknownPartIsLeftOut(t *testing.T) {
	t.Parallel()
	change := &tfjson.Change{
		Before:       map[string]any{"network": map[string]any{"mac": "a"}},
		After:        map[string]any{"network": map[string]any{}},
		AfterUnknown: map[string]any{"network": map[string]any{"mac": true}},
	}
	if got := attributes(change); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestNoChangesReadAsSuch(t *testing.T) {
	t.Parallel()
	if got := (Changes{}).String(); got != "no changes" {
		t.Errorf("got %q", got)
	}
}
