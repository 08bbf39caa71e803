package lxc

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/packer-plugin-sdk/multistep"
	packersdk "github.com/hashicorp/packer-plugin-sdk/packer"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/harden"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/manifest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/commrunner"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/version"
)

// sealScript takes the identity out of the container and leaves the provider's keys in it. Its standard input is root's
// new authorized_keys. It is the last thing that is done inside.
//
//go:embed seal.sh
var sealScript string

// sealed is what the template says of itself.
type sealed struct {
	manifest manifest.Manifest
	file     []byte
	summary  sandbox.TemplateSummary
	record   record
}

// StepSeal writes the manifest and takes the identity out.
type StepSeal struct{}

// Run seals.
func (s *StepSeal) Run(ctx context.Context, state multistep.StateBag) multistep.StepAction {
	w, ui := workOf(state)
	ctx, cancel := context.WithTimeout(ctx, w.config.TaskTimeout)
	defer cancel()
	ui.Say("Writing the manifest and sealing: no host keys, no machine id, the provider's keys alone")
	if err := w.seal(ctx, state); err != nil {
		return halt(state, ui, fmt.Errorf("seal the container: %w", err))
	}
	state.Put("generated_data", w.generatedData())
	return multistep.ActionContinue
}

// Cleanup does nothing.
func (s *StepSeal) Cleanup(multistep.StateBag) {}

func (w *work) runner(state multistep.StateBag) (commrunner.Runner, error) {
	comm, ok := state.Get("communicator").(packersdk.Communicator)
	if !ok {
		return commrunner.Runner{}, errors.New("there is no communicator")
	}
	r := commrunner.Runner{Comm: comm}
	if w.config.Comm.Type == "ssh" && w.config.Comm.SSHUsername != "root" {
		r.Prefix = "sudo -n"
	}
	return r, nil
}

func (w *work) seal(ctx context.Context, state multistep.StateBag) error {
	runner, err := w.runner(state)
	if err != nil {
		return err
	}
	who, err := commrunner.Output(ctx, runner, sandbox.IdentityScript(), nil)
	if err != nil {
		return fmt.Errorf("read its identity: %w", err)
	}
	w.before = sandbox.ParseIdentity(who)
	if err := w.writeManifest(ctx, runner); err != nil {
		return fmt.Errorf("write %s: %w", manifest.Path, err)
	}
	var keys strings.Builder
	for _, k := range w.config.ProviderPublicKeys {
		keys.WriteString(strings.TrimSpace(k) + "\n")
	}
	if w.config.SkipConvertToTemplate && len(w.config.ProviderPublicKeys) == 0 {
		return nil // an ordinary container, which its owner goes on with
	}
	if record := w.sealed.record; record.hardened {
		// What hardening cleans up last: caches, logs, histories, keys of the build.
		_, err := harden.Seal(ctx, runner, harden.Options{
			Profile: audit.Profile(record.Profile), AgentUser: record.Agent, SkipPackages: true, ProviderKeys: w.config.ProviderPublicKeys,
		})
		if err != nil {
			return err
		}
	}
	out, err := commrunner.Output(ctx, runner, sealScript, strings.NewReader(keys.String()))
	if err != nil {
		return err
	}
	if strings.TrimSpace(out) != "sealed" {
		return fmt.Errorf("it went wrong half-way: %q", out)
	}
	return nil
}

// writeManifest collects what the provisioners have left and writes the template's account of itself.
func (w *work) writeManifest(ctx context.Context, runner commrunner.Runner) error {
	c := w.config
	source := c.spec(nil).Source
	m := manifest.Manifest{
		BuildID: w.build.BuildID(), Name: c.TemplateName, BuiltAt: time.Now(), Builder: "packer-plugin-sandbox " + version.PluginVersion.FormattedVersion(),
		Source: manifest.Source{Kind: source.Kind(), Reference: source.Reference(), Checksum: source.Checksum},
	}
	record, err := collect(ctx, runner, &m)
	if err != nil {
		return err
	}
	file, err := m.Render()
	if err != nil {
		return err
	}
	_, err = commrunner.Output(ctx, runner, `set -eu; umask 022; mkdir -p /etc/sandbox; cat >/etc/sandbox/template.json.new; chmod 0644 /etc/sandbox/template.json.new; mv /etc/sandbox/template.json.new /etc/sandbox/template.json`, strings.NewReader(string(file)))
	if err != nil {
		return err
	}
	w.sealed = sealed{manifest: m, file: file, summary: sandbox.SummaryOf(m, file), record: record}
	return nil
}
