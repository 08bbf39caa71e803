package bench

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/exposure"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/mission"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/workcopy"
)

// Bounds of the area agent.
const (
	maxRunTrips     = 6   // SSH commands of a run beyond the one that a bare command is, polls left out
	maxSecretTrips  = 1   // more of them with secrets
	maxSyncRatio    = 2.0 // a folder sent, against tar over the same connection
	maxMissionRatio = 1.1 // a mission of members side by side, against its slowest
	missionMembers  = 8
	missionSeconds  = 16 // of the slowest
	proxyRoutes     = 1000
	syncFiles       = 10_000
	syncRuns        = 3
)

// agentStage is a lab with one sandbox, and the domain to work with it.
type agentStage struct {
	*stage
	manager *sandbox.Manager
	engine  *agentrun.Engine
	prior   sandbox.Prior
	close   func() error
}

func newAgentStage(ctx context.Context) (s *agentStage, err error) {
	root, err := os.MkdirTemp("", "sandbox-bench-")
	if err != nil {
		return nil, err
	}
	s = &agentStage{stage: &stage{dir: root}}
	var closers []func() error
	s.close = func() error {
		var errs []error
		for _, c := range slices.Backward(closers) {
			errs = append(errs, c())
		}
		return errors.Join(append(errs, os.RemoveAll(root))...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.lab, s.target, err = startLab(ctx, root, lab.Options{Delays: lab.Fast()}); err != nil {
		return s, err
	}
	closers = append(closers, s.lab.Close)
	client, err := pve.New(s.target.Connection())
	if err != nil {
		return s, err
	}
	closers = append(closers, func() error { client.Close(); return nil })
	if s.manager, err = sandbox.NewManager(client, s.target.Settings(), sandbox.Options{}); err != nil {
		return s, err
	}
	closers = append(closers, s.manager.Close)
	s.engine = agentrun.New(s.manager, nil, nil)
	s.prior, err = s.sandbox(ctx, "agent")
	return s, err
}

// sandbox makes one more sandbox.
func (s *agentStage) sandbox(ctx context.Context, hostname string) (sandbox.Prior, error) {
	made, err := s.manager.Create(ctx, sandbox.Spec{
		Hostname: hostname, Source: sandbox.Source{TemplateID: s.target.TemplateID}, Started: true,
		Network: sandbox.Network{IPv4: sandbox.AddressAuto, Mode: sandbox.ModeUnmanaged}, WaitFor: sandbox.WaitForSSH,
	}, func(sandbox.Ref, string) {})
	prior := sandbox.Prior{Ref: made.Sandbox.Ref}
	if err == nil && made.Sandbox.SSH != nil {
		prior.SSHHostKey = made.Sandbox.SSH.HostKey
	}
	return prior, err
}

// measureAgent is about runs of agents: what they cost beside the agent, and how fast code goes in.
func measureAgent(ctx context.Context, log io.Writer, report func(Metric)) (err error) {
	s, err := newAgentStage(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	plain, err := s.trips(ctx, "plain", nil)
	if err != nil {
		return err
	}
	report(atMost("run_extra_round_trips", plain-1, maxRunTrips))
	secret, err := s.trips(ctx, "secret", map[string]string{"TOKEN": "a-secret-of-the-bench"})
	if err != nil {
		return err
	}
	report(atMost("secret_extra_round_trips", secret-plain, maxSecretTrips))
	if err := s.measureSync(ctx, log, report); err != nil {
		return err
	}
	if err := s.measureMission(ctx, log, report); err != nil {
		return err
	}
	return measureProxy(report)
}

// measureMission has members work side by side, each longer than the one before; the slowest decides how long it takes.
func (s *agentStage) measureMission(ctx context.Context, log io.Writer, report func(Metric)) error {
	spec := mission.Spec{Name: "bench", Strategy: mission.Parallel, Task: "wait", Timeout: time.Minute}
	for i := range missionMembers {
		name := fmt.Sprintf("member-%d", i)
		prior, err := s.sandbox(ctx, name)
		if err != nil {
			return err
		}
		seconds := missionSeconds * (i + 1) / missionMembers
		spec.Members = append(spec.Members, mission.Member{Name: name, Prior: prior, Run: agentrun.Spec{
			User: "agent", Command: agentrun.Command{Script: fmt.Sprintf("sleep %d", seconds)}, Timeout: time.Minute,
		}})
	}
	done, err := mission.Run(ctx, s.engine, nil, nil, spec, nil)
	if err != nil {
		return err
	}
	slowest := int64(0)
	for _, m := range done.Report.Members {
		if m.Status != agentrun.Succeeded {
			return fmt.Errorf("%s: %s", m.Name, m.Status)
		}
		slowest = max(slowest, m.DurationMS)
	}
	fmt.Fprintf(log, "a mission of %d took %d ms, its slowest member %d ms\n", missionMembers, done.Report.DurationMS, slowest)
	report(ratioAtMost("mission_8_over_slowest", float64(done.Report.DurationMS)/float64(slowest), maxMissionRatio))
	return nil
}

// measureProxy renders a proxy's configuration of very many ports.
func measureProxy(report func(Metric)) error {
	var routes []exposure.Route
	for i := range proxyRoutes {
		routes = append(routes, exposure.Route{Host: fmt.Sprintf("box-%d.example.org", i), Backend: fmt.Sprintf("127.0.0.1:%d", 10_000+i)})
	}
	for _, kind := range []string{"caddy", "nginx"} {
		began := time.Now()
		if _, err := exposure.Proxy(kind, routes); err != nil {
			return err
		}
		report(shown("proxy_1000_routes_"+kind, fmt.Sprintf("%.1fms", float64(time.Since(began).Microseconds())/1000)))
	}
	return nil
}

// trips runs `true` to its end and counts the SSH commands, without polls.
func (s *agentStage) trips(ctx context.Context, name string, secrets map[string]string) (int, error) {
	spec := agentrun.Spec{Name: name, User: "agent", Command: agentrun.Command{Script: "true"}, Secrets: secrets, Timeout: time.Minute}
	run, err := s.engine.Start(ctx, s.prior, spec, nil)
	if err != nil {
		return 0, err
	}
	if err := s.engine.Wait(ctx, run, spec, nil); err != nil {
		return 0, err
	}
	if run.Report.Status != agentrun.Succeeded {
		return 0, fmt.Errorf("the run %s: %s", name, run.Report.Status)
	}
	return run.Report.Timings.RoundTrips - run.Report.Timings.Polls, nil
}

// measureSync sends a folder of many small files, and the same folder by nothing but tar.
func (s *agentStage) measureSync(ctx context.Context, log io.Writer, report func(Metric)) error {
	source := filepath.Join(s.dir, "source")
	for i := range syncFiles {
		name := filepath.Join(source, strconv.Itoa(i%100), strconv.Itoa(i)+".txt")
		if i < 100 {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				return err
			}
		}
		if err := os.WriteFile(name, []byte(strings.Repeat("a line of code\n", 1+i%200)), 0o600); err != nil {
			return err
		}
	}
	inside, err := s.manager.Inside(ctx, s.prior)
	if err != nil {
		return err
	}
	var ours, bare []time.Duration
	for i := range syncRuns {
		began := time.Now()
		if err := tarOver(ctx, inside, source, fmt.Sprintf("/root/bare-%d", i)); err != nil {
			return err
		}
		bare = append(bare, time.Since(began))
		began = time.Now()
		place := workcopy.Place{Guest: inside, User: "root", Dir: fmt.Sprintf("/root/ours-%d", i), State: fmt.Sprintf("/root/.ours-%d", i)}
		sent, err := workcopy.Send(ctx, place, workcopy.Source{Dir: source})
		if err != nil {
			return err
		}
		if sent.Files != syncFiles {
			return fmt.Errorf("%d of %d files were sent", sent.Files, syncFiles)
		}
		ours = append(ours, time.Since(began))
	}
	slices.Sort(ours)
	slices.Sort(bare)
	fmt.Fprintf(log, "%d files: sent in %s, by tar alone in %s\n", syncFiles, ours[syncRuns/2].Round(time.Millisecond), bare[syncRuns/2].Round(time.Millisecond))
	report(ratioAtMost("sync_10000_files_over_tar", float64(ours[syncRuns/2])/float64(bare[syncRuns/2]), maxSyncRatio))
	return nil
}

// tarOver is `tar -c | ssh guest tar -x`, on the connection that is there.
func tarOver(ctx context.Context, inside *sandbox.Inside, source, to string) error {
	out, in := io.Pipe()
	go func() {
		w := tar.NewWriter(in)
		err := w.AddFS(os.DirFS(source))
		_ = in.CloseWithError(errors.Join(err, w.Close())) // never fails, by its documentation
	}()
	result, err := inside.Exec(ctx, sandbox.Command{Script: `mkdir "$1" && tar -xf - -C "$1"`, Args: []string{to}, Stdin: out})
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("tar: exit code %d: %s", result.ExitCode, result.Stderr)
	}
	return err
}
