package manifest

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/package-url/packageurl-go"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/manifest"
)

// render makes the bill of materials of a manifest.
func render(m manifest.Manifest) ([]byte, error) {
	bom := cdx.NewBOM()
	root := &cdx.Component{BOMRef: "template", Type: cdx.ComponentTypeContainer, Name: m.Name, Version: m.BuildID}
	if m.Source.Reference != "" {
		root.Properties = &[]cdx.Property{{Name: "sandbox:source:kind", Value: m.Source.Kind}, {Name: "sandbox:source", Value: m.Source.Reference}}
		if m.Source.Checksum != "" {
			*root.Properties = append(*root.Properties, cdx.Property{Name: "sandbox:source:checksum", Value: m.Source.Checksum})
		}
	}
	if a := m.Audit; a != nil {
		*root.Properties = append(*root.Properties, cdx.Property{Name: "sandbox:audit:grade", Value: a.Grade})
	}
	bom.Metadata = &cdx.Metadata{
		Timestamp: m.BuiltAt.UTC().Format(time.RFC3339), Component: root,
		Tools: &cdx.ToolsChoice{Components: &[]cdx.Component{{Type: cdx.ComponentTypeApplication, Name: "packer-plugin-sandbox", Version: strings.TrimPrefix(m.Builder, "packer-plugin-sandbox ")}}},
	}
	var parts []cdx.Component
	if m.OS.ID != "" {
		parts = append(parts, cdx.Component{BOMRef: "os", Type: cdx.ComponentTypeOS, Name: m.OS.ID, Version: m.OS.Version})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Agents)) {
		parts = append(parts, agent(name, m.Agents[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Runtimes)) {
		parts = append(parts, cdx.Component{BOMRef: "runtime:" + name, Type: cdx.ComponentTypeApplication, Name: name, Version: m.Runtimes[name]})
	}
	for _, p := range m.Packages {
		parts = append(parts, distributed(p, m.OS))
	}
	bom.Components = &parts
	refs := make([]string, 0, len(parts))
	for _, p := range parts {
		refs = append(refs, p.BOMRef)
	}
	bom.Dependencies = &[]cdx.Dependency{{Ref: "template", Dependencies: &refs}}
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// agent is a coding agent. Its source is "npm:@openai/codex", "pypi:aider-chat" or an address.
func agent(name string, a manifest.Agent) cdx.Component {
	c := cdx.Component{BOMRef: "agent:" + name, Type: cdx.ComponentTypeApplication, Name: name, Version: a.Version}
	kind, pkg, found := strings.Cut(a.Source, ":")
	if found {
		switch kind {
		case "npm":
			space, base, scoped := strings.Cut(pkg, "/")
			if !scoped {
				space, base = "", pkg
			}
			c.PackageURL = packageurl.NewPackageURL(packageurl.TypeNPM, space, base, a.Version, nil, "").ToString()
		case "pypi":
			c.PackageURL = packageurl.NewPackageURL(packageurl.TypePyPi, "", pkg, a.Version, nil, "").ToString()
		}
	}
	if sum, ok := strings.CutPrefix(a.Checksum, "sha256:"); ok {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}}
	}
	return c
}

// distributed is a package of the distribution.
func distributed(p manifest.Package, os manifest.OS) cdx.Component {
	kind := packageurl.TypeDebian
	if os.ID == "alpine" {
		kind = packageurl.TypeApk
	}
	qualifiers := packageurl.Qualifiers{}
	if p.Architecture != "" {
		qualifiers = append(qualifiers, packageurl.Qualifier{Key: "arch", Value: p.Architecture})
	}
	if os.ID != "" && os.Version != "" {
		qualifiers = append(qualifiers, packageurl.Qualifier{Key: "distro", Value: os.ID + "-" + os.Version})
	}
	url := packageurl.NewPackageURL(kind, os.ID, p.Name, p.Version, qualifiers, "").ToString()
	return cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: url}
}
