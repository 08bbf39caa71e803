// Package agents is the provisioner sandbox-agents: coding agents, pinned and checked, with any builder.
package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hcldec"
	packersdk "github.com/hashicorp/packer-plugin-sdk/packer"
	"github.com/hashicorp/packer-plugin-sdk/template/config"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/agents"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/agents/install"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/commrunner"
)

// Provisioner installs agents.
type Provisioner struct {
	config  Config
	options install.Options
}

var _ packersdk.Provisioner = (*Provisioner)(nil)

// ConfigSpec describes the configuration to Packer.
func (p *Provisioner) ConfigSpec() hcldec.ObjectSpec { return p.config.FlatMapstructure().HCL2Spec() }

// Prepare checks the configuration.
func (p *Provisioner) Prepare(raws ...any) error {
	err := config.Decode(&p.config, &config.DecodeOpts{PluginType: "sandbox-agents", Interpolate: true, InterpolateContext: &p.config.ctx}, raws...)
	if err != nil {
		return err
	}
	c := &p.config
	var errs *packersdk.MultiError
	if len(c.Agents) == 0 {
		errs = packersdk.MultiErrorAppend(errs, fmt.Errorf("agents is missing: name the agents to install, of %s", strings.Join(agents.Names(), ", ")))
	}
	p.options = install.Options{
		Agents: c.Agents, NPMRegistry: c.NPMRegistry, PyPIIndex: c.PyPIIndex,
		Node: install.Download(c.Node), UV: install.Download(c.UV), Binaries: map[string]install.Download{},
	}
	for _, b := range c.Binaries {
		if _, twice := p.options.Binaries[b.Name]; twice {
			errs = packersdk.MultiErrorAppend(errs, fmt.Errorf("binary %q is there twice", b.Name))
		}
		p.options.Binaries[b.Name] = install.Download{URL: b.URL, File: b.File, SHA256: b.SHA256}
	}
	definitions, err := readDefinitions(c.Definitions)
	if err != nil {
		errs = packersdk.MultiErrorAppend(errs, err)
	}
	p.options.Definitions = definitions
	if err := p.options.Check(); err != nil {
		errs = packersdk.MultiErrorAppend(errs, err)
	}
	if errs != nil && len(errs.Errors) > 0 {
		return errs
	}
	return nil
}

// readDefinitions reads files that hold an agent or a list of agents.
func readDefinitions(files []string) ([]agents.Agent, error) {
	var list []agents.Agent
	var errs []error
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("definitions: %w", err))
			continue
		}
		entries := []json.RawMessage{raw}
		if strings.HasPrefix(strings.TrimSpace(string(raw)), "[") {
			entries = nil
			if err := json.Unmarshal(raw, &entries); err != nil {
				errs = append(errs, fmt.Errorf("definitions: %s: %w", name, err))
			}
		}
		for _, entry := range entries {
			a, err := agents.Parse(entry)
			if err != nil {
				errs = append(errs, fmt.Errorf("definitions: %s: %w", name, err))
				continue
			}
			list = append(list, a)
		}
	}
	return list, errors.Join(errs...)
}

// Provision installs.
func (p *Provisioner) Provision(ctx context.Context, ui packersdk.Ui, comm packersdk.Communicator, _ map[string]any) error {
	runner := commrunner.Runner{Comm: comm}
	if p.config.Sudo {
		runner.Prefix = "sudo -n"
	}
	ui.Say("Installing agents")
	done, err := install.Run(ctx, runner, p.options, ui.Say)
	if err != nil {
		return fmt.Errorf("unable to install the agents: %w", err)
	}
	names := make([]string, 0, len(done.Agents))
	for name := range done.Agents {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		a := done.Agents[name]
		ui.Say(fmt.Sprintf("%s %s (%d MiB) is %s", name, a.Version, a.Bytes>>20, a.Binary))
	}
	return nil
}
