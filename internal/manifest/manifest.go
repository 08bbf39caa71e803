// Package manifest is what a template says of itself: how and from what it was
// built, and what is in it. The whole stands in the template as
// /etc/sandbox/template.json; a summary of it in the template's marker, because
// the API can't read files.
//
// A manifest comes from inside a guest. Parse takes it for what it is: text that
// anybody who was root in there may have written.
package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// Path is where a template has its manifest, root's, mode 0644.
	Path = "/etc/sandbox/template.json"
	// Version is the format's; a higher one may mean something else.
	Version = 1
	// MaxSize is how many bytes of a manifest are read.
	MaxSize = 4 << 20
)

// Manifest is a template's account of itself.
type Manifest struct {
	Version int `json:"version"`
	// BuildID is the template's generation: the same in the marker.
	BuildID string    `json:"build_id"`
	Name    string    `json:"name,omitempty"`
	BuiltAt time.Time `json:"built_at"`
	// Builder is the plugin's version.
	Builder string `json:"builder,omitempty"`
	Source  Source `json:"source"`
	OS      OS     `json:"os"`
	// Profile is the hardening's: strict, standard or docker.
	Profile string           `json:"profile,omitempty"`
	Agents  map[string]Agent `json:"agents,omitempty"`
	// Runtimes are the interpreters that were installed for agents: node, python.
	Runtimes map[string]string `json:"runtimes,omitempty"`
	Packages []Package         `json:"packages,omitempty"`
	Audit    *Audit            `json:"audit,omitempty"`
}

// Source is what the template was built from.
type Source struct {
	// Kind is os_template, template_url, clone_vm or oci.
	Kind string `json:"kind"`
	// Reference is the volume id, URL, vmid or image.
	Reference string `json:"reference"`
	// Checksum is "sha256:…" where it is known.
	Checksum string `json:"checksum,omitempty"`
}

// OS is the distribution, as /etc/os-release names it ("debian", "12").
type OS struct {
	ID      string `json:"id"`
	Version string `json:"version"`
}

// Agent is an installed coding agent, by its name in the registry.
type Agent struct {
	Version string `json:"version"`
	// Binary is its absolute path.
	Binary string `json:"binary,omitempty"`
	// Source is where it came from: "npm:@openai/codex".
	Source   string `json:"source,omitempty"`
	Checksum string `json:"checksum,omitempty"`
	// Bytes is what it takes on the disk.
	Bytes int64 `json:"bytes,omitempty"`
}

// Package is a package of the distribution.
type Package struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture,omitempty"`
}

// Audit is the result of the audit that the template passed.
type Audit struct {
	Score int    `json:"score"`
	Grade string `json:"grade"`
	// Failed and Unknown are ids of checks.
	Failed  []string `json:"failed,omitempty"`
	Unknown []string `json:"unknown,omitempty"`
}

// Render is the manifest's file.
func (m Manifest) Render() ([]byte, error) {
	m.Version = Version
	m.BuiltAt = m.BuiltAt.UTC().Truncate(time.Second)
	if err := m.check(); err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}

// Digest is the SHA-256 of a manifest's file in hex, by which a marker names it.
func Digest(file []byte) string {
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:])
}

// Parse reads a manifest's file.
func Parse(file []byte) (Manifest, error) {
	if len(file) > MaxSize {
		return Manifest{}, fmt.Errorf("manifest: %d bytes, at most %d are read", len(file), MaxSize)
	}
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(file, &head); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	if head.Version != Version {
		return Manifest{}, fmt.Errorf("manifest: its format is version %d, this program knows %d", head.Version, Version)
	}
	var m Manifest
	if err := json.NewDecoder(bytes.NewReader(file)).Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	return m, m.check()
}

func (m Manifest) check() error {
	switch {
	case m.BuildID == "":
		return errors.New("manifest: no build id")
	case m.Source.Kind == "" || m.Source.Reference == "":
		return errors.New("manifest: no source")
	case m.BuiltAt.IsZero():
		return errors.New("manifest: no build time")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Agents)) {
		if a := m.Agents[name]; name == "" || a.Version == "" || a.Binary != "" && !strings.HasPrefix(a.Binary, "/") {
			return fmt.Errorf("manifest: agent %q: version %q, binary %q", name, a.Version, a.Binary)
		}
	}
	return nil
}
