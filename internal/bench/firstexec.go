package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// measureFirstExec is the time from wanting a sandbox to the end of a first command in it, one at a time, with a real
// server's times. It goes to the domain directly: how long a command line takes to start is not ours.
func measureFirstExec(ctx context.Context, provider string, _ io.Writer, report func(Metric)) (err error) {
	s, err := newStage(ctx, provider, lab.Real())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	client, err := pve.New(s.target.Connection())
	if err != nil {
		return err
	}
	defer client.Close()
	manager, err := sandbox.NewManager(client, s.target.Settings(), sandbox.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, manager.Close()) }()

	var times []time.Duration
	for i := range execRuns {
		took, err := firstExec(ctx, manager, s.target.TemplateID, fmt.Sprintf("exec-%d", i))
		if err != nil {
			return err
		}
		times = append(times, took)
	}
	slices.Sort(times)
	report(shown("first_exec_p50", fmt.Sprintf("%.2fs", percentile(times, 50).Seconds())))
	report(shown("first_exec_p95", fmt.Sprintf("%.2fs", percentile(times, 95).Seconds())))
	return nil
}

// firstExec makes a sandbox, runs a command in it, and destroys it after the clock has stopped.
func firstExec(ctx context.Context, manager *sandbox.Manager, template int, hostname string) (took time.Duration, err error) {
	began := time.Now()
	made, err := manager.Create(ctx, sandbox.Spec{
		Hostname: hostname,
		Source:   sandbox.Source{TemplateID: template},
		Started:  true,
		Network:  sandbox.Network{IPv4: sandbox.AddressAuto, Mode: sandbox.ModeUnmanaged},
		WaitFor:  sandbox.WaitForSSH,
	}, func(sandbox.Ref, string) {})
	if err != nil {
		return 0, err
	}
	err = firstCommand(ctx, manager, made.Sandbox)
	took = time.Since(began)
	_, destroyErr := manager.Destroy(ctx, made.Sandbox.Ref, "")
	return took, errors.Join(err, destroyErr)
}

// firstCommand runs a command that does nothing.
func firstCommand(ctx context.Context, manager *sandbox.Manager, in sandbox.Sandbox) error {
	prior := sandbox.Prior{Ref: in.Ref}
	if in.SSH != nil {
		prior.SSHHostKey = in.SSH.HostKey
	}
	result, _, err := manager.Exec(ctx, prior, sandbox.Command{Script: "true"})
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("the first command in %s ended with %d: %s", in.Hostname, result.ExitCode, result.Stderr)
	}
	return err
}

// percentile is the nearest-rank percentile of sorted values.
func percentile(sorted []time.Duration, p int) time.Duration {
	rank := (p*len(sorted) + 99) / 100
	return sorted[max(rank, 1)-1]
}
