// Package code surrounds a run with its code: what goes in before it starts (a folder or a repository), what comes out
// after it has ended (changes, files), and checkpoints on both sides. It ties the stages of package agentrun to the working
// copies of package workcopy.
package code

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/workcopy"
)

// SyncBack says what happens to the changes of a run on the machine that applies.
type SyncBack string

// What can happen to changes. Counted and told they are always.
const (
	SyncNone  SyncBack = "none"
	SyncPatch SyncBack = "patch" // written to a file
	SyncApply SyncBack = "apply" // made in the source folder, which must be clean
)

// Repo is a repository to work in, and what may be pushed to it.
type Repo struct {
	workcopy.Repo // Branch is set by the stage
	// Namespace is the folder of branches that the run's own branch lies in, and that alone may be pushed to.
	Namespace string
	// PushBranch is a branch in Namespace that the changes are pushed to; empty for none.
	PushBranch string
}

// Stage brings code in and its changes out. One of Source and Repo is set.
type Stage struct {
	Source   *workcopy.Source
	Repo     *Repo
	SyncBack SyncBack
	// PatchFile is where a patch is written; empty for a name of its own in the current folder.
	PatchFile string
	// Refresh says that the result is collected by a refresh: then no folder and no repository is changed, and what would
	// have been applied or pushed is written as a patch.
	Refresh bool

	base string // commit that Before cloned
}

// DefaultDir is the working folder of a user's code where none is named.
func DefaultDir(user string) string {
	if user == "root" {
		return "/root/work"
	}
	return "/home/" + user + "/work"
}

// PlaceOf is where a run's working copy lies: its working folder, or the home of its user.
func PlaceOf(s *agentrun.Session) workcopy.Place { return placeAt(s.Inside, s.Spec.User, s.Spec.Dir) }

func placeAt(in workcopy.Guest, user, dir string) workcopy.Place {
	if dir == "" {
		dir = path.Dir(DefaultDir(user))
	}
	return workcopy.Place{Guest: in, User: user, Dir: dir, State: path.Dir(dir) + "/." + path.Base(dir) + ".sandbox"}
}

// Name is for messages.
func (c *Stage) Name() string {
	if c.Repo != nil {
		return "repo"
	}
	return "source"
}

// Before brings the code in. A source folder that its changes are to be applied to must be clean before anything is paid for.
func (c *Stage) Before(ctx context.Context, s *agentrun.Session) error {
	p := PlaceOf(s)
	if c.Source != nil {
		if c.SyncBack == SyncApply {
			if err := workcopy.CheckClean(ctx, c.Source.Dir, c.Source.Exclude); err != nil {
				return err
			}
		}
		sent, err := workcopy.Send(ctx, p, *c.Source)
		if err != nil {
			return err
		}
		s.Log.InfoContext(ctx, "sent the source folder", "files", sent.Files, "bytes", sent.Bytes, "sha256", sent.SHA256)
		return nil
	}
	repo := c.Repo.Repo
	repo.Branch = workcopy.WorkBranch(c.Repo.Namespace, s.Spec.Name, s.VMID)
	cloned, err := workcopy.Clone(ctx, p, repo)
	if err != nil {
		return err
	}
	c.base = cloned.Commit
	s.Log.InfoContext(ctx, "cloned the repository", "commit", cloned.Commit, "branch", repo.Branch)
	return nil
}

// limits of what a report holds, so that a state stays small.
const (
	reportPaths = 200
	reportPatch = 32 << 10
)

// After brings the changes out. What can't be done with them is a warning: the result of a run that was paid for is kept,
// and the changes as a patch.
func (c *Stage) After(ctx context.Context, s *agentrun.Session, r *agentrun.Report) error {
	return within(ctx, s, changesLimit, "The changes couldn't be collected", func(ctx context.Context) error { return c.after(ctx, s, r) })
}

// How long the stages may take to bring something out. What is in the sandbox is of an agent's making: a pipe in the place of a
// file must not hold up each refresh to come.
const (
	changesLimit   = 10 * time.Minute
	artifactsLimit = 20 * time.Minute
)

// within gives work its time; what doesn't end in it stays in the sandbox, with a warning.
func within(ctx context.Context, s *agentrun.Session, limit time.Duration, summary string, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(limited)
	if err != nil && errors.Is(limited.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		s.Warn(summary, fmt.Sprintf("It took more than %s, so what the run left stays in the container: %v", limit, err))
		return nil
	}
	return err
}

func (c *Stage) after(ctx context.Context, s *agentrun.Session, r *agentrun.Report) error {
	p := PlaceOf(s)
	if c.Repo != nil {
		base := c.base
		if base == "" {
			var err error
			if base, err = workcopy.BaseCommit(ctx, p); err != nil {
				return err
			}
		}
		r.Commit = base
	}
	changes, err := workcopy.Collect(ctx, p, c.ignore(), workcopy.Limits{})
	if err != nil {
		return uncollected(s, "The changes couldn't be collected", err)
	}
	patch := changes.Patch()
	r.Diff = summary(changes, patch)
	if len(changes.LeftOut) > 0 {
		s.Warn("Changes stay in the container", fmt.Sprintf("These paths of %s are not as they were, and are not among the changes:\n%s", p.Dir, listed(changes.LeftOut)))
	}
	if c.Repo != nil {
		r.Diff.Branch = workcopy.WorkBranch(c.Repo.Namespace, s.Spec.Name, s.VMID)
	}
	if r.Diff.Withheld = changes.Holding(c.secret(s)); len(r.Diff.Withheld) > 0 {
		for i, name := range r.Diff.Withheld {
			r.Diff.Withheld[i] = s.Redact.Known(name)
		}
		r.Diff.Stat, r.Diff.Paths = s.Redact.Known(r.Diff.Stat), nil
		s.Warn("Changes hold a secret", fmt.Sprintf("The run wrote a secret that it was given into %s. Its changes stay in the container: nothing was written, applied or pushed.", strings.Join(r.Diff.Withheld, ", ")))
		return nil
	}
	// A refresh knows no secrets, so nothing of the content goes into a state.
	if !c.Refresh && len(patch) <= reportPatch {
		r.Diff.Patch = strings.ToValidUTF8(string(patch), "\uFFFD")
	}
	if len(changes.List) == 0 {
		return nil
	}
	return c.bringBack(ctx, s, r, changes, patch)
}

// secret finds what the run was given and mustn't get out.
func (c *Stage) secret(s *agentrun.Session) func(string) bool {
	var own []string
	if c.Repo != nil {
		own = c.Repo.Credentials.Secrets()
	}
	return func(text string) bool {
		for _, secret := range own {
			if strings.Contains(text, secret) {
				return true
			}
		}
		return s.Redact.Known(text) != text
	}
}

func (c *Stage) ignore() *workcopy.Ignore {
	if c.Source == nil {
		return workcopy.NewIgnore(nil)
	}
	if ignore, err := workcopy.Around(c.Source.Dir, c.Source.Exclude); err == nil {
		return ignore
	}
	return workcopy.NewIgnore(c.Source.Exclude) // the folder isn't here any more
}

// uncollected turns what will fail again each time into a warning; the rest is tried again by the next collection.
func uncollected(s *agentrun.Session, summary string, err error) error {
	var missing *workcopy.MissingTool
	if !errors.Is(err, workcopy.ErrRefused) && !errors.As(err, &missing) && !workcopy.IsScriptFailure(err) {
		return err
	}
	s.Warn(summary, fmt.Sprintf("What the run left stays in %s of the container: %v", s.Spec.Dir, err))
	return nil
}

// bringBack does with the changes what is asked for.
func (c *Stage) bringBack(ctx context.Context, s *agentrun.Session, r *agentrun.Report, changes workcopy.Changes, patch []byte) error {
	push := c.Repo != nil && c.Repo.PushBranch != ""
	var failed error
	switch {
	case c.SyncBack == SyncApply && c.Refresh, push && c.Refresh:
		failed = errors.New("a refresh changes no folder and no repository")
	case c.SyncBack == SyncApply:
		failed = workcopy.Apply(ctx, c.Source.Dir, changes)
		r.Diff.Applied = failed == nil
	case push:
		failed = c.push(ctx, s, r, changes)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // the next collection does it
	}
	if c.SyncBack == SyncPatch || failed != nil {
		file, err := c.writePatch(r, patch)
		if err != nil {
			return err
		}
		r.Diff.PatchFile = file
	}
	if failed != nil {
		what, how := "applied to "+c.target(), "git apply"
		if push {
			what, how = "pushed to "+c.Repo.PushBranch, "git apply, commit and push"
		}
		s.Warn("The changes were not "+strings.Fields(what)[0], fmt.Sprintf("They could not be %s: %v. Nothing is lost: they are in %s, which %s takes.", what, failed, r.Diff.PatchFile, how))
	}
	return nil
}

func (c *Stage) target() string {
	if c.Source != nil {
		return c.Source.Dir
	}
	return c.Repo.URL
}

func (c *Stage) push(ctx context.Context, s *agentrun.Session, r *agentrun.Report, changes workcopy.Changes) error {
	if r.Commit == "" {
		return errors.New("the commit that the run began at isn't known")
	}
	repo := c.Repo.Repo
	repo.Branch = c.Repo.PushBranch
	p := workcopy.Push{Repo: repo, Base: r.Commit, Namespace: c.Repo.Namespace, Author: "sandbox agent <agent@sandbox.invalid>"}
	who := "A command"
	if r.Agent != nil {
		who = r.Agent.Name
	}
	p.Message = fmt.Sprintf("%s: changes by %s\n\nRun %s in container %d; %s.\n", s.Spec.Name, who, s.RunID, s.VMID, changes.Stat())
	if r.FinishedAt != nil {
		p.When = *r.FinishedAt
	}
	commit, err := workcopy.PushChanges(ctx, p, changes)
	if err != nil {
		return err
	}
	r.Diff.Pushed, r.Diff.Branch, r.Diff.PushedCommit = true, repo.Branch, commit
	return nil
}

// writePatch writes the patch beside its place and renames it.
func (c *Stage) writePatch(r *agentrun.Report, patch []byte) (string, error) {
	name := filepath.FromSlash(c.PatchFile)
	if name == "" {
		name = fmt.Sprintf("sandbox-%d-%s.patch", r.ContainerID, r.Name)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // a patch of a working folder isn't secret
		return "", fmt.Errorf("unable to write the patch: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".sandbox-*")
	if err != nil {
		return "", fmt.Errorf("unable to write the patch: %w", err)
	}
	_, err = f.Write(patch)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return "", fmt.Errorf("unable to write the patch: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return name, nil
}

func summary(changes workcopy.Changes, patch []byte) *agentrun.Diff {
	stats := changes.FileStats()
	stat := workcopy.Total(stats)
	d := &agentrun.Diff{Files: stat.Files, Insertions: stat.Insertions, Deletions: stat.Deletions, Stat: workcopy.StatText(stats, 50), PatchSHA256: workcopy.SHA256(patch), Paths: []agentrun.ChangedPath{}}
	for i, f := range stats {
		if i == reportPaths {
			break
		}
		d.Paths = append(d.Paths, agentrun.ChangedPath{Path: valid(f.Path), Kind: f.Kind, Insertions: f.Insertions, Deletions: f.Deletions, Binary: f.Binary})
	}
	d.LeftOut = reasons(changes.LeftOut)
	return d
}

// reasons is at most reportPaths of what was left out.
func reasons(list []workcopy.LeftOut) map[string]string {
	if len(list) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, l := range list[:min(len(list), reportPaths)] {
		out[valid(l.Path)] = valid(l.Reason)
	}
	return out
}

func listed(list []workcopy.LeftOut) string {
	const most = 20
	var b strings.Builder
	for _, l := range list[:min(len(list), most)] {
		fmt.Fprintf(&b, "  %q: %s\n", l.Path, l.Reason)
	}
	if len(list) > most {
		fmt.Fprintf(&b, "  … and %d more\n", len(list)-most)
	}
	return b.String()
}

func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
