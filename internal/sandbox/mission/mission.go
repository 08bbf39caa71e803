package mission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
)

// Runner starts and follows runs; an *agentrun.Engine.
type Runner interface {
	Start(ctx context.Context, prior sandbox.Prior, spec agentrun.Spec, warn agentrun.Warn) (*agentrun.Run, error)
	Wait(ctx context.Context, r *agentrun.Run, spec agentrun.Spec, warn agentrun.Warn) error
	Discard(ctx context.Context, r *agentrun.Run) error
}

// Rollback puts a sandbox back to a snapshot.
type Rollback func(ctx context.Context, prior sandbox.Prior, snapshot string) error

// Outcome is a mission that has ended.
type Outcome struct {
	Report *Report
	// Runs are those that have to be collected once the report is safe.
	Runs []*agentrun.Run
}

// discardLimit is how long a run may take to end that nobody needs any more.
const discardLimit = time.Minute

var (
	errStopped = errors.New("the mission's stop rule")
	errTime    = errors.New("the mission's time limit")
)

// Run carries a mission out. When ctx ends, runs that are under way go on, and
// another Run of the same mission finds them. An error of one member (a sandbox
// that can't be entered, an agent that isn't installed) ends the others.
// Members that fail, and a mission that does, are no error.
func Run(ctx context.Context, runner Runner, rollback Rollback, clock sandbox.Clock, spec Spec, warn agentrun.Warn) (Outcome, error) {
	if clock == nil {
		clock = sandbox.SystemClock()
	}
	m := &mission{Spec: spec, runner: runner, rollback: rollback, warn: warn, results: map[string]*Result{}}
	for _, member := range spec.Members {
		r := &Result{Name: member.Name, Role: member.Role, ContainerID: member.Prior.Ref.VMID, Status: Skipped}
		if member.Run.Agent != nil {
			r.Agent = member.Run.Agent.Name
		}
		m.results[member.Name] = r
	}
	began := clock.Now()
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if spec.Timeout > 0 {
		limit, stop := context.WithCancel(limited)
		defer stop()
		go func() {
			if clock.Sleep(limit, spec.Timeout) == nil {
				cancel(errTime)
			}
		}()
	}
	err := m.run(limited)
	if errors.Is(context.Cause(limited), errTime) {
		err = nil // what ran was ended, and says so
	}
	if err != nil {
		return Outcome{Runs: m.runs}, err
	}
	report := m.report(errors.Is(context.Cause(limited), errTime))
	report.DurationMS = clock.Now().Sub(began).Milliseconds()
	return Outcome{Report: report, Runs: m.runs}, nil
}

// mission is one under way.
type mission struct {
	Spec
	runner   Runner
	rollback Rollback
	warn     agentrun.Warn

	mu      sync.Mutex
	results map[string]*Result
	runs    []*agentrun.Run
	done    []RunResult
	answer  string
	stopped bool
}

func (m *mission) run(ctx context.Context) error {
	switch m.Strategy {
	case Pipeline:
		return m.pipeline(ctx)
	case Debate:
		return m.debate(ctx)
	case Arena:
		return m.arena(ctx)
	}
	return m.together(ctx, m.Members, func(ctx context.Context, member Member) (agentrun.Status, error) {
		return m.turn(ctx, member, 1, "work", prompt(member.Role, m.Task))
	})
}

// together has members take a turn side by side, until a stop rule ends it. An
// error of one ends all.
func (m *mission) together(ctx context.Context, members []Member, turn func(context.Context, Member) (agentrun.Status, error)) error {
	group, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	errs := make([]error, len(members))
	var all sync.WaitGroup
	for i, member := range members {
		all.Go(func() {
			status, err := turn(group, member)
			if err != nil && context.Cause(group) == nil {
				errs[i] = err
				stop(errStopped)
				return
			}
			if err != nil && !errors.Is(context.Cause(group), errStopped) {
				errs[i] = err
			}
			if err == nil && m.ends(status) {
				m.mu.Lock()
				m.stopped = true
				m.mu.Unlock()
				stop(errStopped)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// ends says whether a turn with this end is the last by the stop rule.
func (m *mission) ends(s agentrun.Status) bool {
	return m.Stop == StopFirstSuccess && s == agentrun.Succeeded || m.Stop == StopFirstFailure && s != agentrun.Succeeded
}

// turn has a member work on a prompt, and writes down what comes of it.
func (m *mission) turn(ctx context.Context, member Member, round int, part, prompt string) (agentrun.Status, error) {
	s := member.Run
	s.Prompt = prompt
	s.Name = fmt.Sprintf("%s/%s/%s-%d", m.Name, member.Name, part, round)
	if part == "work" && m.Snapshot != "" {
		s.Stages = append([]agentrun.Stage{fresh{m, member}}, s.Stages...)
	}
	report, err := m.follow(ctx, member, s)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	result := m.results[member.Name]
	result.Status, result.ExitCode, result.Answer = report.Status, report.ExitCode, cut(report.OutputTail, answerBytes)
	result.DurationMS += report.DurationMS
	result.Turns++
	m.note(member.Name, round, part, report)
	return report.Status, nil
}

// note writes a run down. The answers stand with the members.
func (m *mission) note(member string, round int, part string, report *agentrun.Report) {
	short := *report
	short.OutputTail = ""
	m.done = append(m.done, RunResult{Member: member, Round: round, Part: part, Report: &short})
}

// follow starts a run, or finds it, and waits for its end. When the mission ends
// the run before, it is stopped; when the caller does, it goes on.
func (m *mission) follow(ctx context.Context, member Member, s agentrun.Spec) (*agentrun.Report, error) {
	run, err := m.runner.Start(ctx, member.Prior, s, m.warn)
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", member.Name, err)
	}
	m.mu.Lock()
	m.runs = append(m.runs, run)
	m.mu.Unlock()
	err = m.runner.Wait(ctx, run, s, m.warn)
	cause := context.Cause(ctx)
	if err == nil {
		return run.Report, nil
	}
	if !errors.Is(cause, errStopped) && !errors.Is(cause, errTime) {
		return nil, fmt.Errorf("member %s: %w", member.Name, err)
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardLimit)
	defer cancel()
	if err := m.runner.Discard(limited, run); err != nil && m.warn != nil {
		m.warn("A run could not be stopped", fmt.Sprintf("Run %s of member %s isn't needed any more, and goes on within its time limit: %v.", run.ID, member.Name, err))
	}
	run.Report.Status, run.Report.Reason = agentrun.Failed, "stopped by "+cause.Error()
	if errors.Is(cause, errTime) {
		run.Report.Status = agentrun.TimedOut
	}
	return run.Report, nil
}

// fresh puts a member's sandbox back to the arena's snapshot before a round is
// run in it; not where the round's run is found again.
type fresh struct {
	m      *mission
	member Member
}

func (fresh) Name() string { return "snapshot" }

func (f fresh) Before(ctx context.Context, s *agentrun.Session) error {
	return s.Renew(ctx, func() error {
		prior := f.member.Prior
		prior.Ref, prior.SSHHostKey = s.Ref, s.HostKey
		return f.m.rollback(ctx, prior, f.m.Snapshot)
	})
}

func (fresh) After(context.Context, *agentrun.Session, *agentrun.Report) error { return nil }
