// Package manifest is the post-processor sandbox-manifest: what a template says of itself, as files of this machine.
package manifest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/hcl/v2/hcldec"
	packersdk "github.com/hashicorp/packer-plugin-sdk/packer"
	"github.com/hashicorp/packer-plugin-sdk/template/config"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/manifest"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/builder/lxc"
)

// PostProcessor writes the files.
type PostProcessor struct{ config Config }

var _ packersdk.PostProcessor = (*PostProcessor)(nil)

// ConfigSpec describes the configuration to Packer.
func (p *PostProcessor) ConfigSpec() hcldec.ObjectSpec {
	return p.config.FlatMapstructure().HCL2Spec()
}

// Configure checks the configuration.
func (p *PostProcessor) Configure(raws ...any) error {
	return config.Decode(&p.config, &config.DecodeOpts{PluginType: "sandbox-manifest", Interpolate: true, InterpolateContext: &p.config.ctx}, raws...)
}

// PostProcess writes manifest and bill of materials. The template stays.
func (p *PostProcessor) PostProcess(_ context.Context, ui packersdk.Ui, artifact packersdk.Artifact) (packersdk.Artifact, bool, bool, error) {
	if artifact.BuilderId() != lxc.BuilderID {
		return nil, false, false, fmt.Errorf("sandbox-manifest takes what sandbox-lxc has built, not an artifact of %s", artifact.BuilderId())
	}
	file, _ := artifact.State(lxc.StateManifest).(string)
	name, _ := artifact.State(lxc.StateName).(string)
	if file == "" {
		return nil, false, false, errors.New("the template has no manifest: it was built with communicator = \"none\"")
	}
	m, err := manifest.Parse([]byte(file))
	if err != nil {
		return nil, false, false, err
	}
	output, sbom := p.config.Output, p.config.SBOM
	if output == "" {
		output = name + ".template.json"
	}
	if sbom == "" {
		sbom = name + ".cdx.json"
	}
	bill, err := render(m)
	if err != nil {
		return nil, false, false, fmt.Errorf("make the bill of materials: %w", err)
	}
	for path, text := range map[string][]byte{output: []byte(file), sbom: bill} {
		if err := write(path, text); err != nil {
			return nil, false, false, err
		}
	}
	ui.Say(fmt.Sprintf("Manifest: %s; bill of materials: %s (%d agents, %d packages)", output, sbom, len(m.Agents), len(m.Packages)))
	// The template itself goes on, whatever keep_input_artifact says: without it there is nothing to be described.
	return &described{id: artifact.Id(), name: name, files: []string{output, sbom}}, true, true, nil
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // for others to read
		return err
	}
	return os.WriteFile(path, text, 0o644) //nolint:gosec // for others to read
}

// described are the files that describe a template. They outlive the plugin that holds the template's own artifact, so
// all of it is their own.
type described struct {
	id    string
	name  string
	files []string
}

var _ packersdk.Artifact = (*described)(nil)

// BuilderId is the post-processor's.
func (d *described) BuilderId() string { return "agentsandbox.sandbox.manifest" }

// Id is the template's.
func (d *described) Id() string { return d.id }

// Files are the manifest and the bill of materials.
func (d *described) Files() []string { return d.files }

// String says what is where.
func (d *described) String() string {
	return fmt.Sprintf("Manifest of template %s (%s): %s; bill of materials: %s", d.id, d.name, d.files[0], d.files[1])
}

// State has nothing.
func (d *described) State(string) any { return nil }

// Destroy removes the files, not the template.
func (d *described) Destroy() error {
	var errs []error
	for _, f := range d.files {
		errs = append(errs, os.Remove(f))
	}
	return errors.Join(errs...)
}
