package agentrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest/run"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/redact"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// Grace is how long a run has to end between TERM and KILL.
const Grace = 10 * time.Second

// Sandboxes is how sandboxes are entered; a *sandbox.Manager.
type Sandboxes interface {
	Inside(ctx context.Context, prior sandbox.Prior) (*sandbox.Inside, error)
	Peek(ctx context.Context, prior sandbox.Prior) (*sandbox.Inside, error)
}

// Engine starts, follows and collects runs. Safe for concurrent use; one
// process needs one.
type Engine struct {
	sandboxes Sandboxes
	clock     sandbox.Clock
	log       *slog.Logger

	mu     sync.Mutex
	active map[string]bool // keys that are being started or followed
}

// New makes an engine. A nil clock is the system's, a nil logger discards.
func New(sandboxes Sandboxes, clock sandbox.Clock, log *slog.Logger) *Engine {
	if clock == nil {
		clock = sandbox.SystemClock()
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Engine{sandboxes: sandboxes, clock: clock, log: log, active: map[string]bool{}}
}

// Run is a run that was started or found, and how it stands. It is what a
// caller keeps.
type Run struct {
	// Ref, its claim included, and HostKey say in which sandbox it is; ID names
	// it there.
	Ref     sandbox.Ref
	HostKey string
	ID      string
	// Adopted says that it was found, not started.
	Adopted bool
	Report  *Report

	key    string
	inside *sandbox.Inside
	begun  func() // ends the note that work is under way
}

// Prior is how the run's sandbox is entered again.
func (r *Run) Prior() sandbox.Prior { return sandbox.Prior{Ref: r.Ref, SSHHostKey: r.HostKey} }

// Warn tells the user something that is no error.
type Warn func(summary, detail string)

// Start enters a sandbox and starts the run there, or finds the one of the same
// key whose result nobody has collected. The caller must call Wait or Leave.
//
// Errors, with nothing started: those of entering (sandbox.ErrNotRunning and
// its like), sandbox.ErrRunNeeds, ErrNoUser, ErrNoTmpfs, ErrGuestFull,
// ErrNoAgent, ErrRunTwice, and what a stage says.
func (e *Engine) Start(ctx context.Context, prior sandbox.Prior, spec Spec, warn Warn) (*Run, error) {
	begin := e.clock.Now()
	inside, err := e.sandboxes.Inside(ctx, prior)
	if err != nil {
		return nil, err
	}
	r := &Run{Ref: inside.Ref, HostKey: inside.HostKey, inside: inside, key: spec.key(inside.Claim)}
	if !e.take(r.key) {
		return nil, &sandbox.Error{Op: "run", Ref: r.Ref, Kind: sandbox.ErrRunTwice, What: fmt.Sprintf("start %q", spec.Name),
			Remedy: "give each of them a name of its own (name = \"…\")"}
	}
	r.begun = inside.Begin()
	if err := e.start(ctx, r, &spec, warn, begin); err != nil {
		e.Leave(r)
		return nil, err
	}
	return r, nil
}

func (e *Engine) take(key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.active[key] {
		return false
	}
	e.active[key] = true
	return true
}

// Leave says that the caller doesn't follow the run any longer. The run goes on.
func (e *Engine) Leave(r *Run) {
	e.mu.Lock()
	delete(e.active, r.key)
	e.mu.Unlock()
	if r.begun != nil {
		r.begun()
		r.begun = nil
	}
}

func (e *Engine) start(ctx context.Context, r *Run, spec *Spec, warn Warn, begin time.Time) error {
	r.Report = &Report{SchemaVersion: SchemaVersion, Name: spec.Name, ContainerID: r.Ref.VMID, Status: Running, User: spec.User, Attempts: []Attempt{}}
	g := &counted{inside: r.inside, trips: &r.Report.Timings.RoundTrips}
	binary, version := "", []string(nil)
	if spec.Agent != nil {
		r.Report.Agent = &AgentInfo{Name: spec.Agent.Name}
		binary, version = spec.Agent.Binary, spec.Agent.VersionCommand
	}
	asked := e.clock.Now()
	facts, err := patiently(ctx, e, func(ctx context.Context) (run.Facts, error) {
		return run.Look(ctx, g, r.key, spec.User, binary, version)
	})
	if err != nil {
		return e.explain(r.Ref, spec, err)
	}
	r.Report.ClockOffsetMS = clockOffset(facts.Now, asked, e.clock.Now())
	if facts.ID != "" {
		r.ID, r.Adopted = facts.ID, true
		e.log.InfoContext(ctx, "found a run that was started earlier", "vmid", r.Ref.VMID, "run", r.ID)
		return nil
	}
	if spec.Agent != nil && facts.Binary == "" {
		return noAgent(r.Ref, spec, facts.Manifest)
	}
	if len(spec.Secrets) > 0 && !facts.Memory {
		return e.explain(r.Ref, spec, &run.Error{Kind: run.NoMemory, Message: "/run"})
	}
	if spec.Agent != nil {
		r.Report.Agent.Version = facts.Version
		if spec.Agent.ParseVersion != nil {
			r.Report.Agent.Version = spec.Agent.ParseVersion(facts.Version)
		}
	}
	s := e.session(r, spec, warn)
	for _, stage := range spec.Stages {
		if err := stage.Before(ctx, s); err != nil {
			return err
		}
	}
	r.Report.Timings.PrepareMS = e.clock.Now().Sub(begin).Milliseconds()

	begin = e.clock.Now()
	g = &counted{inside: r.inside, trips: &r.Report.Timings.RoundTrips}
	request := spec.request(r.key)
	started, err := patiently(ctx, e, func(ctx context.Context) (run.Started, error) {
		// To stop it half-way would leave a run that nobody knows of; it takes a moment.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startLimit)
		defer cancel()
		return run.Start(ctx, g, request)
	})
	if err != nil {
		return e.explain(r.Ref, spec, err)
	}
	r.ID, r.Adopted = started.ID, started.Adopted
	r.Report.Timings.StartMS = e.clock.Now().Sub(begin).Milliseconds()
	e.log.InfoContext(ctx, "started a run", "vmid", r.Ref.VMID, "run", r.ID, "adopted", r.Adopted)
	return nil
}

// session is a visit for stages.
func (e *Engine) session(r *Run, spec *Spec, warn Warn) *Session {
	if warn == nil {
		warn = func(string, string) {}
	}
	return &Session{Inside: r.inside, Spec: spec, RunID: r.ID, Redact: spec.redactor(), Log: e.log, Warn: warn, engine: e, run: r}
}

// request is what the guest is asked for.
func (s *Spec) request(key string) run.Request {
	launch := run.Launch{Code: s.Command.Script, Argv: s.Command.Argv, PromptArg: s.Command.PromptArg, PromptFileArg: s.Command.PromptFileArg,
		PromptStdin: s.Command.PromptStdin, Dir: s.Dir, Env: maps.Clone(s.Command.Environment)}
	if launch.Env == nil {
		launch.Env = map[string]string{}
	}
	maps.Copy(launch.Env, s.Environment)
	r := run.Request{Key: key, User: s.User, Limit: s.Timeout, Grace: Grace, Agent: launch, Repair: s.MaxRepairs, Prompt: s.Prompt,
		Secrets: s.Secrets, Forms: redact.Forms(s.secretValues()...)}
	if s.TestCommand != "" {
		r.Test = &run.Launch{Code: s.TestCommand, Dir: s.Dir, Env: launch.Env}
	}
	return r
}

func (s *Spec) secretValues() []string { return slices.Collect(maps.Values(s.Secrets)) }

func (s *Spec) redactor() *redact.Redactor { return redact.New(s.secretValues()...) }

// counted counts the commands that go to a guest.
type counted struct {
	inside *sandbox.Inside
	trips  *int
}

// Exec runs a command.
func (c *counted) Exec(ctx context.Context, cmd guest.Command) (guest.Result, error) {
	*c.trips++
	return c.inside.Exec(ctx, cmd)
}

// startLimit is how long the call may take that starts a run.
const startLimit = time.Minute

// patience is how long a connection that keeps breaking is made anew.
const patience = 2 * time.Minute

// patiently repeats what may be sent twice while the connection breaks.
func patiently[T any](ctx context.Context, e *Engine, do func(context.Context) (T, error)) (T, error) {
	until := e.clock.Now().Add(patience)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		out, err := do(ctx)
		if err == nil || !broken(err) || ctx.Err() != nil || !e.clock.Now().Before(until) {
			return out, err
		}
		e.log.DebugContext(ctx, "the connection broke, trying again", "cause", err)
		if e.clock.Sleep(ctx, pause) != nil {
			return out, err
		}
	}
}

// broken says that the way to a guest failed, not what was done there.
func broken(err error) bool {
	var lost *guest.LostError
	return errors.As(err, &lost) || errors.Is(err, sandbox.ErrNotReady)
}

// clockOffset is how far the guest's clock is ahead, in ms. Its clock was read to the second, so less is 0.
func clockOffset(theirs, before, after time.Time) int64 {
	ours := before.Add(after.Sub(before) / 2)
	d := theirs.Sub(ours).Milliseconds()
	if theirs.IsZero() || d > -1500 && d < 1500 {
		return 0
	}
	return d
}
