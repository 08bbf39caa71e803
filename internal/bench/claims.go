package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/placement"
)

const (
	warmRuns   = 20
	claimRaces = 200
)

// measureClaims compares a claim with a cold create, up to the end of a first command, and lets two runners want the
// same members.
func measureClaims(ctx context.Context, provider string, log io.Writer, report func(Metric)) (err error) {
	s, err := newStage(ctx, provider, scaleDelays())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	runner, done, err := s.runner()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	pool, err := runner.CreatePool(ctx, warmPool(s.target.TemplateID, warmRuns), nil)
	if err != nil {
		return err
	}
	if err := s.slowly(ctx); err != nil {
		return err
	}
	cold, err := s.times(ctx, runner, "cold", func(hostname string) (sandbox.Outcome, error) {
		return runner.Create(ctx, fast(hostname, s.target.TemplateID), nil)
	})
	if err != nil {
		return err
	}
	warm, err := s.times(ctx, runner, "warm", func(hostname string) (sandbox.Outcome, error) {
		return runner.ClaimMember(ctx, sandbox.Claim{Pool: pool.Name}, fast(hostname, 0), nil)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "warm p50 %.3f s (%d requests, SSH %.3f s), cold p50 %.3f s (%d requests)\n", warm.p50.Seconds(), warm.requests, warm.ssh.Seconds(), cold.p50.Seconds(), cold.requests)
	report(atMost("claim_requests", warm.requests, maxClaimRequests))
	bound := maxClaimRequests*scaleLatency + warm.ssh
	report(ratioAtMost("claim_p50", warm.p50.Seconds()/bound.Seconds(), 1))
	report(shown("claim_first_exec_p50", fmt.Sprintf("%.3fs", warm.p50.Seconds())))
	report(shown("cold_first_exec_p50", fmt.Sprintf("%.3fs", cold.p50.Seconds())))
	report(ratioAtLeast("claim_faster_than_cold", cold.p50.Seconds()/warm.p50.Seconds(), minWarm))
	if err := s.lab.Control().Reset(ctx); err != nil {
		return err
	}
	return s.race(ctx, runner, log, report)
}

// warmPool is a pool whose members are as fast wants them.
func warmPool(template, size int) sandbox.PoolSpec {
	return sandbox.PoolSpec{
		Name: "warm", Size: size, MaxUnavailable: 1, MaxSurge: 1, Ratios: &placement.Ratios{},
		Member: fast("", template),
	}
}

func fast(hostname string, template int) sandbox.Spec {
	memory, cores := 128, 1
	return sandbox.Spec{
		Hostname: hostname, Source: sandbox.Source{TemplateID: template}, Started: true, MemoryMiB: &memory, Cores: &cores, WaitFor: sandbox.WaitForSSH,
		Network: sandbox.Network{IPv4: sandbox.AddressAuto, IPv6: sandbox.AddressNone, Mode: sandbox.ModeUnmanaged},
	}
}

// runner is a run of the provider without a command line, whose start isn't ours.
func (s *stage) runner() (*sandbox.Manager, func() error, error) {
	client, err := pve.New(s.target.Connection())
	if err != nil {
		return nil, nil, err
	}
	m, err := sandbox.NewManager(client, s.target.Settings(), sandbox.Options{})
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return m, func() error { defer client.Close(); return m.Close() }, nil
}

// latencies are of one way to a sandbox.
type latencies struct {
	p50      time.Duration // to the end of the first command
	ssh      time.Duration // of that, by SSH: login and what is told the guest
	requests int           // of one, without polls
}

// times makes sandboxes one at a time.
func (s *stage) times(ctx context.Context, runner *sandbox.Manager, name string, get func(hostname string) (sandbox.Outcome, error)) (l latencies, err error) {
	var all, ssh []time.Duration
	for i := range warmRuns {
		if err := s.resetRequests(ctx); err != nil {
			return l, err
		}
		began := time.Now()
		out, err := get(name + "-" + strconv.Itoa(i))
		if err != nil {
			return l, err
		}
		if err := firstCommand(ctx, runner, out.Sandbox); err != nil {
			return l, err
		}
		all = append(all, time.Since(began))
		ssh = append(ssh, out.Timings.SSH)
		requests, _, err := s.requests(ctx)
		if err != nil {
			return l, err
		}
		l.requests, _ = split(requests)
	}
	slices.Sort(all)
	slices.Sort(ssh)
	l.p50, l.ssh = percentile(all, 50), percentile(ssh, 50)
	return l, nil
}

// race lets two runners want one member again and again, and counts how often both believe to have it.
func (s *stage) race(ctx context.Context, maker *sandbox.Manager, log io.Writer, report func(Metric)) (err error) {
	spec := warmPool(s.target.TemplateID, 1)
	spec.Name, spec.Member.WaitFor = "contended", sandbox.WaitForNone
	pool, err := maker.CreatePool(ctx, spec, nil)
	if err != nil {
		return err
	}
	vmid := pool.Members[0].VMID
	free, err := s.configOf(ctx, vmid)
	if err != nil {
		return err
	}
	var runners []*sandbox.Manager
	for range 2 {
		m, done, err := s.runner()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, done()) }()
		runners = append(runners, m)
	}
	double, lost := 0, 0
	for i := range claimRaces {
		errs := make([]error, len(runners))
		var group sync.WaitGroup
		for j, m := range runners {
			group.Go(func() {
				want := fast(fmt.Sprintf("race-%d-%d", i, j), 0)
				want.WaitFor = sandbox.WaitForNone
				_, errs[j] = m.ClaimMember(ctx, sandbox.Claim{Pool: spec.Name}, want, nil)
			})
		}
		group.Wait()
		won := 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, sandbox.ErrPoolEmpty):
				return err
			}
		}
		switch won {
		case 0:
			lost++
		case 2:
			double++
		}
		if err := s.lab.Control().ChangeGuest(ctx, free); err != nil {
			return err
		}
	}
	fmt.Fprintf(log, "%d races of two claims for one member\n", claimRaces)
	report(atMost("double_claims", double, 0))
	report(atMost("lost_claims", lost, 0))
	return nil
}

// list writes ids as HCL.
func list(ids []int) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = strconv.Itoa(id)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// configOf is what makes a claimed member free again, as no provider ever does.
func (s *stage) configOf(ctx context.Context, vmid int) (control.Guest, error) {
	dump, err := s.lab.Control().Dump(ctx)
	if err != nil {
		return control.Guest{}, err
	}
	for _, g := range dump.Guests {
		if g.VMID == vmid {
			return control.Guest{VMID: vmid, Set: map[string]string{
				"description": g.Config["description"], "tags": g.Config["tags"], "hostname": g.Config["hostname"],
			}}, nil
		}
	}
	return control.Guest{}, fmt.Errorf("there is no guest %d", vmid)
}
