package mission_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/mission"
)

// stage plays the engine: what a run says and how long it takes is by its name.
type stage struct {
	mu        sync.Mutex
	prompts   map[string]string // by the run's name
	order     []string
	discarded []string
	say       func(name string) (output string, code int)
	wait      map[string]bool // runs that only end when they are told to
	refuse    map[string]error
}

func newStage(say func(name string) (string, int)) *stage {
	return &stage{prompts: map[string]string{}, say: say, wait: map[string]bool{}, refuse: map[string]error{}}
}

func (s *stage) Start(_ context.Context, prior sandbox.Prior, spec agentrun.Spec, _ agentrun.Warn) (*agentrun.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuse[spec.Name]; err != nil {
		return nil, err
	}
	s.prompts[spec.Name] = spec.Prompt
	s.order = append(s.order, spec.Name)
	return &agentrun.Run{Ref: prior.Ref, ID: spec.Name, Report: &agentrun.Report{Name: spec.Name, Status: agentrun.Running}}, nil
}

func (s *stage) Wait(ctx context.Context, r *agentrun.Run, _ agentrun.Spec, _ agentrun.Warn) error {
	if s.wait[r.ID] {
		<-ctx.Done()
		return ctx.Err()
	}
	output, code := s.say(r.ID)
	r.Report.Status, r.Report.ExitCode, r.Report.OutputTail, r.Report.DurationMS = agentrun.Succeeded, &code, output, 1000
	if code != 0 {
		r.Report.Status = agentrun.Failed
	}
	return nil
}

func (s *stage) Discard(_ context.Context, r *agentrun.Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.discarded = append(s.discarded, r.ID)
	return nil
}

func spec(strategy mission.Strategy, names ...string) mission.Spec {
	s := mission.Spec{Name: "m", Strategy: strategy, Task: "the task", Stop: mission.StopNever, Timeout: time.Minute}
	for i, name := range names {
		s.Members = append(s.Members, mission.Member{Name: name, Prior: sandbox.Prior{Ref: sandbox.Ref{VMID: 100 + i}}})
	}
	return s
}

func run(t *testing.T, s *stage, spec mission.Spec) *mission.Report {
	t.Helper()
	if p := spec.Check(); len(p) > 0 {
		t.Fatal(p)
	}
	out, err := mission.Run(t.Context(), s, nil, nil, spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out.Report
}

func echo(name string) (string, int) { return "I am " + name, 0 }

func TestParallelGivesEverybodyTheTask(t *testing.T) {
	t.Parallel()
	s := newStage(echo)
	sp := spec(mission.Parallel, "a", "b")
	sp.Members[0].Role = "tester"
	r := run(t, s, sp)
	if r.Status != agentrun.Succeeded || len(r.Runs) != 2 || r.Members[1].Answer != "I am m/b/work-1" || s.prompts["m/b/work-1"] != "the task" ||
		!strings.HasPrefix(s.prompts["m/a/work-1"], "You are the tester.") || !strings.HasSuffix(s.prompts["m/a/work-1"], "\n\nthe task") {
		t.Errorf("%+v, %v", r, s.prompts)
	}
}

func TestAPipelineHandsOnAndEndsWithTheFirstFailure(t *testing.T) {
	t.Parallel()
	s := newStage(func(name string) (string, int) {
		if name == "m/b/work-1" {
			return "b is stuck", 2
		}
		return echo(name)
	})
	sp := spec(mission.Pipeline, "a", "b", "c")
	sp.Stop = mission.StopFirstFailure
	r := run(t, s, sp)
	if !strings.Contains(s.prompts["m/b/work-1"], "Before you, a has worked") || !strings.Contains(s.prompts["m/b/work-1"], "I am m/a/work-1") {
		t.Errorf("%q", s.prompts["m/b/work-1"])
	}
	if r.Status != agentrun.Failed || r.Members[2].Status != mission.Skipped || r.Answer != "b is stuck" || len(s.order) != 2 {
		t.Errorf("%+v", r)
	}
	sp.Stop = mission.StopNever
	if r = run(t, s, sp); len(r.Runs) != 3 || r.Answer != "I am m/c/work-1" || !strings.Contains(s.prompts["m/c/work-1"], "b is stuck") {
		t.Errorf("%+v", r)
	}
}

func TestADebateIsClosedByItsJudge(t *testing.T) {
	t.Parallel()
	s := newStage(echo)
	sp := spec(mission.Debate, "a", "b", "j")
	sp.Judge, sp.Rounds = "j", 2
	r := run(t, s, sp)
	second := s.prompts["m/a/work-2"]
	if !strings.Contains(second, "The answer of b:\n\nI am m/b/work-1") || strings.Contains(second, "answer of a") || strings.Contains(s.prompts["m/a/work-1"], "answer") {
		t.Errorf("%q", second)
	}
	last := s.prompts["m/j/judgement-2"]
	if !strings.HasPrefix(last, "You are the judge.") || !strings.Contains(last, "I am m/a/work-2") || !strings.Contains(last, "I am m/b/work-2") {
		t.Errorf("%q", last)
	}
	if r.Answer != "I am m/j/judgement-2" || r.Status != agentrun.Succeeded || len(r.Runs) != 5 || r.Members[0].Turns != 2 {
		t.Errorf("%+v", r)
	}
}

func TestAnArenaRanksByWinsThenScore(t *testing.T) {
	t.Parallel()
	scores := map[string]string{"m/a/score-1": "3", "m/b/score-1": "log\n 5.5 ", "m/c/score-1": "no number", "m/a/score-2": "7", "m/b/score-2": "7", "m/c/score-2": "1", "m/d/score-1": "9"}
	s := newStage(func(name string) (string, int) {
		if score, ok := scores[name]; ok {
			return score, map[bool]int{true: 1}[strings.Contains(name, "/d/")]
		}
		return echo(name)
	})
	sp := spec(mission.Arena, "a", "b", "c", "d")
	sp.ScoreCommand, sp.Rounds, sp.Snapshot = "score", 2, "start"
	r := run(t, s, sp)
	if r.Winner != "b" || fmt.Sprint(r.Ranking) != "[b a c d]" || r.Members[0].Wins != 0.5 || r.Members[1].Wins != 1.5 || r.Members[1].WinRate != 0.75 || *r.Members[0].Score != 7 || r.Members[3].Score != nil {
		t.Errorf("%s, %v, %+v", r.Winner, r.Ranking, r.Members)
	}
	if r.Members[0].Rank != 2 || r.Members[3].Rank != 4 || r.Status != agentrun.Succeeded || r.Answer != "I am m/b/work-2" {
		t.Errorf("%+v", r)
	}
}

func TestStopRulesAndTheTimeLimitEndTheOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stop   mission.Stop
		code   int
		status agentrun.Status
	}{"first success": {mission.StopFirstSuccess, 0, agentrun.Succeeded}, "first failure": {mission.StopFirstFailure, 1, agentrun.Failed}} {
		s := newStage(func(string) (string, int) { return "", c.code })
		s.wait["m/b/work-1"] = true
		sp := spec(mission.Parallel, "a", "b")
		sp.Stop = c.stop
		r := run(t, s, sp)
		if r.Status != c.status || !slices.Equal(s.discarded, []string{"m/b/work-1"}) || r.Members[1].Status != agentrun.Failed || !strings.Contains(r.Runs[1].Report.Reason, "stop rule") {
			t.Errorf("%s: %+v, discarded %v", name, r, s.discarded)
		}
	}
	s := newStage(echo)
	s.wait["m/b/work-1"] = true
	sp := spec(mission.Parallel, "a", "b")
	sp.Timeout = 50 * time.Millisecond
	if r := run(t, s, sp); r.Status != agentrun.TimedOut || r.Members[0].Status != agentrun.Succeeded || r.Members[1].Status != agentrun.TimedOut || len(s.discarded) != 1 {
		t.Errorf("%+v, discarded %v", r, s.discarded)
	}
}

func TestACutMissionLeavesItsRunsAndAnErrorEndsThem(t *testing.T) {
	t.Parallel()
	s := newStage(echo)
	s.wait["m/a/work-1"], s.wait["m/b/work-1"] = true, true
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := mission.Run(ctx, s, nil, nil, spec(mission.Parallel, "a", "b"), nil); !errors.Is(err, context.DeadlineExceeded) || len(s.discarded) != 0 {
		t.Errorf("%v, discarded %v", err, s.discarded)
	}
	s.refuse["m/b/work-1"] = sandbox.ErrNoAgent
	if _, err := mission.Run(t.Context(), s, nil, nil, spec(mission.Parallel, "a", "b"), nil); !errors.Is(err, sandbox.ErrNoAgent) || !strings.Contains(err.Error(), "member b") || !slices.Equal(s.discarded, []string{"m/a/work-1"}) {
		t.Errorf("%v, discarded %v", err, s.discarded)
	}
}

func TestWhatCantBeRight(t *testing.T) {
	t.Parallel()
	for attribute, change := range map[string]func(*mission.Spec){
		"members":       func(s *mission.Spec) { s.Strategy, s.Members = mission.Debate, s.Members[:1] },
		"judge":         func(s *mission.Spec) { s.Judge = "a" },
		"score_command": func(s *mission.Spec) { s.Strategy = mission.Arena },
		"strategy":      func(s *mission.Spec) { s.ScoreCommand = "x" },
		"rounds":        func(s *mission.Spec) { s.Rounds = 2 },
		"snapshot_name": func(s *mission.Spec) { s.Strategy, s.ScoreCommand, s.Rounds = mission.Arena, "x", 2 },
		"task":          func(s *mission.Spec) { s.Task = strings.Repeat("x", 40<<10) },
	} {
		s := spec(mission.Parallel, "a", "b")
		change(&s)
		p := s.Check()
		if len(p) == 0 || p[0].Attribute != attribute || p[0].Detail == "" {
			t.Errorf("%s: %v", attribute, p)
		}
	}
	s := spec(mission.Arena, "a", "b")
	s.ScoreCommand, s.Snapshot = "x", "start"
	s.Members[1].Prior = s.Members[0].Prior
	if p := s.Check(); len(p) != 1 || p[0].Attribute != "snapshot_name" {
		t.Errorf("%v", p)
	}
}

func TestALeaderboard(t *testing.T) {
	t.Parallel()
	arena := `{"schema_version":1,"name":"m","strategy":"arena","status":"succeeded","runs":[{"member":"x","round":1},{"member":"x","round":2}],"members":[
	 {"name":"x","agent":"codex","status":"succeeded","duration_ms":2000,"score":7,"wins":1.5},{"name":"y","agent":"aider","status":"failed","duration_ms":1000,"score":3,"wins":0.5},{"name":"z","status":"skipped"}]}`
	single := `{"schema_version":1,"name":"fix","status":"succeeded","duration_ms":500,"agent":{"name":"aider"},"attempts":[]}`
	plain := `{"schema_version":1,"name":"fix","status":"failed","duration_ms":100,"attempts":[]}`
	list, err := mission.Leaderboard([]string{plain, single, arena})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list {
		mean := "-"
		if s.MeanScore != nil {
			mean = fmt.Sprint(*s.MeanScore)
		}
		got = append(got, fmt.Sprintf("%d %s runs=%d success=%v wins=%v mean=%s ms=%d", s.Rank, s.Name, s.Runs, s.SuccessRate, s.WinRate, mean, s.MeanDurationMS))
	}
	want := []string{"1 codex runs=1 success=1 wins=0.75 mean=7 ms=2000", "2 aider runs=2 success=0.5 wins=0.25 mean=3 ms=750", "3 fix runs=1 success=0 wins=0 mean=- ms=100"}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	for _, bad := range []string{"{", `{"schema_version":2}`, `{}`} {
		if _, err := mission.Leaderboard([]string{single, bad}); err == nil || !strings.Contains(err.Error(), "report 2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if list, err := mission.Leaderboard(nil); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}
