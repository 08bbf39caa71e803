package agentrun_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

// folder makes a folder of this machine with files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func content(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCodeThatCantGoInOrOutIsRefusedAtPlan(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	source := values{"dir": "src"}
	repo := func(more values) values {
		v := values{"url": "https://example.org/r.git"}
		for k, x := range more {
			v[k] = x
		}
		return v
	}
	for name, c := range map[string]struct {
		config values
		want   string
	}{
		"both":                      {values{"source": source, "repo": repo(nil)}, "source"},
		"apply without a source":    {values{"sync_back": "apply", "repo": repo(nil)}, "Nothing to apply to"},
		"apply of a detached run":   {values{"sync_back": "apply", "source": source, "detached": true}, "detached"},
		"a patch of nothing":        {values{"sync_back": "patch"}, "No code to compare"},
		"an unknown way back":       {values{"sync_back": "merge", "source": source}, "sync_back"},
		"a password in the address": {values{"repo": values{"url": "https://u:hunter2@example.org/r"}}, "credentials_wo"},
		"a command as address":      {values{"repo": values{"url": "ext::sh -c id"}}, "address of a repository"},
		"an option as ref":          {values{"repo": repo(values{"ref": "--upload-pack=x"})}, "branch, tag or commit"},
		"a push without namespace":  {values{"repo": repo(values{"push_branch": "main"})}, "outside of the namespace"},
		"a push beside it":          {values{"repo": repo(values{"push_branch": "agentsx/y", "branch_namespace": "agents"})}, "outside of the namespace"},
		"a push to a path":          {values{"repo": values{"url": "file:///srv/r", "push_branch": "agents/y", "branch_namespace": "agents"}}, "can't be pushed to"},
		"a push of a detached run":  {values{"detached": true, "repo": repo(values{"push_branch": "agents/y", "branch_namespace": "agents"})}, "detached"},
		"a key without known hosts": {values{"repo": values{"url": "git@example.org:r.git", "credentials_wo": values{"ssh_key": "k"}}}, "known_hosts"},
		"a token over http":         {values{"repo": values{"url": "http://example.org/r.git", "credentials_wo": values{"token": "t"}}}, "https"},
		"an artifact from outside":  {values{"artifacts": []any{values{"path": "../x", "destination": "out"}}}, "Invalid artifact"},
		"an absolute artifact":      {values{"artifacts": []any{values{"path": "/etc/passwd", "destination": "out"}}}, "Invalid artifact"},
		"an artifact of git's":      {values{"artifacts": []any{values{"path": ".git/config", "destination": "out"}}}, "Invalid artifact"},
		"a checkpoint at no time":   {values{"checkpoint": values{"before": false}}, "at no time"},
		"restore what isn't made":   {values{"checkpoint": values{"before": true, "restore": "after", "restore_triggers": values{"a": "1"}}}, "No such checkpoint"},
		"restore of a snapshot":     {values{"checkpoint": values{"before": true, "method": "snapshot", "restore": "before", "restore_triggers": values{"a": "1"}}}, "sandbox_rollback"},
	} {
		c.config["container_id"], c.config["command"] = "100000", "true"
		diags := server.Validate(t, "sandbox_agent_run", c.config)
		text := protocoltest.Text(diags)
		if !protocoltest.HasErrors(diags) || !strings.Contains(text, c.want) || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestASourceFolderIsWorkedOnAndItsChangesAreAppliedToIt(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	dir := folder(t, map[string]string{"main.txt": "one\n", "gone.txt": "g\n", "keep/x": "x\n", ".gitignore": "*.log\n", "node_modules/m": "m", "terraform.tfstate": "{}"})
	out := t.TempDir()
	config := values{
		"name": "fix", "source": values{"dir": dir}, "sync_back": "apply",
		"command":      `echo two >> main.txt; rm gone.txt; mkdir -p sub/dir out; echo new > sub/dir/new.txt; echo l > x.log; echo built > out/app; [ ! -e node_modules ] && pwd`,
		"test_command": "grep -q two main.txt",
		"artifacts":    []any{values{"path": "out/**", "destination": out + "/"}, values{"path": "x.log", "destination": out + "/run.log"}, values{"path": "none", "destination": out}},
	}
	r := p.NewResource(t, "sandbox_agent_run")
	said := p.apply(r, config)
	rep := report(t, r)
	if r.Get(t, "status") != "succeeded" || strings.TrimSpace(r.Text(t, "output_tail")) != "/home/agent/work" {
		t.Fatalf("%v: %s", r.Get(t, "status"), r.Text(t, "output_tail"))
	}
	if content(t, dir+"/main.txt") != "one\ntwo\n" || content(t, dir+"/sub/dir/new.txt") != "new\n" || content(t, dir+"/node_modules/m") != "m" {
		t.Error("the changes aren't in the folder")
	}
	for _, gone := range []string{"gone.txt", "x.log"} {
		if _, err := os.Stat(filepath.Join(dir, gone)); err == nil {
			t.Errorf("%s is there", gone)
		}
	}
	if content(t, out+"/out/app") != "built\n" || content(t, out+"/run.log") != "l\n" || len(rep.Artifacts) != 2 || len(rep.Artifacts[0].SHA256) != 64 || rep.ArtifactsLeftOut["none"] == "" || !strings.Contains(said, `"none"`) {
		t.Errorf("artifacts %+v, left out %v, said %s", rep.Artifacts, rep.ArtifactsLeftOut, said)
	}
	if d := rep.Diff; d == nil || !d.Applied || d.Files != 4 || d.Insertions != 3 || d.Deletions != 1 || !strings.Contains(d.Patch, "+two") || !strings.HasSuffix(r.Text(t, "diff_stat"), "4 files changed, 3 insertions(+), 1 deletion(-)") {
		t.Errorf("diff %+v", d)
	}
	if plan := p.Plan(t, r, config); plan.Action() != "no-op" {
		t.Errorf("planned again: %s", plan.Action())
	}
	if left := p.sh("ls /home/agent"); strings.TrimSpace(left) != "work" {
		t.Errorf("in the home is %q", left)
	}

	// The next run of the same folder begins with what it is by now.
	config["triggers"] = values{"n": "2"}
	config["command"] = "cat main.txt; ls; echo x > made-later"
	p.apply(r, config)
	if got := r.Text(t, "output_tail"); got != "one\ntwo\nkeep\nmain.txt\nout\nsub\n" {
		t.Errorf("the second run saw %q", got)
	}
}

func TestAFolderWithChangesOfOnesOwnIsRefusedBeforeAnythingIsStarted(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	p := newPlace(t)
	dir := folder(t, map[string]string{"a": "1\n"})
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := p.NewResource(t, "sandbox_agent_run")
	diags := p.Apply(t, t.Context(), p.Plan(t, r, values{"container_id": p.id, "command": "touch /tmp/ran", "source": values{"dir": dir}, "sync_back": "apply"}))
	if text := protocoltest.Text(diags); !strings.Contains(text, "aren't committed") || r.Exists() {
		t.Errorf("tracked %t, said %s", r.Exists(), text)
	}
	if got := p.sh("ls /tmp/ran /home/agent/work 2>/dev/null; :"); got != "" {
		t.Errorf("there is %q", got)
	}
}

func TestWhatCantBeAppliedIsAPatchAndAWarning(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	dir := folder(t, map[string]string{"a": "1\n"})
	patch := t.TempDir() + "/deep/p.patch"
	// The folder changes while the agent works: here by the run's own artifact, which comes first.
	config := values{"source": values{"dir": dir}, "sync_back": "apply", "patch_file": patch, "command": "echo 2 > a; echo mine > b",
		"artifacts": []any{values{"path": "b", "destination": dir + "/a"}}}
	r := p.NewResource(t, "sandbox_agent_run")
	said := p.apply(r, config)
	rep := report(t, r)
	if !strings.Contains(said, "not applied") || rep.Diff.Applied || rep.Diff.PatchFile != patch || !strings.Contains(content(t, patch), "+2\n") || r.Get(t, "status") != "succeeded" {
		t.Errorf("said %s, diff %+v", said, rep.Diff)
	}
	if content(t, dir+"/a") != "mine\n" {
		t.Error("the folder was changed")
	}
}

// What a killed apply leaves: the run has ended, its changes are applied, and no state says so.
func TestARunWhoseStateWasLostIsFoundAndAppliesNothingTwice(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	dir := folder(t, map[string]string{"a": "1\n"})
	config := values{"source": values{"dir": dir}, "sync_back": "apply", "command": "echo 2 > a; echo run >> /tmp/runs"}
	p.run(config)
	again := p.NewResource(t, "sandbox_agent_run")
	said := p.apply(again, config)
	if rep := report(t, again); !strings.Contains(said, "found again") || !rep.Diff.Applied || rep.Diff.Files != 1 {
		t.Errorf("said %s, diff %+v", said, rep.Diff)
	}
	if got := content(t, dir+"/a"); got != "2\n" || p.sh("cat /tmp/runs") != "run\n" {
		t.Errorf("the folder has %q, it ran %q", got, p.sh("cat /tmp/runs"))
	}
}

func TestChangesThatHoldASecretStayInTheContainer(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	dir := folder(t, map[string]string{"a": "1\n"})
	patch := t.TempDir() + "/p.patch"
	r := p.NewResource(t, "sandbox_agent_run")
	said := p.apply(r, values{"source": values{"dir": dir}, "sync_back": "apply", "patch_file": patch, "command": `echo "key=$TOKEN" > config; printf %s "$TOKEN" | base64 > coded`, "secrets_wo": values{"TOKEN": "canary-7d20b1"}, "secrets_wo_version": 1})
	rep := report(t, r)
	if !strings.Contains(said, "hold a secret") || strings.Join(rep.Diff.Withheld, " ") != "coded config" || rep.Diff.Applied || rep.Diff.Patch != "" {
		t.Errorf("said %s, diff %+v", said, rep.Diff)
	}
	if _, err := os.Stat(patch); err == nil {
		t.Error("a patch was written")
	}
	if _, err := os.Stat(dir + "/config"); err == nil {
		t.Error("the secret is in the folder")
	}
	if strings.Contains(r.State.String(), "canary") {
		t.Error("the secret is in the state")
	}
}

func TestADetachedRunsChangesAndArtifactsComeWithARefresh(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	dir, out := folder(t, map[string]string{"a": "1\n"}), t.TempDir()
	config := values{"source": values{"dir": dir}, "sync_back": "patch", "patch_file": out + "/p.patch", "detached": true, "command": "echo 2 > a; echo r > r.txt", "artifacts": []any{values{"path": "r.txt", "destination": out + "/r.txt"}}}
	r := p.run(config)
	for deadline := time.Now().Add(30 * time.Second); r.Get(t, "status") == "running" && time.Now().Before(deadline); {
		protocoltest.NoErrors(t, p.Refresh(t, r))
	}
	rep := report(t, r)
	if r.Get(t, "status") != "succeeded" || !strings.Contains(content(t, out+"/p.patch"), "+2\n") || content(t, out+"/r.txt") != "r\n" || rep.Diff.Files != 2 || rep.Diff.Patch != "" {
		t.Errorf("%v, diff %+v", r.Get(t, "status"), rep.Diff)
	}
	if content(t, dir+"/a") != "1\n" {
		t.Error("the folder was changed")
	}
}

func TestACheckpointIsGoneBackToByTriggers(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	dir := folder(t, map[string]string{"a": "1\n"})
	config := values{"name": "try", "source": values{"dir": dir}, "command": "echo 2 > a; echo n > n",
		"checkpoint": values{"before": true, "after": true, "method": "copy", "restore": "before", "restore_triggers": values{"n": "1"}}}
	r := p.run(config)
	if rep := report(t, r); len(rep.Checkpoints) != 2 || rep.Checkpoints[0].Name != "/home/agent/work/.checkpoints/before" || rep.Diff.Files != 2 {
		t.Errorf("report %+v", rep)
	}
	config["checkpoint"].(values)["restore_triggers"] = values{"n": "2"}
	plan := p.Plan(t, r, config)
	if plan.Action() != "update" {
		t.Fatalf("planned %s", plan.Action())
	}
	protocoltest.NoErrors(t, p.Apply(t, t.Context(), plan))
	if got := p.sh("cd /home/agent/work; cat a; ls; stat -c %U a"); got != "1\na\nagent\n" {
		t.Errorf("there is %q", got)
	}
	p.sh("rm -r /home/agent/work/.checkpoints")
	config["checkpoint"].(values)["restore_triggers"] = values{"n": "3"}
	diags := p.Apply(t, t.Context(), p.Plan(t, r, config))
	if text := protocoltest.Text(diags); !strings.Contains(text, "no checkpoint before") {
		t.Errorf("said %s", text)
	}
	if got := p.sh("cat /home/agent/work/a"); got != "1\n" {
		t.Errorf("there is %q", got)
	}
}

func TestACheckpointCanBeASnapshotThatTheNextRunReplaces(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	config := values{"name": "snap", "command": "true", "checkpoint": values{"before": true, "after": true}}
	r := p.run(config)
	rep := report(t, r)
	if len(rep.Checkpoints) != 2 || rep.Checkpoints[0].Method != "snapshot" || rep.Checkpoints[0].Name != "run-snap-before" || rep.Checkpoints[1].Name != "run-snap-after" {
		t.Fatalf("checkpoints %+v", rep.Checkpoints)
	}
	config["triggers"] = values{"n": "2"}
	p.apply(r, config)
	if rep := report(t, r); rep.Status != "succeeded" || len(rep.Checkpoints) != 2 {
		t.Errorf("report %+v", rep)
	}
}

// A real git is only in real guests: make test-ns.
func TestARepositoryIsClonedInsideAndItsChangesComeOut(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if !strings.Contains(p.sh("command -v git"), "git") {
		r := p.NewResource(t, "sandbox_agent_run")
		diags := p.Apply(t, t.Context(), p.Plan(t, r, values{"container_id": p.id, "command": "true", "repo": values{"url": "https://example.org/r.git"}}))
		if text := protocoltest.Text(diags); !strings.Contains(text, `no program "git"`) || r.Exists() {
			t.Errorf("said %s", text)
		}
		return
	}
	p.sh(`git init -q -b main /srv/r && cd /srv/r && echo 1 > a && git add -A && git -c user.name=t -c user.email=t@t commit -qm first && chown -R agent: /srv/r`)
	patch := t.TempDir() + "/p"
	r := p.run(values{
		"name": "clone", "repo": values{"url": "file:///srv/r", "branch_namespace": "agents", "credentials_wo": values{"token": "canary-55aa"}}, "sync_back": "patch", "patch_file": patch,
		"command": `git rev-parse --abbrev-ref HEAD; git status --short; echo 2 > a; git commit -qam work; echo evil > .git/hooks/pre-commit; git log --oneline | wc -l`,
	})
	if got := r.Text(t, "output_tail"); !strings.HasPrefix(got, "agents/clone#sbx-"+p.id[strings.LastIndex(p.id, "/")+1:]) || !strings.HasSuffix(strings.TrimSpace(got), "2") {
		t.Errorf("status %v, output %q", r.Get(t, "status"), got)
	}
	if text := content(t, patch); !strings.Contains(text, "-1\n+2\n") || strings.Contains(text, "evil") || len(r.Text(t, "commit")) != 40 {
		t.Errorf("commit %v, patch %s", r.Get(t, "commit"), text)
	}
	if strings.Contains(r.State.String(), "canary") || p.sh("grep -rl canary-55aa /home /srv /tmp /var /etc /dev/shm /run 2>/dev/null; :") != "" {
		t.Error("the token is left somewhere")
	}
}
