package lxc

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/packer-plugin-sdk/multistep"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"
)

// StepConnectPct connects Packer's communicator through the node.
type StepConnectPct struct{}

// Run waits until the container can be entered.
func (s *StepConnectPct) Run(ctx context.Context, state multistep.StateBag) multistep.StepAction {
	w, ui := workOf(state)
	ctx, cancel := context.WithTimeout(ctx, w.config.TaskTimeout)
	defer cancel()
	res, err := w.node.enter(ctx, w.build.Ref().VMID, remote.Script{Text: "true"})
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("exit status %d: %s", res.ExitCode, strings.TrimSpace(string(res.Stderr)))
	}
	if err != nil {
		return halt(state, ui, fmt.Errorf("enter the container by pct on node %s: %w", w.config.NodeSSH.NodeSSHHost, err))
	}
	state.Put("communicator", &pctCommunicator{node: w.node, vmid: w.build.Ref().VMID})
	return multistep.ActionContinue
}

// Cleanup does nothing.
func (s *StepConnectPct) Cleanup(multistep.StateBag) {}
