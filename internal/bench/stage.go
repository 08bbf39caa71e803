package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/target"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

// configuration is a fleet as the figures ask for it: static addresses, a token, nothing but the defaults.
const configuration = `terraform {
  required_providers {
    sandbox = { source = "agentsandbox/sandbox" }
  }
}

variable "size" {
  type = number
}

resource "sandbox_container" "c" {
  count    = var.size
  hostname = "bench-${count.index}"
  memory   = 256
  # These figures are about the life of a container; AREA=isolation measures the firewall's part.
  network  = { ipv4 = "auto", mode = "unmanaged" }
}

output "timings" {
  value = sandbox_container.c[*].timings
}
`

// stage is where a measurement happens: a built provider, a lab, and a configuration in a folder that goes when it ends.
type stage struct {
	dir    string
	cli    *tfcli.CLI
	lab    *lab.Lab
	target target.Target
	spaces int
}

// builtProvider builds the provider once for an area; remove what it returns.
func builtProvider(ctx context.Context) (dir string, err error) {
	root, err := tfcli.RepositoryRoot()
	if err != nil {
		return "", err
	}
	cache := filepath.Join(root, ".cache")
	if err := os.MkdirAll(cache, 0o755); err != nil { //nolint:gosec // the checkout's own folder, as open as the rest of it
		return "", err
	}
	if dir, err = os.MkdirTemp(cache, "bench-"); err != nil {
		return "", err
	}
	_, err = tfcli.BuildProvider(ctx, dir)
	return dir, err
}

// newStage starts a lab with the given times.
func newStage(ctx context.Context, provider string, delays lab.Delays) (*stage, error) {
	return newStageWith(ctx, provider, lab.Options{Delays: delays})
}

func newStageWith(ctx context.Context, provider string, options lab.Options) (*stage, error) {
	cli, err := tfcli.Find(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(provider, "stage-")
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, cli: cli}
	if s.lab, s.target, err = startLab(ctx, dir, options); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// close ends the lab, and all containers with it.
func (s *stage) close() error { return errors.Join(s.lab.Close(), os.RemoveAll(s.dir)) }

// workspace makes a new working directory for the configuration.
func (s *stage) workspace() (*tfcli.Workspace, error) { return s.workspaceOf(configuration) }

func (s *stage) workspaceOf(configuration string) (*tfcli.Workspace, error) {
	s.spaces++
	dir := filepath.Join(s.dir, "space-"+strconv.Itoa(s.spaces))
	source := filepath.Join(dir, "source")
	if err := os.MkdirAll(source, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(source, "main.tf"), []byte(configuration), 0o600); err != nil {
		return nil, err
	}
	return s.cli.NewWorkspace(tfcli.WorkspaceOptions{
		Config: source, Dir: dir, ProviderDir: filepath.Dir(s.dir), Environment: s.target.Variables(),
	})
}

// size is the variable of the configuration.
func size(n int) *tfexec.VarOption { return tfexec.Var("size=" + strconv.Itoa(n)) }

// outcome is what became of an apply of n containers.
type outcome struct {
	failed   int           // of n, not in state or tainted
	wall     time.Duration // from the first request to the end of the last: the command line's own start is not ours
	requests []control.Request
	clone    time.Duration // of the slowest, as the provider measured it, without the queue
	start    time.Duration
	failure  error // what the command line said, if anything failed
}

// apply makes n containers at the default parallelism, and counts.
func (s *stage) apply(ctx context.Context, w *tfcli.Workspace, n int) (outcome, error) {
	if err := s.resetRequests(ctx); err != nil {
		return outcome{}, err
	}
	var o outcome
	o.failure = w.Apply(ctx, size(n))
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	var err error
	if o.requests, _, err = s.requests(ctx); err != nil {
		return o, err
	}
	o.wall = span(o.requests)
	state, err := w.Show(ctx)
	if err != nil {
		return o, err
	}
	o.failed = n
	if state.Values == nil || state.Values.RootModule == nil {
		return o, nil
	}
	for _, r := range state.Values.RootModule.Resources {
		if r.Tainted {
			continue
		}
		o.failed--
		timings, _ := r.AttributeValues["timings"].(map[string]any)
		o.clone = max(o.clone, milliseconds(timings["clone"]))
		o.start = max(o.start, milliseconds(timings["start"]))
	}
	return o, nil
}

func milliseconds(v any) time.Duration {
	number, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	if err != nil {
		return 0
	}
	return time.Duration(number * float64(time.Millisecond))
}

// startLab starts a lab whose requests can be counted.
func startLab(ctx context.Context, dir string, options lab.Options) (*lab.Lab, target.Target, error) {
	l, err := lab.Start(context.WithoutCancel(ctx), options)
	if err != nil {
		return nil, target.Target{}, err
	}
	t, err := target.FromLab(l, dir)
	if err != nil {
		return nil, target.Target{}, errors.Join(err, l.Close())
	}
	t.Owner = "bench"
	return l, t, nil
}

func (s *stage) resetRequests(ctx context.Context) error { return s.lab.Control().ResetRequests(ctx) }

// requests is what was asked since the last reset, and over how many connections.
func (s *stage) requests(ctx context.Context) ([]control.Request, int, error) {
	report, err := s.lab.Control().Requests(ctx)
	return report.Entries, report.Connections, err
}

// templates are the lab's template and as many copies of it as it takes for n.
func (s *stage) templates(ctx context.Context, n int) ([]int, error) {
	client, err := pve.New(s.target.Connection())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ids := []int{s.target.TemplateID}
	node := s.target.Nodes[0]
	for i := 1; i < n; i++ {
		id := s.target.TemplateID + i
		upid, err := client.CloneLXC(ctx, node, s.target.TemplateID, pve.CloneOptions{NewID: id, Hostname: "template-" + strconv.Itoa(id), Full: true})
		if err != nil {
			return nil, err
		}
		if _, err := client.Wait(ctx, upid, func(string) {}); err != nil {
			return nil, err
		}
		if err := client.ConvertToTemplate(ctx, node, id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
