// Package harden is the provisioner sandbox-harden: it makes a system fit to be a template, with any builder.
package harden

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2/hcldec"
	packersdk "github.com/hashicorp/packer-plugin-sdk/packer"
	"github.com/hashicorp/packer-plugin-sdk/template/config"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/harden"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/commrunner"
)

// Provisioner hardens.
type Provisioner struct{ config Config }

var _ packersdk.Provisioner = (*Provisioner)(nil)

// ConfigSpec describes the configuration to Packer.
func (p *Provisioner) ConfigSpec() hcldec.ObjectSpec { return p.config.FlatMapstructure().HCL2Spec() }

// Prepare checks the configuration.
func (p *Provisioner) Prepare(raws ...any) error {
	c := &p.config
	err := config.Decode(c, &config.DecodeOpts{PluginType: "sandbox-harden", Interpolate: true, InterpolateContext: &c.ctx}, raws...)
	if err != nil {
		return err
	}
	err = p.options().Check()
	if c.ProviderKeys != nil && !c.Seal {
		err = errors.Join(err, errors.New("provider_keys goes with seal: with sandbox-lxc set the builder's provider_public_keys"))
	}
	if err != nil {
		return packersdk.MultiErrorAppend(nil, err)
	}
	return nil
}

func (p *Provisioner) options() harden.Options {
	c := &p.config
	return harden.Options{
		Profile: audit.Profile(c.Profile), AgentUser: c.AgentUser, AgentUID: c.AgentUID, TasksMax: c.TasksMax,
		SkipPackages: c.SkipPackages, Seal: c.Seal, ProviderKeys: c.ProviderKeys,
	}
}

// Provision hardens.
func (p *Provisioner) Provision(ctx context.Context, ui packersdk.Ui, comm packersdk.Communicator, _ map[string]any) error {
	runner := commrunner.Runner{Comm: comm}
	if p.config.Sudo {
		runner.Prefix = "sudo -n"
	}
	o := p.options()
	o.Step = func(_, title string) { ui.Say(title) }
	ui.Say("Hardening")
	done, err := harden.Apply(ctx, runner, o)
	if err != nil {
		return fmt.Errorf("unable to harden the system: %w", err)
	}
	ui.Say(fmt.Sprintf("%d changes", done.Changes()))
	return nil
}
