package lxc

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/packer-plugin-sdk/communicator"
	"github.com/hashicorp/packer-plugin-sdk/multistep"
	"github.com/hashicorp/packer-plugin-sdk/multistep/commonsteps"
	packersdk "github.com/hashicorp/packer-plugin-sdk/packer"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// Builder builds container templates.
type Builder struct{ config Config }

var _ packersdk.Builder = (*Builder)(nil)

// ConfigSpec describes the configuration to Packer.
func (b *Builder) ConfigSpec() hcldec.ObjectSpec { return b.config.FlatMapstructure().HCL2Spec() }

// generated are the names of what the build makes known to provisioners and post-processors, as build.NAME.
var generated = []string{"VMID", "Node", "TemplateName", "SourceTemplate", "BuildID"}

// Prepare checks the configuration. It sends no request.
func (b *Builder) Prepare(raws ...any) ([]string, []string, error) {
	warnings, err := b.config.prepare(raws...)
	if err != nil {
		return nil, warnings, err
	}
	return generated, warnings, nil
}

// Run builds.
func (b *Builder) Run(ctx context.Context, ui packersdk.Ui, hook packersdk.Hook) (packersdk.Artifact, error) {
	c := &b.config
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	login, err := c.login().Guest()
	if err != nil {
		return nil, err
	}
	manager, err := c.Manager(client, sandbox.Settings{Guest: login})
	if err != nil {
		return nil, err
	}
	defer func() { _ = manager.Close() }()
	node, err := newNode(c.NodeSSH)
	if err != nil {
		return nil, err
	}
	defer node.close()

	w := &work{config: c, client: client, manager: manager, node: node}
	state := new(multistep.BasicStateBag)
	state.Put("hook", hook)
	state.Put("ui", ui)
	state.Put(workKey, w)
	runner := commonsteps.NewRunner(w.steps(), c.PackerConfig, ui)
	runner.Run(ctx, state)

	if err, failed := state.GetOk("error"); failed {
		if err, ok := err.(error); ok {
			return nil, err
		}
	}
	if _, cancelled := state.GetOk(multistep.StateCancelled); cancelled {
		return nil, errors.New("the build was cancelled")
	}
	if _, halted := state.GetOk(multistep.StateHalted); halted {
		return nil, errors.New("the build was halted")
	}
	return w.artifact(state), nil
}

// steps are the build's, in their order. What one has made, its Cleanup takes away: in reverse, and unless the build
// was successful.
func (w *work) steps() []multistep.Step {
	c := w.config
	var steps []multistep.Step
	if c.Comm.Type == "ssh" && !c.clones() {
		steps = append(steps, &communicator.StepSSHKeyGen{CommConf: &c.Comm, SSHTemporaryKeyPair: c.Comm.SSHTemporaryKeyPair})
		if c.PackerDebug {
			steps = append(steps, &communicator.StepDumpSSHKey{Path: fmt.Sprintf("%s.pem", c.PackerBuildName), SSH: &c.Comm.SSH})
		}
	}
	steps = append(steps, &StepPreflight{}, &StepCreate{}, &StepStart{},
		&communicator.StepConnect{
			Config: &c.Comm, Host: w.host, SSHConfig: w.sshConfig, SSHPort: w.sshPort,
			CustomConnect: map[string]multistep.Step{pct: &StepConnectPct{}},
		},
		&commonsteps.StepProvision{})
	if c.Comm.Type != "none" {
		steps = append(steps, &StepSeal{})
	}
	steps = append(steps, &StepStop{})
	if !c.SkipConvertToTemplate {
		steps = append(steps, &StepConvert{})
		if !c.SkipVerify {
			steps = append(steps, &StepVerify{})
		}
	}
	return append(steps, &StepFinish{})
}

// forward listens on this machine and passes connections on to an address that only the jump host can reach.
func (w *work) forward(ctx context.Context, address string) (net.Addr, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w.listener = listener
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go func() {
				far, err := w.manager.DialGuest(context.WithoutCancel(ctx), address)
				if err != nil {
					_ = near.Close()
					return
				}
				join(near, far)
			}()
		}
	}()
	return listener.Addr(), nil
}
