package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/target"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

func (r *run) build(ctx context.Context) ([]string, error) {
	if _, err := tfcli.BuildProvider(ctx, r.dir); err != nil {
		return nil, err
	}
	return nil, nil
}

func (r *run) startLab(ctx context.Context) ([]string, error) {
	// Ctrl-C must not take the lab away from a destroy that is under way: it ends with the demo.
	l, err := lab.Start(context.WithoutCancel(ctx), lab.Options{Delays: lab.Real(), EngineName: r.Engine, Outside: r.Engine == lab.EngineNS})
	if err != nil {
		return nil, err
	}
	r.lab = l
	if r.target, err = target.FromLab(l, r.dir); err != nil {
		return nil, err
	}
	r.target.Owner = "demo"
	return []string{
		fmt.Sprintf("Proxmox VE API at %s, node %s, container template %d", r.target.Endpoint, r.target.Node(), r.target.TemplateID),
		fmt.Sprintf("times as recorded on a real node; guests are reached through the SSH node at %s:%d", l.SSHHost(), l.SSHPort()),
	}, nil
}

// example prepares a configuration of examples/ for the lab, in a folder of its own.
func (r *run) example(name string) (*tfcli.Workspace, error) {
	var stdout io.Writer
	if r.Verbose {
		stdout = r.Out
	}
	return r.cli.NewWorkspace(tfcli.WorkspaceOptions{
		Config:      filepath.Join(r.root, "examples", name),
		Dir:         filepath.Join(r.dir, name),
		ProviderDir: r.dir,
		Environment: r.target.Variables(),
		Stdout:      stdout,
	})
}

func (r *run) apply(ctx context.Context) ([]string, error) {
	workspace, err := r.example("fleet")
	if err != nil {
		return nil, err
	}
	r.workspace = workspace
	if err := workspace.Apply(ctx); err != nil {
		return nil, err
	}
	if r.fleet, err = readFleet(ctx, workspace); err != nil {
		return nil, err
	}
	told := []string{fmt.Sprintf("%d sandboxes are cloned, configured, running, and reachable over SSH:", len(r.fleet))}
	for _, m := range r.fleet {
		told = append(told, fmt.Sprintf("  %-10s container %d  %s", m.name, m.vmid, m.address))
	}
	return told, nil
}

// readFleet reads the configuration's outputs.
func readFleet(ctx context.Context, workspace *tfcli.Workspace) ([]member, error) {
	outputs, err := workspace.Output(ctx)
	if err != nil {
		return nil, err
	}
	var ids map[string]int
	var addresses map[string]string
	if err := json.Unmarshal(outputs["ids"].Value, &ids); err != nil {
		return nil, fmt.Errorf("output ids: %w", err)
	}
	if err := json.Unmarshal(outputs["addresses"].Value, &addresses); err != nil {
		return nil, fmt.Errorf("output addresses: %w", err)
	}
	fleet := make([]member, 0, len(ids))
	for name, vmid := range ids {
		fleet = append(fleet, member{name: name, vmid: vmid, address: addresses[name]})
	}
	slices.SortFunc(fleet, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	return fleet, nil
}

// execute logs in to each sandbox, as an agent's runner would: not by the provider.
func (r *run) execute(ctx context.Context) ([]string, error) {
	pool, err := guest.NewPool(r.target.GuestAccess())
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	const script = `echo "$(whoami) on $(hostname)"`
	told := make([]string, len(r.fleet))
	group, ctx := errgroup.WithContext(ctx)
	for i, m := range r.fleet {
		group.Go(func() error {
			result, err := pool.Exec(ctx, guest.Target{ID: strconv.Itoa(m.vmid), Name: m.name, Address: m.address}, guest.Command{Script: script})
			if err != nil {
				return err
			}
			if result.ExitCode != 0 {
				return fmt.Errorf("%s: exit code %d: %s", m.name, result.ExitCode, result.Stderr)
			}
			told[i] = fmt.Sprintf("%-10s says: %s", m.name, strings.TrimSpace(string(result.Stdout)))
			return nil
		})
	}
	return told, group.Wait()
}

func (r *run) planNothing(ctx context.Context) ([]string, error) {
	changes, err := r.workspace.Changes(ctx)
	if err != nil {
		return nil, err
	}
	if len(changes) > 0 {
		return nil, fmt.Errorf("the plan isn't empty: %s", changes)
	}
	return []string{"No changes: what the server has is what the configuration says."}, nil
}

// meddle does what a colleague in the web interface might: more memory for one, another one stopped.
func (r *run) meddle(ctx context.Context) ([]string, error) {
	if len(r.fleet) < 2 {
		return nil, errors.New("the fleet has fewer than two sandboxes")
	}
	client, err := pve.New(r.target.Connection())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	grown, stopped := r.fleet[1], r.fleet[len(r.fleet)-1]
	if err := client.UpdateLXC(ctx, r.target.Node(), grown.vmid, pve.LXCUpdate{Set: map[string]string{"memory": "4096"}}); err != nil {
		return nil, err
	}
	upid, err := client.StopLXC(ctx, r.target.Node(), stopped.vmid)
	if err != nil {
		return nil, err
	}
	if _, err := client.Wait(ctx, upid, func(warning string) { fmt.Fprintln(r.Out, "   the server warns:", warning) }); err != nil {
		return nil, err
	}
	return []string{
		fmt.Sprintf("%s gets 4096 MiB of memory, through the API", grown.name),
		fmt.Sprintf("%s is stopped, through the API", stopped.name),
	}, nil
}

func (r *run) findDrift(ctx context.Context) ([]string, error) {
	changes, err := r.workspace.Changes(ctx)
	if err != nil {
		return nil, err
	}
	var told []string
	for _, change := range changes {
		if !strings.HasPrefix(change.Address, "output.") { // what follows from the sandboxes is not news
			told = append(told, change.String())
		}
	}
	if len(told) != 2 {
		return told, fmt.Errorf("two sandboxes were changed, the plan shows %d", len(told))
	}
	return told, nil
}

func (r *run) repair(ctx context.Context) ([]string, error) {
	if err := r.workspace.Apply(ctx); err != nil {
		return nil, err
	}
	return r.planNothing(ctx)
}

func (r *run) destroy(ctx context.Context) ([]string, error) {
	if err := r.workspace.Destroy(ctx); err != nil {
		return nil, err
	}
	client, err := pve.New(r.target.Connection())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	guests, err := client.LXCList(ctx, r.target.Node())
	if err != nil {
		return nil, err
	}
	for _, g := range guests {
		if g.VMID >= r.target.VMIDs.First && g.VMID <= r.target.VMIDs.Last {
			return nil, fmt.Errorf("container %d (%s) is still there", g.VMID, g.Name)
		}
	}
	return []string{"The server has none of them left; its template was never touched."}, nil
}
