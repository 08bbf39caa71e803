package lxc

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/packer-plugin-sdk/multistep"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// StepPreflight looks at the server before anything is made.
type StepPreflight struct{}

// Run plans the build.
func (s *StepPreflight) Run(ctx context.Context, state multistep.StateBag) multistep.StepAction {
	w, ui := workOf(state)
	ui.Say("Looking at the server: version, privileges, storages, bridges, source")
	ctx, cancel := context.WithTimeout(ctx, w.config.TaskTimeout)
	defer cancel()
	var keys []string
	if key := strings.TrimSpace(string(w.config.Comm.SSHPublicKey)); key != "" {
		keys = append(keys, key)
	}
	build, err := w.manager.PlanTemplate(ctx, w.config.spec(keys))
	if err != nil {
		return halt(state, ui, err)
	}
	w.build = build
	w.tell(ui)
	return multistep.ActionContinue
}

// Cleanup closes what the build has open.
func (s *StepPreflight) Cleanup(state multistep.StateBag) {
	w, _ := workOf(state)
	w.close()
}

// StepCreate makes the container.
type StepCreate struct{}

// Run makes it.
func (s *StepCreate) Run(ctx context.Context, state multistep.StateBag) multistep.StepAction {
	w, ui := workOf(state)
	ui.Say(fmt.Sprintf("Making a container on node %s from %s", w.build.Node(), w.config.spec(nil).Source.Reference()))
	limit, cancel := context.WithTimeout(ctx, w.config.TaskTimeout)
	defer cancel()
	err := w.build.Make(limit, func(ref sandbox.Ref, _ string) {
		ui.Say(fmt.Sprintf("It is container %d", ref.VMID))
	})
	w.tell(ui)
	if err != nil {
		return halt(state, ui, err)
	}
	state.Put("instance_id", w.build.Ref().VMID)
	state.Put("generated_data", w.generatedData())
	if len(w.config.LXCRaw) > 0 {
		lines, err := parseRaw(w.config.LXCRaw)
		if err == nil {
			ui.Say("Writing LXC's own lines over the node's SSH")
			err = w.writeRaw(limit, lines)
		}
		if err != nil {
			return halt(state, ui, fmt.Errorf("lxc_raw: %w", err))
		}
	}
	return multistep.ActionContinue
}

// Cleanup removes the container, or the template that it has become, unless the build was finished.
func (s *StepCreate) Cleanup(state multistep.StateBag) {
	w, ui := workOf(state)
	if w.build == nil || w.build.Ref().VMID == 0 || w.finished {
		return
	}
	ui.Say(fmt.Sprintf("Removing container %d", w.build.Ref().VMID))
	ctx, cancel := context.WithTimeout(context.Background(), 2*w.config.TaskTimeout) // a stop and a removal
	defer cancel()
	if err := w.build.Remove(ctx); err != nil {
		ui.Error(fmt.Sprintf("Container %d could not be removed: %v. It is marked as abandoned; the next build of %s removes it.", w.build.Ref().VMID, err, w.config.TemplateName))
	}
	w.tell(ui)
}

// StepStart boots the container.
type StepStart struct{}

// Run boots it.
func (s *StepStart) Run(ctx context.Context, state multistep.StateBag) multistep.StepAction {
	w, ui := workOf(state)
	ui.Say("Starting it")
	ctx, cancel := context.WithTimeout(ctx, w.config.TaskTimeout)
	defer cancel()
	if err := w.build.Start(ctx); err != nil {
		return halt(state, ui, err)
	}
	return multistep.ActionContinue
}

// Cleanup does nothing: who removes the container stops it.
func (s *StepStart) Cleanup(multistep.StateBag) {}

// StepStop shuts the container down.
type StepStop struct{}

// Run shuts it down.
func (s *StepStop) Run(ctx context.Context, state multistep.StateBag) multistep.StepAction {
	w, ui := workOf(state)
	ui.Say("Shutting it down")
	w.close()
	ctx, cancel := context.WithTimeout(ctx, w.config.TaskTimeout)
	defer cancel()
	if err := w.build.Stop(ctx); err != nil {
		return halt(state, ui, err)
	}
	return multistep.ActionContinue
}

// Cleanup does nothing.
func (s *StepStop) Cleanup(multistep.StateBag) {}

// StepConvert makes the container a template.
type StepConvert struct{}

// Run converts it; it returns when that is true.
func (s *StepConvert) Run(ctx context.Context, state multistep.StateBag) multistep.StepAction {
	w, ui := workOf(state)
	ui.Say("Making it a template")
	ctx, cancel := context.WithTimeout(ctx, w.config.TaskTimeout)
	defer cancel()
	if err := w.build.Convert(ctx); err != nil {
		return halt(state, ui, err)
	}
	return multistep.ActionContinue
}

// Cleanup does nothing: StepCreate removes the template too.
func (s *StepConvert) Cleanup(multistep.StateBag) {}

// StepFinish marks the template as ready and removes what it replaces.
type StepFinish struct{}

// Run writes the marker.
func (s *StepFinish) Run(ctx context.Context, state multistep.StateBag) multistep.StepAction {
	w, ui := workOf(state)
	ctx, cancel := context.WithTimeout(ctx, w.config.TaskTimeout)
	defer cancel()
	if err := w.build.Finish(ctx, w.sealed.summary); err != nil {
		return halt(state, ui, err)
	}
	w.finished = true // from here on nothing takes it away
	gone, err := w.build.Prune(ctx)
	for _, id := range gone {
		ui.Say(fmt.Sprintf("Removed the older template %d", id))
	}
	w.tell(ui)
	if err != nil {
		ui.Error(fmt.Sprintf("Older templates could not be removed: %v. The new one is ready all the same.", err))
	}
	return multistep.ActionContinue
}

// Cleanup does nothing.
func (s *StepFinish) Cleanup(multistep.StateBag) {}
