package agentrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest/run"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

const (
	// tailBytes is how much of the output's end is kept; tailRead how much is
	// fetched for it, so that a secret at the cut is seen whole.
	tailBytes = 32 << 10
	tailRead  = 64 << 10
	// glance is fetched by a poll that is only about progress.
	glance = 4 << 10
	// portion is fetched at a time for a log file.
	portion = 1 << 20
)

// Wait follows a run to its end, collects it, and leaves it. When ctx ends
// first the run goes on: the report says running, and the error is ctx's.
//
// A run that is lost is no error; nor is one that failed.
func (e *Engine) Wait(ctx context.Context, r *Run, spec Spec, warn Warn) error {
	defer e.Leave(r)
	out, err := openLog(spec.LogFile, &spec, r)
	if err != nil {
		return err
	}
	defer out.close()
	begin := e.clock.Now()
	var s run.State
	for {
		if s, err = e.poll(ctx, r, out); err != nil {
			if lost(err) {
				r.Report.Status, r.Report.ExitCode = Lost, nil
				return nil
			}
			return err
		}
		e.note(r.Report, s)
		if r.Report.Status.Ended() && out.complete(s) {
			break
		}
		if !out.behind(s) {
			e.log.DebugContext(ctx, "a run is under way", "vmid", r.Ref.VMID, "run", r.ID, "elapsed", e.clock.Now().Sub(begin).Round(time.Second).String(),
				"output_bytes", s.Total, "last_line", spec.redactor().Text(lastLine(s.Output)))
			if err := e.clock.Sleep(ctx, interval(e.clock.Now().Sub(begin))); err != nil {
				return err
			}
		}
	}
	return e.collect(ctx, r, &spec, warn, s)
}

// interval is how long to wait before looking again: a fortieth of the time
// that it took so far, so that what is lost by it stays small.
func interval(elapsed time.Duration) time.Duration {
	return min(max(elapsed/40, 50*time.Millisecond), 2*time.Second)
}

// poll asks once, through broken connections. A sandbox that is gone or was
// replaced is found out by entering it anew.
func (e *Engine) poll(ctx context.Context, r *Run, out *logFile) (run.State, error) {
	offset, most := out.wants()
	return patiently(ctx, e, func(ctx context.Context) (run.State, error) {
		if r.inside == nil {
			inside, err := e.sandboxes.Peek(ctx, r.Prior())
			if err != nil {
				return run.State{}, err
			}
			r.inside = inside
		}
		r.Report.Timings.Polls++
		asked := e.clock.Now()
		s, err := run.Poll(ctx, &counted{inside: r.inside, trips: &r.Report.Timings.RoundTrips}, r.ID, offset, most)
		if broken(err) {
			r.inside = nil
		}
		if err != nil {
			return s, err
		}
		r.Report.ClockOffsetMS = clockOffset(s.Now, asked, e.clock.Now())
		return s, out.take(s)
	})
}

// lost says that an error means that the run is no more: the sandbox is gone,
// another has its id, or it doesn't know the run.
func lost(err error) bool {
	return errors.Is(err, run.ErrAbsent) || errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrForeign)
}

// note writes a run's state into its report.
func (e *Engine) note(r *Report, s run.State) {
	switch s.Status {
	case run.Starting, run.Running:
		r.Status = Running
	case run.Succeeded:
		r.Status = Succeeded
	case run.TimedOut:
		r.Status = TimedOut
	case run.Lost:
		r.Status = Lost
	default:
		r.Status = Failed
	}
	r.Reason = ""
	if s.Status == run.Stopped {
		r.Reason = "stopped"
	}
	r.ExitCode = nil
	if s.HasCode && r.Status.Ended() && r.Status != Lost {
		r.ExitCode = &s.Code
	}
	r.StartedAt, r.FinishedAt = r.ours(s.Started), r.ours(s.Ended)
	r.DurationMS, r.OutputBytes, r.OutputDropped = s.Duration.Milliseconds(), s.Total, s.Dropped
	r.Attempts = []Attempt{}
	for _, step := range s.Steps {
		if !step.Test {
			r.Attempts = append(r.Attempts, Attempt{ExitCode: step.Code, DurationMS: step.Duration.Milliseconds()})
			continue
		}
		if n := len(r.Attempts); n > 0 {
			code := step.Code
			r.Attempts[n-1].TestExitCode, r.Attempts[n-1].TestMS = &code, step.Duration.Milliseconds()
			if r.Status == Failed && code != 0 {
				r.Reason = "the tests failed"
			}
		}
	}
}

// ours puts a time of the sandbox's clock on the clock of this machine.
func (r *Report) ours(theirs time.Time) *time.Time {
	if theirs.IsZero() {
		return nil
	}
	t := theirs.Add(-time.Duration(r.ClockOffsetMS) * time.Millisecond).UTC().Truncate(time.Second)
	return &t
}

// collect completes the report of a run that has ended: the end of its output,
// and what the stages bring out.
func (e *Engine) collect(ctx context.Context, r *Run, spec *Spec, warn Warn, s run.State) error {
	begin := e.clock.Now()
	r.Report.ID = r.ID
	r.Report.Attempt = attemptOf(r.ID)
	if r.Report.Status == Lost {
		return nil
	}
	if s.From > 0 && s.From > s.Total-tailRead {
		last, err := e.poll(ctx, r, &logFile{offset: -tailRead, most: tailRead})
		if err != nil {
			return err
		}
		s = last
	}
	r.Report.OutputTail = tail(spec, s.Output)
	session := e.session(r, spec, warn)
	for _, stage := range slices.Backward(spec.Stages) {
		if err := stage.After(ctx, session, r.Report); err != nil {
			return fmt.Errorf("%s: %w", stage.Name(), err)
		}
	}
	r.Report.Timings.CollectMS = e.clock.Now().Sub(begin).Milliseconds()
	return nil
}

// tail is the redacted end of the output, as text that a state can hold.
func tail(spec *Spec, output []byte) string {
	text := spec.redactor().Text(printable(output))
	if len(text) > tailBytes {
		text = strings.ToValidUTF8(text[len(text)-tailBytes:], "")
	}
	return text
}

func printable(output []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(output), "\uFFFD"), "\x00", "\uFFFD")
}

func lastLine(output []byte) string {
	text := strings.TrimRight(printable(output), "\r\n")
	text = text[strings.LastIndexAny(text, "\r\n")+1:]
	return text[max(0, len(text)-200):]
}

func attemptOf(id string) int {
	n := 0
	_, _ = fmt.Sscan(id[strings.LastIndexByte(id, '.')+1:], &n) // ids are the supervisor's own
	return n
}

// Look says how a run stands that was started earlier, without waiting, and
// collects it when it has ended. prior must hold its sandbox's claim, so that a
// run whose sandbox was destroyed is lost even if another has the same id now.
// sandbox.ErrNotRunning and ErrNotReady say that nobody can tell at the moment.
func (e *Engine) Look(ctx context.Context, r *Run, spec Spec, warn Warn) error {
	if r.Report == nil {
		r.Report = &Report{SchemaVersion: SchemaVersion, Name: spec.Name, ContainerID: r.Ref.VMID, Status: Running, User: spec.User, Attempts: []Attempt{}}
	}
	inside, err := e.sandboxes.Peek(ctx, r.Prior())
	var s run.State
	if err == nil {
		r.inside = inside
		r.Report.Timings.Polls++
		asked := e.clock.Now()
		s, err = run.Poll(ctx, &counted{inside: inside, trips: &r.Report.Timings.RoundTrips}, r.ID, -tailRead, tailRead)
		r.Report.ClockOffsetMS = clockOffset(s.Now, asked, e.clock.Now())
	}
	if lost(err) {
		r.Report.Status, r.Report.ExitCode = Lost, nil
		return nil
	}
	if err != nil {
		return err
	}
	e.note(r.Report, s)
	if !r.Report.Status.Ended() {
		r.Report.ID, r.Report.Attempt = r.ID, attemptOf(r.ID)
		r.Report.OutputTail = tail(&spec, s.Output)
		return nil
	}
	return e.collect(ctx, r, &spec, warn, s)
}

// Collect notes in the sandbox that the result is safe with the caller: from
// then on the run is not found again, and the next of its key is a new attempt.
func (e *Engine) Collect(ctx context.Context, r *Run) error {
	inside, err := e.sandboxes.Peek(ctx, r.Prior())
	if err == nil {
		err = run.Collect(ctx, inside, r.ID)
	}
	if lost(err) {
		return nil
	}
	return err
}

// Discard ends a run and gives its result up. A run or sandbox that isn't there
// any more, or doesn't run, is a success.
func (e *Engine) Discard(ctx context.Context, r *Run) error {
	inside, err := e.sandboxes.Inside(ctx, r.Prior())
	if err == nil {
		err = run.Discard(ctx, inside, r.ID)
	}
	if lost(err) || errors.Is(err, sandbox.ErrNotRunning) {
		return nil
	}
	return err
}
