package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"
	"golang.org/x/sync/errgroup"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// The lab of the area scale: 15 ms an answer, 0.3 s for a clone, 1.7 s for a start.
const (
	scaleLatency = 15 * time.Millisecond
	scaleClone   = 300 * time.Millisecond

	scaleFleet   = 1000
	scaleLarge   = 5000
	scaleMembers = 100
	scaleCrowd   = 10000
	scaleOurs    = 50
	parallelism  = 10 // Terraform's own
)

// Bounds of the area scale.
const (
	maxRefreshWall   = 2   // × requests × latency ÷ parallelism
	maxPoolRequests  = 100 // of a pool of 1,000 with attest = "sample"
	maxLockWall      = 1.2 // × the time that the template is locked
	minTemplates     = 3   // times faster with four templates than with one
	minWarm          = 5   // times faster than a cold create
	maxClaimRequests = 10
)

// resting is a fleet that has been made and doesn't run, which a refresh can't tell from one that does.
const resting = `
resource "sandbox_container" "c" {
  for_each = toset([for i in range(var.size) : format("bench-%04d", i)])
  hostname = each.key
  memory   = 128
  started  = false
  wait_for = "none"
  network  = { ipv4 = "auto", mode = "unmanaged" }
}
`

// pools are as many pools as templates, size members in all.
const pools = `
variable "templates" {
  type = list(number)
}

variable "wait_for" {
  type    = string
  default = "ssh"
}

resource "sandbox_pool" "p" {
  for_each = { for i, id in var.templates : i => id }
  name     = "bench-${each.key}"
  size     = var.size / length(var.templates)
  attest   = "sample"
  member = {
    template_id = each.value
    memory      = 64
    cores       = 1
    wait_for    = var.wait_for
    network     = { ipv4 = "auto", mode = "unmanaged" }
  }
  overcommit = { cores = 0, memory = 0, disk = 0 }
  update     = { max_surge = 1 }
}
`

const header = `terraform {
  required_providers {
    sandbox = { source = "agentsandbox/sandbox" }
  }
}

variable "size" {
  type = number
}
`

func measureScale(ctx context.Context, log io.Writer, report func(Metric)) (err error) {
	provider, err := builtProvider(ctx)
	if provider != "" {
		defer func() { err = errors.Join(err, os.RemoveAll(provider)) }()
	}
	if err != nil {
		return err
	}
	for _, measure := range []func(context.Context, string, io.Writer, func(Metric)) error{
		measureClaims, measureTemplates, measureCrowd, measureReads, measureLargePool, measureRefresh,
	} {
		if err := measure(ctx, provider, log, report); err != nil {
			return err
		}
	}
	return nil
}

// scaleDelays are the times of a real server, with the area's clone.
func scaleDelays() lab.Delays {
	d := lab.Real()
	d.CloneLinked = scaleClone
	return d
}

// largeDelays are short, with a real server's status service, which looks every 10 s: a look at each of thousands takes
// the lab a while.
func largeDelays() lab.Delays {
	d := lab.Fast()
	d.StatLoop = lab.Real().StatLoop
	return d
}

// slowly makes each answer take the time of this area, until the lab is reset.
func (s *stage) slowly(ctx context.Context) error {
	_, err := s.lab.Control().Inject(ctx, control.Fault{Pattern: "^/", Count: -1, Kind: control.Latency, Delay: scaleLatency})
	return err
}

// cost is what a refresh cost.
type cost struct {
	requests, connections int
	wall                  time.Duration
	usage
}

// refreshCost refreshes with a provider process of its own.
func (s *stage) refreshCost(ctx context.Context, w planner, n int, options ...tfexec.PlanOption) (c cost, requests []control.Request, err error) {
	p, _, err := startProvider(ctx, filepath.Dir(s.dir), s.target.Variables())
	if err != nil {
		return c, nil, err
	}
	requests, c.connections, err = s.refresh(ctx, w, n, append(options, tfexec.Reattach(p.reattach(s.cli)))...)
	c.usage = p.use()
	c.requests, c.wall = len(requests), span(requests)
	return c, requests, err
}

// measureRefresh refreshes a fleet of 1,000, through the command line, which counts requests and connections, and by the
// domain alone, which tells how long they take: for a fleet of 1,000 the command line itself takes minutes of CPU time.
func measureRefresh(ctx context.Context, provider string, log io.Writer, report func(Metric)) (err error) {
	s, err := newStage(ctx, provider, largeDelays())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	w, err := s.workspaceOf(header + resting)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := w.Apply(ctx, size(scaleFleet), tfexec.Parallelism(4*parallelism)); err != nil {
		return err
	}
	fmt.Fprintf(log, "%d made in %.0f s\n", scaleFleet, time.Since(began).Seconds())
	if err := s.slowly(ctx); err != nil {
		return err
	}
	c, requests, err := s.refreshCost(ctx, w, scaleFleet)
	if err = errors.Join(err, s.lab.Control().Reset(ctx)); err != nil {
		return err
	}
	_, polls := split(requests)
	fmt.Fprintf(log, "refresh of %d: %d requests, %d polls, %d connections, %.1f s, provider %.2f s of CPU time and %d MiB\n",
		scaleFleet, c.requests, polls, c.connections, c.wall.Seconds(), c.cpu.Seconds(), c.memory>>20)
	report(atMost("refresh_1000_requests", c.requests, scaleFleet+1+len(s.target.Nodes)))
	report(atMost("refresh_1000_polls", polls, 0))
	report(atMost("refresh_1000_connections", c.connections, maxConnections))
	report(shown("refresh_1000_wall_terraform", fmt.Sprintf("%.1fs", c.wall.Seconds())))
	report(shown("refresh_1000_memory", fmt.Sprintf("%dMiB", c.memory>>20)))
	report(shown("refresh_1000_cpu", fmt.Sprintf("%.2fs", c.cpu.Seconds())))
	return nil
}

// measureReads reads fleets of 1,000 and 5,000 as a refresh does, ten at a time.
func measureReads(ctx context.Context, provider string, log io.Writer, report func(Metric)) (err error) {
	s, err := newStage(ctx, provider, largeDelays())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	maker, done, err := s.runner()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	var refs []sandbox.Ref
	walls := map[int]time.Duration{}
	for _, n := range []int{scaleFleet, scaleLarge} {
		began := time.Now()
		if refs, err = s.grow(ctx, maker, refs, n); err != nil {
			return err
		}
		fmt.Fprintf(log, "%d made in %.0f s\n", n, time.Since(began).Seconds())
		wall, requests, err := s.readAll(ctx, refs)
		if err != nil {
			return err
		}
		walls[n] = wall
		ideal := time.Duration(requests) * scaleLatency / parallelism
		fmt.Fprintf(log, "read of %d: %d requests in %.2f s\n", n, requests, wall.Seconds())
		report(atMost(fmt.Sprintf("read_%d_requests", n), requests, n+1+len(s.target.Nodes)))
		report(ratioAtMost(fmt.Sprintf("refresh_%d_wall", n), wall.Seconds()/ideal.Seconds(), maxRefreshWall))
	}
	report(shown("growth_wall_5x", fmt.Sprintf("%.2f", walls[scaleLarge].Seconds()/walls[scaleFleet].Seconds())))
	return nil
}

// grow makes a fleet as large as n.
func (s *stage) grow(ctx context.Context, maker *sandbox.Manager, refs []sandbox.Ref, n int) ([]sandbox.Ref, error) {
	var group errgroup.Group
	group.SetLimit(4 * parallelism)
	var mu sync.Mutex
	for i := len(refs); i < n; i++ {
		group.Go(func() error {
			spec := fast(fmt.Sprintf("read-%d", i), s.target.TemplateID)
			spec.Started, spec.WaitFor = false, sandbox.WaitForNone
			out, err := maker.Create(ctx, spec, nil)
			mu.Lock()
			defer mu.Unlock()
			refs = append(refs, out.Sandbox.Ref)
			return err
		})
	}
	err := group.Wait()
	return refs, err
}

// readAll is a run that reads all, and nothing else.
func (s *stage) readAll(ctx context.Context, refs []sandbox.Ref) (wall time.Duration, requests int, err error) {
	reader, done, err := s.runner()
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := errors.Join(s.slowly(ctx), s.resetRequests(ctx)); err != nil {
		return 0, 0, err
	}
	var group errgroup.Group
	group.SetLimit(parallelism)
	began := time.Now()
	for _, ref := range refs {
		group.Go(func() error {
			_, err := reader.Read(ctx, sandbox.Prior{Ref: ref})
			return err
		})
	}
	err = group.Wait()
	wall = time.Since(began)
	list, _, listErr := s.requests(ctx)
	return wall, len(list), errors.Join(err, listErr, s.lab.Control().Reset(ctx))
}

// measureLargePool refreshes a pool of 1,000, and of 5,000 for how what the provider uses grows.
func measureLargePool(ctx context.Context, provider string, log io.Writer, report func(Metric)) (err error) {
	s, err := newStage(ctx, provider, largeDelays())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	w, err := s.workspaceOf(header + pools)
	if err != nil {
		return err
	}
	template := tfexec.Var(fmt.Sprintf("templates=[%d]", s.target.TemplateID))
	none := tfexec.Var("wait_for=none")
	costs := map[int]cost{}
	for _, n := range []int{scaleFleet, scaleLarge} {
		began := time.Now()
		if err := w.Apply(ctx, size(n), template, none); err != nil {
			return err
		}
		fmt.Fprintf(log, "a pool of %d made in %.0f s\n", n, time.Since(began).Seconds())
		c, requests, err := s.refreshCost(ctx, w, n, template, none)
		if err != nil {
			return err
		}
		costs[n] = c
		fmt.Fprintf(log, "refresh of a pool of %d: %s; provider %.2f s of CPU time and %d MiB\n", n, describe(requests), c.cpu.Seconds(), c.memory>>20)
		report(atMost(fmt.Sprintf("pool_%d_requests", n), c.requests, maxPoolRequests))
		report(shown(fmt.Sprintf("pool_%d_memory", n), fmt.Sprintf("%dMiB", c.memory>>20)))
		report(shown(fmt.Sprintf("pool_%d_cpu", n), fmt.Sprintf("%.2fs", c.cpu.Seconds())))
	}
	small, large := costs[scaleFleet], costs[scaleLarge]
	if small.memory > 0 && small.cpu > 0 {
		report(shown("growth_memory_5x", fmt.Sprintf("%.2f", float64(large.memory)/float64(small.memory))))
		report(shown("growth_cpu_5x", fmt.Sprintf("%.2f", large.cpu.Seconds()/small.cpu.Seconds())))
	}
	return nil
}

// measureTemplates fills pools of 100 members in all, from one template and from four.
func measureTemplates(ctx context.Context, provider string, log io.Writer, report func(Metric)) error {
	walls := map[int]time.Duration{}
	for _, n := range []int{1, 4} {
		wall, err := fill(ctx, provider, n, log)
		if err != nil {
			return err
		}
		walls[n] = wall
	}
	lock := scaleMembers * scaleClone
	report(ratioAtMost("apply_100_wall", walls[1].Seconds()/lock.Seconds(), maxLockWall))
	report(ratioAtLeast("apply_100_four_templates", walls[1].Seconds()/walls[4].Seconds(), minTemplates))
	return nil
}

func fill(ctx context.Context, provider string, templates int, log io.Writer) (wall time.Duration, err error) {
	s, err := newStage(ctx, provider, scaleDelays())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	ids, err := s.templates(ctx, templates)
	if err != nil {
		return 0, err
	}
	w, err := s.workspaceOf(header + pools)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(s.slowly(ctx), s.resetRequests(ctx)); err != nil {
		return 0, err
	}
	list := tfexec.Var("templates=" + list(ids))
	if err := w.Apply(ctx, size(scaleMembers), list); err != nil {
		return 0, err
	}
	requests, connections, err := s.requests(ctx)
	if err != nil {
		return 0, err
	}
	work, polls := split(requests)
	wall = span(requests)
	fmt.Fprintf(log, "%d members from %d templates: %.1f s, %d requests and %d polls over %d connections\n", scaleMembers, templates, wall.Seconds(), work, polls, connections)
	return wall, nil
}

// measureCrowd refreshes 50 of ours beside 10,000 of others, and without them.
func measureCrowd(ctx context.Context, provider string, log io.Writer, report func(Metric)) error {
	costs := map[int]cost{}
	for _, crowd := range []int{0, scaleCrowd} {
		c, err := refreshBeside(ctx, provider, crowd, log)
		if err != nil {
			return err
		}
		costs[crowd] = c
	}
	report(atMost("crowd_10000_requests", costs[scaleCrowd].requests, scaleOurs+2))
	report(shown("crowd_10000_cpu", fmt.Sprintf("%.2fs", costs[scaleCrowd].cpu.Seconds())))
	report(shown("crowd_none_cpu", fmt.Sprintf("%.2fs", costs[0].cpu.Seconds())))
	return nil
}

func refreshBeside(ctx context.Context, provider string, crowd int, log io.Writer) (c cost, err error) {
	s, err := newStageWith(ctx, provider, lab.Options{Delays: largeDelays(), Crowd: crowd})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	w, err := s.workspaceOf(header + resting)
	if err != nil {
		return c, err
	}
	if err := w.Apply(ctx, size(scaleOurs)); err != nil {
		return c, err
	}
	c, _, err = s.refreshCost(ctx, w, scaleOurs)
	fmt.Fprintf(log, "refresh of %d beside %d: %d requests, %.2f s, provider %.2f s of CPU time and %d MiB\n", scaleOurs, crowd, c.requests, c.wall.Seconds(), c.cpu.Seconds(), c.memory>>20)
	return c, err
}
