//go:build unix

package workcopy

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

var program = files{"main.go": "package main\n", "run*": "#!/bin/sh\n", "lib/x.go": "package lib\n", ".gitignore": "ignored\n", "ignored": "tracked all the same\n", "link@": "lib/x.go"}

// watched is a place whose git tells a file how it is called, with which variables.
func watched(t *testing.T) (p Place, l *local, calls func() string) {
	t.Helper()
	needsGit(t)
	p, l = newPlace(t)
	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	put(t, bin, files{"git*": "#!/bin/sh\n{ echo \"$@\"; env; } >> " + log + "\nPATH=" + os.Getenv("PATH") + "\nexec git \"$@\"\n"})
	l.path = bin + ":" + os.Getenv("PATH")
	return p, l, func() string {
		text, _ := os.ReadFile(log)
		return string(text)
	}
}

func TestARepositoryIsClonedWithCredentialsThatAreNowhereAfterwards(t *testing.T) {
	t.Parallel()
	p, l, calls := watched(t)
	bare, commit := newRemote(t, program)
	address := serveHTTP(t, bare, canary)
	var arguments strings.Builder
	l.before = func(cmd guest.Command) { arguments.WriteString(strings.Join(cmd.Args, " ") + cmd.Script) }
	repo := Repo{URL: address, Branch: "fix#sbx-100001", Credentials: &Credentials{Token: canary}}
	cloned, err := Clone(t.Context(), p, repo)
	if err != nil || cloned.Commit != commit {
		t.Fatalf("%+v, %v", cloned, err)
	}
	if got := content(t, p.Dir); !maps.Equal(got, program) {
		t.Errorf("there is %v", got)
	}
	if got := git(t, p.Dir, "rev-parse", "--abbrev-ref", "HEAD"); got != "fix#sbx-100001" {
		t.Errorf("on branch %s", got)
	}
	if status := git(t, p.Dir, "status", "--porcelain"); status != "" {
		t.Errorf("git sees %s", status)
	}
	if calls() == "" || strings.Contains(calls(), canary) || strings.Contains(arguments.String(), canary) {
		t.Error("the token was in a command line or in git's environment, or git wasn't watched")
	}
	for _, dir := range []string{p.Dir, p.State} {
		if found := grep(t, dir, canary); found != "" {
			t.Errorf("the token is in %s", found)
		}
	}
	if left, _ := filepath.Glob(l.memory + "/*"); len(left) != 0 {
		t.Errorf("%v stays", left)
	}
	if c := collect(t, p); len(c.List) != 0 {
		t.Errorf("changes: %+v", c)
	}
}

// grep returns the first file below dir that holds a text.
func grep(t *testing.T, dir, text string) (found string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if b, _ := os.ReadFile(name); strings.Contains(string(b), text) {
				found = name
				return filepath.SkipAll
			}
		}
		return nil
	})
	return found
}

func TestWrongCredentialsAreToldWithoutShowingThem(t *testing.T) {
	t.Parallel()
	bare, _ := newRemote(t, program)
	address := serveHTTP(t, bare, "another")
	p, l := newPlace(t)
	_, err := Clone(t.Context(), p, Repo{URL: address, Branch: "b", Credentials: &Credentials{Username: "u", Token: canary}})
	if !errors.Is(err, ErrGit) || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "Authentication failed") {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(l.memory + "/*"); len(left) != 0 {
		t.Errorf("%v stays", left)
	}
}

func TestCredentialsNeedMemoryToStandIn(t *testing.T) {
	t.Parallel()
	bare, _ := newRemote(t, program)
	p, l := newPlace(t)
	bin := t.TempDir()
	put(t, bin, files{"stat*": "#!/bin/sh\necho ext2/ext3\n"})
	l.path = bin + ":" + os.Getenv("PATH")
	_, err := Clone(t.Context(), p, Repo{URL: "http://127.0.0.1/x", Branch: "b", Credentials: &Credentials{Token: canary}})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "tmpfs") {
		t.Errorf("got %v", err)
	}
	if _, err := Clone(t.Context(), p, Repo{URL: "file://" + bare, Branch: "b"}); err != nil {
		t.Errorf("without credentials: %v", err)
	}
}

func TestARefIsABranchATagOrACommit(t *testing.T) {
	t.Parallel()
	bare, commit := newRemote(t, program)
	for _, ref := range []string{"", "main", "v1", commit, commit[:9]} {
		p, _ := newPlace(t)
		cloned, err := Clone(t.Context(), p, Repo{URL: "file://" + bare, Ref: ref, Depth: 1, Branch: "b"})
		if err != nil || cloned.Commit != commit {
			t.Errorf("%q: %+v, %v", ref, cloned, err)
		}
	}
	p, _ := newPlace(t)
	if _, err := Clone(t.Context(), p, Repo{URL: "file://" + bare, Ref: "none", Branch: "b"}); !errors.Is(err, ErrGit) {
		t.Errorf("got %v", err)
	}
}

func TestAHostileRepositoryRunsNothing(t *testing.T) {
	t.Parallel()
	needsGit(t)
	trap := filepath.Join(t.TempDir(), "sprung")
	bare, commit := newRemote(t, files{"a": "1\n", ".gitattributes": "* filter=evil diff=evil merge=evil\n", ".gitmodules": "[submodule \"x\"]\npath = x\nurl = ext::touch " + trap + "\n"})
	p, l := newPlace(t)
	// The user's own configuration knows such a filter, as git-lfs' does.
	evil := "[filter \"evil\"]\n\tsmudge = touch " + trap + "\n\tclean = touch " + trap + "\n\trequired = true\n[diff \"evil\"]\n\ttextconv = touch " + trap + "\n\tcommand = touch " + trap + "\n" +
		"[core]\n\tfsmonitor = touch " + trap + "\n\thooksPath = " + t.TempDir() + "\n[alias]\n\tadd = !touch " + trap + "\n"
	home := t.TempDir()
	put(t, home, files{".gitconfig": evil})
	l.before = func(cmd guest.Command) {
		if cmd.Env != nil {
			cmd.Env["HOME"] = home
		}
	}
	if _, err := Clone(t.Context(), p, Repo{URL: "file://" + bare, Branch: "b"}); err != nil {
		t.Fatal(err)
	}
	// Then the agent makes its own repository a trap, and works.
	hook := "#!/bin/sh\ntouch " + trap + "\n"
	put(t, p.Dir, files{
		"a": "2\n", ".git/config": evil + "[include]\n\tpath = " + home + "/.gitconfig\n", ".git/hooks/pre-commit*": hook, ".git/hooks/post-index-change*": hook, ".git/hooks/pre-push*": hook,
		".git/objects/info/alternates": "/etc\n", "sub/.git/config": evil, "sub/.git/HEAD": "ref: refs/heads/x\n", "sub/b": "b\n",
	})
	changes := collect(t, p)
	pushed, err := PushChanges(t.Context(), Push{
		Repo: Repo{URL: "file://" + bare, Branch: "agents/x"}, Base: commit, Namespace: "agents", Message: "m\n", Author: "A <a@b>", When: time.Unix(1, 0),
	}, changes)
	if err != nil {
		t.Fatal(err)
	}
	if got := git(t, bare, "show", "--format=", "--name-status", pushed); got != "M\ta\nA\tsub/b" {
		t.Errorf("pushed:\n%s", got)
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("the trap was sprung")
	}
}

func TestAPushGoesToItsNamespaceOnceAndOverwritesNothing(t *testing.T) {
	t.Parallel()
	bare, commit := newRemote(t, program)
	address := serveHTTP(t, bare, canary)
	p, _ := newPlace(t)
	if _, err := Clone(t.Context(), p, Repo{URL: "file://" + bare, Branch: "b"}); err != nil {
		t.Fatal(err)
	}
	put(t, p.Dir, files{"main.go": "package main // changed\n", "ignored": "changed\n", "run": "now plain\n", "new/file*": "n", "x.bin": "\x00\x01"})
	if err := os.Remove(filepath.Join(p.Dir, "lib", "x.go")); err != nil {
		t.Fatal(err)
	}
	changes := collect(t, p)
	push := Push{Repo: Repo{URL: address, Branch: "agents/fix-1", Credentials: &Credentials{Token: canary}}, Base: commit, Namespace: "agents", Message: "Fix it\n", Author: "Sandbox <s@sandbox.invalid>", When: time.Unix(1700000000, 0)}
	first, err := PushChanges(t.Context(), push, changes)
	if err != nil {
		t.Fatal(err)
	}
	check := filepath.Join(t.TempDir(), "check")
	git(t, t.TempDir(), "clone", "-q", "--branch", "agents/fix-1", bare, check)
	if got, want := content(t, check), content(t, p.Dir); !maps.Equal(got, want) {
		t.Errorf("pushed was %v, not %v", got, want)
	}
	if got := git(t, bare, "log", "-1", "--format=%an|%s|%ct|%P", first); got != "Sandbox|Fix it|1700000000|"+commit {
		t.Errorf("the commit is %s", got)
	}
	if again, err := PushChanges(t.Context(), push, changes); err != nil || again != first {
		t.Errorf("again: %s, %v", again, err)
	}

	for name, bad := range map[string]struct {
		change func(*Push)
		kind   error
		branch string // must not move
	}{
		"outside of the namespace": {func(p *Push) { p.Branch = "main" }, ErrRefused, "main"},
		"beside the namespace":     {func(p *Push) { p.Branch = "agentsx/y" }, ErrRefused, "agentsx/y"},
		"no namespace":             {func(p *Push) { p.Namespace = "" }, ErrRefused, "main"},
		"out of it by dots":        {func(p *Push) { p.Branch = "agents/../main" }, ErrRefused, "main"},
		"other commits are there":  {func(p *Push) { p.When = time.Unix(1, 0) }, ErrGit, "agents/fix-1"},
		"wrong token":              {func(p *Push) { p.Branch = "agents/z"; p.Credentials = &Credentials{Token: canary + "x"} }, ErrGit, "agents/z"},
		"another base":             {func(p *Push) { p.Branch = "agents/z"; p.Base = strings.Repeat("1", 40) }, ErrGit, "agents/z"},
	} {
		before := git(t, bare, "for-each-ref", "refs/heads/"+bad.branch)
		p := push
		bad.change(&p)
		_, err := PushChanges(t.Context(), p, changes)
		if !errors.Is(err, bad.kind) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", name, err)
		}
		if after := git(t, bare, "for-each-ref", "refs/heads/"+bad.branch); after != before {
			t.Errorf("%s: %s became %s", name, before, after)
		}
	}
}

func TestAKeyOpensARepositoryOverSSHForCloneAndPush(t *testing.T) {
	t.Parallel()
	bare, commit := newRemote(t, program)
	address, credentials := serveSSH(t, bare)
	p, l := newPlace(t)
	if _, err := Clone(t.Context(), p, Repo{URL: address, Branch: "b", Credentials: credentials}); err != nil {
		t.Fatal(err)
	}
	put(t, p.Dir, files{"new": "n\n"})
	changes := collect(t, p)
	pushed, err := PushChanges(t.Context(), Push{Repo: Repo{URL: address, Branch: "agents/x", Credentials: credentials}, Base: commit, Namespace: "agents", Message: "m", Author: "A <a@b>", When: time.Unix(1, 0)}, changes)
	if err != nil || git(t, bare, "rev-parse", "agents/x") != pushed {
		t.Errorf("%s, %v", pushed, err)
	}
	_, other := serveSSH(t, bare)
	wrong := *credentials
	wrong.KnownHosts = strings.Replace(credentials.KnownHosts, strings.Fields(credentials.KnownHosts)[2], strings.Fields(other.KnownHosts)[2], 1)
	p2, _ := newPlace(t)
	if _, err := Clone(t.Context(), p2, Repo{URL: address, Branch: "b", Credentials: &wrong}); !errors.Is(err, ErrGit) || !strings.Contains(err.Error(), "Host key verification failed") {
		t.Errorf("with another host key: %v", err)
	}
	if left, _ := filepath.Glob(l.memory + "/*"); len(left) != 0 {
		t.Errorf("%v stays", left)
	}
}

func TestAddressesAndBranchesThatGitWouldTakeForSomethingElse(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"https://h/x.git": true, "git@h:o/r.git": true, "ssh://git@h:2222/o/r": true, "file:///srv/r.git": true, "http://h/x": true,
		"ext::sh -c x": false, "-oProxyCommand=x": false, "ssh://-oProxyCommand=x/y": false, "https://u:p@h/x": false, "/srv/r.git": false, "git://h/x": false, "": false, "https:///x": false, "h:x\ny": false, "-x@h:y": false,
	} {
		if err := CheckURL(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, name := range []string{"", "-x", "a..b", "a b", "a/.b", "a.lock", "x/", "/x", "a~1", "a^", "@", "a@{1}", "refs/heads/x", "a\x01"} {
		if CheckBranch(name) == nil {
			t.Errorf("branch %q is taken", name)
		}
	}
	if got := WorkBranch("agents/", "fix", 100001); got != "agents/fix#sbx-100001" || CheckBranch(got) != nil {
		t.Errorf("got %s", got)
	}
}
