package manifest_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/manifest"
)

func example() manifest.Manifest {
	return manifest.Manifest{
		Version: manifest.Version, BuildID: "20261201T080000Z", Name: "agents", BuiltAt: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC), Builder: "0.1.0",
		Source: manifest.Source{Kind: "os_template", Reference: "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst", Checksum: "sha256:00"},
		OS:     manifest.OS{ID: "debian", Version: "12"}, Profile: "standard",
		Agents: map[string]manifest.Agent{"codex": {Version: "0.169.0", Binary: "/usr/local/bin/codex", Bytes: 1 << 28}},
		Audit:  &manifest.Audit{Score: 98, Grade: "A+", Unknown: []string{"G9.2"}},
	}
}

func TestAManifestIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	file, err := example().Render()
	if err != nil {
		t.Fatal(err)
	}
	got, err := manifest.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, example()) {
		t.Errorf("got %+v", got)
	}
	if again, _ := got.Render(); manifest.Digest(again) != manifest.Digest(file) {
		t.Error("the same manifest has two digests")
	}
}

func TestAManifestThatCantBeRightIsRefused(t *testing.T) {
	t.Parallel()
	good, err := example().Render()
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{
		"empty":             "",
		"not JSON":          "built by hand",
		"a newer format":    strings.Replace(string(good), `"version": 1`, `"version": 2`, 1),
		"no build id":       strings.Replace(string(good), `"build_id": "20261201T080000Z"`, `"build_id": ""`, 1),
		"no source":         strings.Replace(string(good), `"kind": "os_template"`, `"kind": ""`, 1),
		"a relative binary": strings.Replace(string(good), `"/usr/local/bin/codex"`, `"codex"`, 1),
		"too long":          string(good) + strings.Repeat(" ", manifest.MaxSize),
	} {
		if _, err := manifest.Parse([]byte(file)); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
	if _, err := (manifest.Manifest{BuildID: "1"}).Render(); err == nil {
		t.Error("a manifest without a source was written")
	}
}
