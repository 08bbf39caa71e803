package agentrun_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
)

func TestARunWithTestsAndALog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := spec(`cat; echo; echo "key $KEY"; echo x >> done`)
	s.Prompt, s.Secrets = "build it", map[string]string{"KEY": "hunter2!\nsecond-line-of-it"}
	s.TestCommand, s.MaxRepairs = `[ "$(wc -l < done)" -ge 2 ]`, 3
	s.LogFile = filepath.Join(t.TempDir(), "run.log")
	r := w.run(s)
	rep := r.Report
	if rep.Status != agentrun.Succeeded || rep.ExitCode == nil || *rep.ExitCode != 0 || len(rep.Attempts) != 2 || *rep.Attempts[0].TestExitCode != 1 || *rep.Attempts[1].TestExitCode != 0 {
		t.Errorf("%+v", rep)
	}
	log, err := os.ReadFile(s.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"log": string(log), "tail": rep.OutputTail} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "second-line") || !strings.Contains(text, "key [redacted]\n[redacted]\n") || !strings.Contains(text, "build it\n") {
			t.Errorf("%s: %q", what, text)
		}
	}
	if n := rep.Timings.RoundTrips - rep.Timings.Polls; n > 6 || n < 2 {
		t.Errorf("%d commands beside polls", n)
	}
	text, err := rep.JSON()
	if back, err2 := agentrun.ParseReport(text); err != nil || err2 != nil || back.ID != r.ID || back.SchemaVersion != 1 || strings.Contains(text, "hunter2") {
		t.Errorf("%s, %v, %v", text, err, err2)
	}
}

// A process that dies leaves a run behind that the next one finds, whatever the run has come to; it is started once.
func TestAKilledApplyFindsItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := spec("echo run >> /tmp/runs; while [ ! -e /tmp/go ]; do sleep 0.02; done; echo done")
	s.Secrets = map[string]string{"KEY": "hunter2!"}
	first, err := w.engine.Start(t.Context(), w.prior(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := w.engine.Wait(stopped, first, s, nil); !errors.Is(err, context.Canceled) || first.Report.Status != agentrun.Running {
		t.Fatalf("%v, %+v", err, first.Report)
	}
	_, later := w.process(nil)
	s.Secrets["KEY"] = "another" // secrets are no part of the key
	second, err := later.Start(t.Context(), w.prior(), s, nil)
	if err != nil || !second.Adopted || second.ID != first.ID {
		t.Fatalf("%+v, %v", second, err)
	}
	w.sh("touch /tmp/go")
	if err := later.Wait(t.Context(), second, s, nil); err != nil || second.Report.Status != agentrun.Succeeded {
		t.Fatalf("%+v, %v", second.Report, err)
	}
	if err := later.Collect(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	third, err := later.Start(t.Context(), w.prior(), s, nil)
	if err != nil || third.Adopted || third.ID == first.ID {
		t.Fatalf("%+v, %v", third, err)
	}
	if err := later.Wait(t.Context(), third, s, nil); err != nil || third.Report.Attempt != 2 {
		t.Fatalf("%+v, %v", third.Report, err)
	}
	if got := w.sh("cat /tmp/runs"); got != "run\nrun\n" {
		t.Errorf("it ran: %q", got)
	}
}

// Wherever the line breaks, the run is started once and its result is had.
func TestTheConnectionBreaksAtTenPoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n, after := range []int64{1, 1500, 2200, 2600, 3000, 3400, 3800, 4400, 5200, 6500} {
		w.manager, w.engine = w.process(nil) // no pooled connection
		w.wire.cut(after, 2)
		s := spec(fmt.Sprintf("echo run >> /tmp/runs%d; sleep 0.2; echo done", n))
		s.Secrets = map[string]string{"KEY": "hunter2!"}
		r := w.run(s)
		w.wire.cut(0, 0)
		w.manager, w.engine = w.process(nil)
		if r.Report.Status != agentrun.Succeeded || r.Report.OutputTail != "done\n" {
			t.Errorf("cut after %d bytes: %+v", after, r.Report)
		}
		if got := w.sh(fmt.Sprintf("cat /tmp/runs%d; ls /run/sandbox/runs/*/secrets 2>/dev/null", n)); got != "run\n" {
			t.Errorf("cut after %d bytes it ran: %q", after, got)
		}
	}
}

type skewed struct{ by time.Duration }

func (c skewed) Now() time.Time { return time.Now().Add(c.by) }

func (skewed) Sleep(ctx context.Context, d time.Duration) error {
	return sandbox.SystemClock().Sleep(ctx, d)
}

func TestClocksThatDifferDoNoHarm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clock := skewed{-3 * time.Hour}
	_, w.engine = w.process(clock)
	before := clock.Now()
	s := spec("sleep 0.3")
	s.Timeout = 20 * time.Second
	rep := w.run(s).Report
	if rep.Status != agentrun.Succeeded || rep.ClockOffsetMS < 3*3600_000-3000 || rep.ClockOffsetMS > 3*3600_000+3000 {
		t.Errorf("%+v", rep)
	}
	if d := rep.StartedAt.Sub(before); d < -3*time.Second || d > 10*time.Second {
		t.Errorf("started %s after we began", d)
	}
	if rep.DurationMS < 250 || rep.DurationMS > 10_000 {
		t.Errorf("it took %d ms", rep.DurationMS)
	}
}

func TestARunIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := func(name string) *agentrun.Run {
		s := spec("sleep 1000")
		s.Name = name
		r, err := w.engine.Start(t.Context(), w.prior(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.engine.Leave(r)
		return r
	}
	r := start("restarted")
	if _, err := w.manager.CreateSnapshot(t.Context(), w.box.Ref, sandbox.SnapshotSpec{Name: "before"}); err != nil {
		t.Fatal(err)
	}
	young := start("younger")
	if err := w.engine.Look(t.Context(), young, spec(""), nil); err != nil || young.Report.Status != agentrun.Running {
		t.Errorf("%+v, %v", young.Report, err)
	}
	var busy *sandbox.Error
	if _, err := w.manager.Rollback(t.Context(), w.prior(), sandbox.RollbackSpec{Snapshot: "before"}); !errors.As(err, &busy) || !errors.Is(err, sandbox.ErrBusy) || !strings.Contains(err.Error(), young.ID) {
		t.Errorf("a rollback under runs: %v", err)
	}
	if _, err := w.manager.Rollback(t.Context(), w.prior(), sandbox.RollbackSpec{Snapshot: "before", Force: true}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*agentrun.Run{r, young} {
		if err := w.engine.Look(t.Context(), r, spec(""), nil); err != nil || r.Report.Status != agentrun.Lost {
			t.Errorf("after a rollback: %+v, %v", r.Report, err)
		}
	}
	last := start("last")
	if _, err := w.manager.Destroy(t.Context(), w.box.Ref, ""); err != nil {
		t.Fatal(err)
	}
	if err := w.engine.Look(t.Context(), last, spec(""), nil); err != nil || last.Report.Status != agentrun.Lost {
		t.Errorf("after a destroy: %+v, %v", last.Report, err)
	}
	if err := w.engine.Discard(t.Context(), last); err != nil {
		t.Errorf("a discard when all is gone: %v", err)
	}
}

func TestTheSameRunTwiceInOneProcessIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := spec("sleep 1000")
	r, err := w.engine.Start(t.Context(), w.prior(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.engine.Start(t.Context(), w.prior(), s, nil); !errors.Is(err, sandbox.ErrRunTwice) {
		t.Errorf("%v", err)
	}
	if _, err := w.manager.Rollback(t.Context(), w.prior(), sandbox.RollbackSpec{Snapshot: "none"}); !errors.Is(err, sandbox.ErrBusy) && !errors.Is(err, sandbox.ErrNoSnapshot) {
		t.Errorf("a rollback meanwhile: %v", err)
	}
	w.engine.Leave(r)
	if err := w.engine.Discard(t.Context(), r); err != nil {
		t.Error(err)
	}
	if err := w.engine.Look(t.Context(), r, s, nil); err != nil || r.Report.Status != agentrun.Failed || r.Report.Reason != "stopped" {
		t.Errorf("%+v, %v", r.Report, err)
	}
}

// stage notes when it is called.
type stage struct {
	name  string
	calls *[]string
	fail  error
}

func (s stage) Name() string { return s.name }

func (s stage) Before(_ context.Context, session *agentrun.Session) error {
	*s.calls = append(*s.calls, "before "+s.name+session.RunID)
	session.Spec.Dir = "/tmp"
	return s.fail
}

func (s stage) After(_ context.Context, session *agentrun.Session, r *agentrun.Report) error {
	*s.calls = append(*s.calls, "after "+s.name)
	r.Commit = session.RunID
	return nil
}

func TestStagesSurroundARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var calls []string
	s := spec("pwd")
	s.Stages = []agentrun.Stage{stage{name: "outer", calls: &calls}, stage{name: "inner", calls: &calls}}
	r := w.run(s)
	if got := strings.Join(calls, ", "); got != "before outer, before inner, after inner, after outer" || r.Report.Commit != r.ID || r.Report.OutputTail != "/tmp\n" {
		t.Errorf("%s, %+v", got, r.Report)
	}
	calls = nil
	if r := w.run(s); !r.Adopted || strings.Join(calls, ", ") != "after inner, after outer" {
		t.Errorf("a run that was found: %v", calls)
	}
	broken := errors.New("broken")
	s.Name, s.Stages = "other", []agentrun.Stage{stage{name: "outer", calls: &calls, fail: broken}}
	if _, err := w.engine.Start(t.Context(), w.prior(), s, nil); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if got := w.sh("sbx-run list | wc -l"); strings.TrimSpace(got) != "1" {
		t.Errorf("runs: %s", got)
	}
}
