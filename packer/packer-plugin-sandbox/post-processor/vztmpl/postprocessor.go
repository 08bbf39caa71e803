// Package vztmpl is the post-processor sandbox-vztmpl: a template as a container template file, for other clusters and for
// containers that are made rather than cloned.
package vztmpl

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/hashicorp/hcl/v2/hcldec"
	packersdk "github.com/hashicorp/packer-plugin-sdk/packer"
	"github.com/hashicorp/packer-plugin-sdk/template/config"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/builder/lxc"
)

// PostProcessor exports templates.
type PostProcessor struct{ config Config }

var _ packersdk.PostProcessor = (*PostProcessor)(nil)

// ConfigSpec describes the configuration to Packer.
func (p *PostProcessor) ConfigSpec() hcldec.ObjectSpec {
	return p.config.FlatMapstructure().HCL2Spec()
}

var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*\.tar\.zst$`)

// Configure checks the configuration.
func (p *PostProcessor) Configure(raws ...any) error {
	c := &p.config
	err := config.Decode(c, &config.DecodeOpts{PluginType: "sandbox-vztmpl", Interpolate: true, InterpolateContext: &c.ctx}, raws...)
	if err != nil {
		return err
	}
	var errs *packersdk.MultiError
	_, problems := c.Config.Prepare()
	for _, e := range append(problems, c.NodeSSH.Prepare(c.ProxmoxURL)) {
		if e != nil {
			errs = packersdk.MultiErrorAppend(errs, e)
		}
	}
	if c.BackupStoragePool == "" {
		c.BackupStoragePool = "local"
	}
	if c.TemplateStoragePool == "" {
		c.TemplateStoragePool = c.BackupStoragePool
	}
	if c.Filename != "" && !fileName.MatchString(c.Filename) {
		errs = packersdk.MultiErrorAppend(errs, fmt.Errorf("filename: %q must be a name of letters, digits and ._+- that ends in .tar.zst", c.Filename))
	}
	if errs != nil && len(errs.Errors) > 0 {
		return errs
	}
	return nil
}

// moveScript makes an archive a template file. What vzdump leaves beside it goes. A file of that name is never written over.
const moveScript = `set -eu
from=$(pvesm path "$1")
to=$(pvesm path "$2")
if [ -e "$to" ]; then echo "$2 is there already" >&2; exit 1; fi
mkdir -p "$(dirname "$to")"
mv "$from" "$to.part"
mv "$to.part" "$to"
rm -f "$from.notes" "$from.protected" "${from%.tar.zst}.log"`

// PostProcess exports. The API makes the archive, and has no call that moves it: that is done over the node's SSH. The
// template stays.
func (p *PostProcessor) PostProcess(ctx context.Context, ui packersdk.Ui, artifact packersdk.Artifact) (packersdk.Artifact, bool, bool, error) {
	fail := func(err error) (packersdk.Artifact, bool, bool, error) { return nil, true, true, err }
	if artifact.BuilderId() != lxc.BuilderID {
		return fail(fmt.Errorf("sandbox-vztmpl takes what sandbox-lxc has built, not an artifact of %s", artifact.BuilderId()))
	}
	c := &p.config
	vmid, err := strconv.Atoi(artifact.Id())
	if err != nil {
		return fail(err)
	}
	name, _ := artifact.State(lxc.StateName).(string)
	build, _ := artifact.State(lxc.StateBuildID).(string)
	node, _ := artifact.State(lxc.StateNode).(string)
	file := c.Filename
	if file == "" {
		file = name + "-" + build + ".tar.zst"
	}
	client, err := c.Client()
	if err != nil {
		return fail(err)
	}
	defer client.Close()
	manager, err := c.Manager(client, sandbox.Settings{})
	if err != nil {
		return fail(err)
	}
	defer func() { _ = manager.Close() }()
	ctx, cancel := context.WithTimeout(ctx, c.TaskTimeout)
	defer cancel()
	volid := c.TemplateStoragePool + ":vztmpl/" + file
	ui.Say(fmt.Sprintf("Exporting template %d as %s", vmid, volid))
	archive, warnings, err := manager.CreateBackup(ctx, sandbox.BackupSpec{
		VMID: vmid, Storage: c.BackupStoragePool, Mode: sandbox.BackupStop, Notes: "On its way to become the template file " + volid,
	}, "", nil)
	for _, w := range warnings {
		ui.Say(fmt.Sprintf("Warning: %s. %s", w.Summary, w.Detail))
	}
	if err != nil {
		return fail(fmt.Errorf("unable to make the archive: %w", err))
	}
	if _, err := c.Run(ctx, moveScript, archive.VolID, volid); err != nil {
		err = fmt.Errorf("unable to make %s a template file over the node's SSH: %w", archive.VolID, err)
		if _, removeErr := manager.DestroyBackup(context.WithoutCancel(ctx), archive.BackupRef, ""); removeErr != nil {
			err = errors.Join(err, removeErr)
		}
		return fail(err)
	}
	info, err := client.VolumeInfo(ctx, node, volid)
	if err != nil {
		return fail(fmt.Errorf("%s was written on the node, and the server doesn't show it: %w", volid, err))
	}
	ui.Say(fmt.Sprintf("%s, %d MiB: use it as os_template, or as template_file_id in Terraform", volid, info.Size>>20))
	return &exported{volid: volid, access: *c}, true, true, nil
}

// exported is a template file on the server.
type exported struct {
	volid  string
	access Config
}

var _ packersdk.Artifact = (*exported)(nil)

// BuilderId is the post-processor's.
func (e *exported) BuilderId() string { return "agentsandbox.sandbox.vztmpl" }

// Id is the file's volume id.
func (e *exported) Id() string { return e.volid }

// Files is empty: the file is on the server.
func (e *exported) Files() []string { return nil }

// String says what it is for.
func (e *exported) String() string { return "Template file " + e.volid }

// State has nothing.
func (e *exported) State(string) any { return nil }

// Destroy removes the file.
func (e *exported) Destroy() error {
	_, err := e.access.Run(context.Background(), `set -eu; rm -f "$(pvesm path "$1")"`, e.volid)
	return err
}
