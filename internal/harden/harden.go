package harden

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"
)

// Defaults of Options.
const (
	DefaultAgent    = "agent"
	DefaultAgentUID = 1000
	DefaultTasksMax = 4096
)

// Options say what the system is for.
type Options struct {
	// Profile is audit.Standard unless given.
	Profile audit.Profile
	// AgentUser is the account that agents run as, with the uid AgentUID: the same
	// in every template, because files on workspaces carry it.
	AgentUser string
	AgentUID  int
	// TasksMax is how many processes one user, and one service, may have.
	TasksMax int
	// SkipPackages leaves packages as they are: no upgrade, nothing installed or
	// purged. For systems without a way to a package mirror; the audit then
	// doesn't know that all is upgraded.
	SkipPackages bool
	// Seal also makes a template of it: cleans up and takes its identity.
	Seal bool
	// ProviderKeys are the keys that may log in as root after sealing, as in
	// authorized_keys; nil leaves root's keys as they are, empty takes all away.
	// Keys of other accounts go.
	ProviderKeys []string
	// Now is the time that is recorded; the clock's unless given.
	Now time.Time
	// Step is told each step as it begins.
	Step func(id, title string)
}

// Step is one part of hardening.
type Step struct {
	ID, Title string
	// Checks are those of internal/audit that it is there for.
	Checks []string
	seal   bool
	skip   func(Options) bool
}

// Steps lists the steps in their order: the table of the documentation.
func Steps() []Step { return slices.Clone(steps) }

var steps = []Step{
	{ID: "system", Title: "See whether this is a system that can be hardened"},
	{ID: "packages", Title: "Upgrade all packages, and purge servers", Checks: []string{"G9.1", "G9.4", "G9.5"}, skip: func(o Options) bool { return o.SkipPackages }},
	{ID: "accounts", Title: "Agent user, no passwords, no sudo", Checks: []string{"G2", "G4", "G5"}},
	{ID: "ssh", Title: "SSH server, and host keys at first boot", Checks: []string{"G1.1", "G1.2", "G1.3", "G1.4", "G1.5", "G1.6", "G6"}},
	{ID: "units", Title: "Mask what updates by itself or can't work in a container", Checks: []string{"G9.3", "G10", "G11"}},
	{ID: "limits", Title: "Processes, core dumps, journal", Checks: []string{"G14", "G23"}},
	{ID: "secrets", Title: "A place in memory for secrets", Checks: []string{"G13.1"}},
	{ID: "filter", Title: "A filter that lets in SSH and nothing else", Checks: []string{"G9.2", "G22"}},
	{ID: "lease", Title: "Lease and idle timer", Checks: []string{"G21"}},
	{ID: "files", Title: "setuid bits, owners, modes", Checks: []string{"G12.1", "G12.2", "G12.3", "G18"}},
	{ID: "record", Title: "Note what was done", Checks: []string{"G9.4", "G17.1"}},
	{ID: "cleanup", Title: "Clean up: caches, logs, histories, keys of the build", Checks: []string{"G3.1", "G3.2", "G8", "G15"}, seal: true},
	{ID: "identity", Title: "Take its identity: host keys, machine id, random seed", Checks: []string{"G6", "G7"}, seal: true},
}

// Result is what was done.
type Result struct {
	// Changed are the changes by step, a line each. A step that found all in order
	// is not in it.
	Changed map[string][]string
}

// Changes counts them.
func (r Result) Changes() int {
	n := 0
	for _, c := range r.Changed {
		n += len(c)
	}
	return n
}

// StepError says which step failed and what it said.
type StepError struct {
	Step Step
	Said string // the end of its standard error
	Err  error  // how it couldn't be run; nil when it ran and failed
}

func (e *StepError) Error() string {
	what := e.Said
	if e.Err != nil {
		what = e.Err.Error()
	}
	return fmt.Sprintf("harden: step %s (%s) failed: %s", e.Step.ID, e.Step.Title, what)
}

func (e *StepError) Unwrap() error { return e.Err }

// Apply hardens a system. It stops at the first step that fails, with a
// *StepError; what was done stays done, and another run goes on from there.
func Apply(ctx context.Context, r remote.Runner, o Options) (Result, error) {
	o = o.withDefaults()
	if err := o.Check(); err != nil {
		return Result{}, err
	}
	return run(ctx, r, o, func(s Step) bool { return (!s.seal || o.Seal) && (s.skip == nil || !s.skip(o)) })
}

// Seal makes a template of a hardened system: the steps that Apply adds with
// Options.Seal, for whoever has to do something in between.
func Seal(ctx context.Context, r remote.Runner, o Options) (Result, error) {
	o = o.withDefaults()
	if err := o.Check(); err != nil {
		return Result{}, err
	}
	return run(ctx, r, o, func(s Step) bool { return s.seal })
}

func run(ctx context.Context, r remote.Runner, o Options, want func(Step) bool) (Result, error) {
	res := Result{Changed: map[string][]string{}}
	for _, s := range steps {
		if !want(s) {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return res, &StepError{Step: s, Err: err}
		}
		if o.Step != nil {
			o.Step(s.ID, s.Title)
		}
		text, err := o.script(s)
		if err != nil {
			return res, &StepError{Step: s, Err: err}
		}
		out, err := r.Run(ctx, remote.Script{Text: text})
		if err != nil {
			return res, &StepError{Step: s, Err: err}
		}
		for line := range strings.Lines(string(out.Stdout)) {
			if what, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "changed: "); ok {
				res.Changed[s.ID] = append(res.Changed[s.ID], what)
			}
		}
		if out.ExitCode != 0 {
			return res, &StepError{Step: s, Said: cmp.Or(tail(out.Stderr), fmt.Sprintf("it ended with exit code %d and said nothing", out.ExitCode))}
		}
	}
	return res, nil
}

// tail is the last few lines of what a step said.
func tail(said []byte) string {
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return strings.ToValidUTF8(strings.Join(lines[max(0, len(lines)-8):], "\n"), "\uFFFD")
}

func (o Options) withDefaults() Options {
	o.Profile = cmp.Or(o.Profile, audit.Standard)
	o.AgentUser = cmp.Or(o.AgentUser, DefaultAgent)
	o.AgentUID = cmp.Or(o.AgentUID, DefaultAgentUID)
	o.TasksMax = cmp.Or(o.TasksMax, DefaultTasksMax)
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	return o
}

var accountName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,30}$`)

// Check says what can't be right, all at once.
func (o Options) Check() error {
	o = o.withDefaults()
	var errs []error
	if !slices.Contains(audit.Profiles(), o.Profile) {
		errs = append(errs, fmt.Errorf("profile %q: there is %v", o.Profile, audit.Profiles()))
	}
	if !accountName.MatchString(o.AgentUser) || o.AgentUser == "root" {
		errs = append(errs, fmt.Errorf("agent user %q: must be a name of lower-case letters, digits, - and _, and not root", o.AgentUser))
	}
	if o.AgentUID < 1000 || o.AgentUID >= 60000 {
		errs = append(errs, fmt.Errorf("agent uid %d: must be from 1000 to 59999", o.AgentUID))
	}
	if o.TasksMax < 64 || o.TasksMax > 1<<22 {
		errs = append(errs, fmt.Errorf("tasks max %d: must be from 64 to %d", o.TasksMax, 1<<22))
	}
	for i, key := range o.ProviderKeys {
		if _, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(key)); err != nil || len(rest) > 0 {
			errs = append(errs, fmt.Errorf("provider key %d: must be one public key, as in authorized_keys", i+1))
		}
	}
	return errors.Join(errs...)
}

//go:embed steps/*.sh
var scripts embed.FS

//go:embed files/*
var files embed.FS

// script is a step's code with its settings.
func (o Options) script(s Step) (string, error) {
	var b strings.Builder
	set := func(name, value string) {
		fmt.Fprintf(&b, "%s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	set("PROFILE", string(o.Profile))
	set("AGENT", o.AgentUser)
	set("AGENT_UID", strconv.Itoa(o.AgentUID))
	set("TASKS_MAX", strconv.Itoa(o.TasksMax))
	set("SETUID", strings.Join(audit.SetuidAllowed(o.Profile), "\n"))
	upgraded := "keep"
	if !o.SkipPackages {
		upgraded = o.Now.UTC().Format(time.RFC3339)
	}
	set("UPGRADED", upgraded)
	keys := "keep"
	switch {
	case o.ProviderKeys != nil && len(o.ProviderKeys) == 0:
		keys = "none"
	case o.ProviderKeys != nil:
		keys = "set"
	}
	set("KEYS", keys)
	trimmed := make([]string, len(o.ProviderKeys))
	for i, k := range o.ProviderKeys {
		trimmed[i] = strings.TrimSpace(k)
	}
	set("PROVIDER_KEYS", strings.Join(trimmed, "\n"))
	for _, name := range []string{"lib", s.ID} {
		text, err := scripts.ReadFile("steps/" + name + ".sh")
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(string(text)) {
			file, ok := strings.CutPrefix(line, "#include ")
			if !ok {
				b.WriteString(line)
				continue
			}
			content, err := files.ReadFile("files/" + strings.TrimSpace(file))
			if err != nil {
				return "", err
			}
			b.Write(content)
		}
	}
	return b.String(), nil
}
