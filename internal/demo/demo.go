// Package demo shows the provider's main job, end to end and in a minute: a fleet of sandboxes is made by the real command
// line with the real binary, used, checked for drift, repaired and destroyed, on a lab inside this process. It works as any
// user, and leaves nothing behind but Go's build cache.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/target"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

// Options says how the demo is given.
type Options struct {
	Out io.Writer
	// Verbose also shows what the command line prints.
	Verbose bool
	// Engine runs the guests: "sim" (if empty), simulated in this process, or "ns", real Linux containers.
	Engine string
}

// run is one performance.
type run struct {
	Options
	*narrator
	root      string // of the checkout
	dir       string // everything that is written, removed at the end
	cli       *tfcli.CLI
	lab       *lab.Lab
	target    target.Target
	workspace *tfcli.Workspace
	fleet     []member
}

// member is a sandbox of the fleet as the configuration's outputs tell.
type member struct {
	name    string
	vmid    int
	address string
}

// step is a part of the performance.
type step struct {
	title string
	do    func() ([]string, error)
	real  bool // needs real packets
}

// Run gives the demo.
func Run(ctx context.Context, options Options) (err error) {
	if options.Engine == "" {
		options.Engine = lab.EngineSim
	}
	if err := lab.CheckEngine(options.Engine); err != nil {
		return err
	}
	r := &run{Options: options, narrator: &narrator{out: options.Out}}
	if r.root, err = tfcli.RepositoryRoot(); err != nil {
		return err
	}
	if r.cli, err = tfcli.Find(ctx); err != nil {
		return err
	}
	cache := filepath.Join(r.root, ".cache")
	if err := os.MkdirAll(cache, 0o755); err != nil { //nolint:gosec // the checkout's own folder, as open as the rest of it
		return err
	}
	if r.dir, err = os.MkdirTemp(cache, "demo-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.tidy()) }()

	fmt.Fprintf(r.Out, "A fleet of sandboxes, from nothing to gone: %s with this checkout's provider, against a Proxmox VE\n"+
		"emulator inside this process. Everything is written below %s and removed at the end.\n", r.cli.Name(), r.relative(r.dir))
	for _, s := range []step{
		{title: "Build the provider", do: func() ([]string, error) { return r.build(ctx) }},
		{title: "Start the lab", do: func() ([]string, error) { return r.startLab(ctx) }},
		{title: "Apply examples/fleet", do: func() ([]string, error) { return r.apply(ctx) }},
		{title: "Run a command in each sandbox, over SSH", do: func() ([]string, error) { return r.execute(ctx) }},
		{title: "Try the network from inside a sandbox", do: func() ([]string, error) { return r.tryNetwork(ctx) }, real: true},
		{title: "Plan again: nothing must be left to do", do: func() ([]string, error) { return r.planNothing(ctx) }},
		{title: "Change two sandboxes behind Terraform's back", do: func() ([]string, error) { return r.meddle(ctx) }},
		{title: "Plan: the drift is found", do: func() ([]string, error) { return r.findDrift(ctx) }},
		{title: "Apply: the drift is repaired", do: func() ([]string, error) { return r.repair(ctx) }},
		{title: "Destroy", do: func() ([]string, error) { return r.destroy(ctx) }},
		{title: "Apply examples/time-machine: an agent's mistake, undone", do: func() ([]string, error) { return r.undo(ctx) }},
		{title: "Apply examples/workspace, twice: work outlives its sandbox", do: func() ([]string, error) { return r.handOver(ctx) }},
	} {
		if s.real && options.Engine == lab.EngineSim {
			continue
		}
		if err := r.step(s.title, s.do); err != nil {
			return err
		}
	}
	r.summary()
	fmt.Fprint(r.Out, next)
	return nil
}

const next = `
What next
   make lab        a server like this one, to write your own configuration against
   make install    the provider and the Packer plugin, for use against a real server
   make template   a hardened template, built by Packer on real containers, and a fleet cloned from it
   examples/       the configuration of this demo, and others
   docs/guides/first-sandbox.md   from a fresh Proxmox VE to an agent's patch
`

// tidy stops the lab, and with it the guests, and removes what was written, also after a failure or Ctrl-C.
func (r *run) tidy() error {
	var err error
	if r.lab != nil {
		err = r.lab.Close()
	}
	return errors.Join(err, os.RemoveAll(r.dir))
}

func (r *run) relative(path string) string {
	if short, err := filepath.Rel(r.root, path); err == nil && !strings.HasPrefix(short, "..") {
		return short
	}
	return path
}
