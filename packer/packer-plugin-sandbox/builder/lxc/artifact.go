package lxc

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/packer-plugin-sdk/multistep"
	packersdk "github.com/hashicorp/packer-plugin-sdk/packer"
	registryimage "github.com/hashicorp/packer-plugin-sdk/packer/registry/image"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/access"
)

// Artifact is a template on the server.
type Artifact struct {
	access    access.Config
	ref       sandbox.Ref
	name      string
	source    string
	template  bool
	storage   string
	sealed    sealed
	generated map[string]any
}

var _ packersdk.Artifact = (*Artifact)(nil)

// The keys of Artifact.State, besides the registry's and "generated_data".
const (
	StateNode     = "node"
	StateStorage  = "storage"
	StateName     = "template_name"
	StateBuildID  = "build_id"
	StateManifest = "manifest" // the file's text
	StateAccess   = "access"
)

func (w *work) artifact(state multistep.StateBag) *Artifact {
	generated, _ := state.Get("generated_data").(map[string]any)
	return &Artifact{
		access: w.config.Config, ref: w.build.Ref(), name: w.config.TemplateName, source: w.config.spec(nil).Source.Reference(),
		template: !w.config.SkipConvertToTemplate, storage: w.config.RootFS.StoragePool, sealed: w.sealed, generated: generated,
	}
}

// generatedData is what provisioners and post-processors see as build.NAME.
func (w *work) generatedData() map[string]any {
	return map[string]any{
		"VMID": w.build.Ref().VMID, "Node": w.build.Node(), "TemplateName": w.config.TemplateName,
		"SourceTemplate": w.config.spec(nil).Source.Reference(), "BuildID": w.build.BuildID(),
	}
}

// BuilderId is the artifact's kind.
func (a *Artifact) BuilderId() string { return BuilderID }

// Files is empty: the template is on the server.
func (a *Artifact) Files() []string { return nil }

// Id is the template's vmid.
func (a *Artifact) Id() string { return strconv.Itoa(a.ref.VMID) }

// String says what there is and what comes next.
func (a *Artifact) String() string {
	if !a.template {
		return fmt.Sprintf("Container %d (%s) on node %s, stopped; it was not made a template", a.ref.VMID, a.name, a.ref.Node)
	}
	var with []string
	for _, name := range slices.Sorted(maps.Keys(a.sealed.summary.Agents)) {
		with = append(with, name+" "+a.sealed.summary.Agents[name])
	}
	text := fmt.Sprintf("Template %d (%s, build %s) on node %s", a.ref.VMID, a.name, a.sealed.summary.BuildID, a.ref.Node)
	if len(with) > 0 {
		text += ", with " + strings.Join(with, ", ")
	}
	if g := a.sealed.summary.Grade; g != "" {
		text += fmt.Sprintf(", audit grade %s (%d)", g, a.sealed.summary.Score)
	}
	return text + fmt.Sprintf(`. Next: template_id = %d in the provider block, or data "sandbox_template" { name = %q }`, a.ref.VMID, a.name)
}

// State gives more: see the State… names.
func (a *Artifact) State(name string) any {
	switch name {
	case registryimage.ArtifactStateURI:
		return a.registryImage()
	case "generated_data":
		return a.generated
	case StateNode:
		return a.ref.Node
	case StateStorage:
		return a.storage
	case StateName:
		return a.name
	case StateBuildID:
		return a.sealed.summary.BuildID
	case StateManifest:
		return string(a.sealed.file)
	}
	return nil
}

// registryImage is the metadata for the HCP Packer registry.
func (a *Artifact) registryImage() any {
	labels := map[string]any{"template_name": a.name, "build_id": a.sealed.summary.BuildID, "os": a.sealed.summary.OS}
	for name, v := range a.sealed.summary.Agents {
		labels["agent_"+name] = v
	}
	if a.sealed.summary.Grade != "" {
		labels["audit_grade"] = a.sealed.summary.Grade
	}
	if a.sealed.summary.Digest != "" {
		labels["manifest_sha256"] = a.sealed.summary.Digest
	}
	img, err := registryimage.FromArtifact(a, registryimage.WithProvider("proxmox"), registryimage.WithRegion(a.ref.Node),
		registryimage.WithSourceID(a.source), registryimage.SetLabels(labels))
	if err != nil {
		return nil
	}
	return img
}

// destroyTimeout bounds Destroy.
const destroyTimeout = 5 * time.Minute

// Destroy removes the template, after its marker was read back.
func (a *Artifact) Destroy() error {
	client, err := a.access.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	manager, err := a.access.Manager(client, sandbox.Settings{})
	if err != nil {
		return err
	}
	defer func() { _ = manager.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), destroyTimeout)
	defer cancel()
	return manager.DestroyTemplate(ctx, a.ref)
}
