package examples

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

const perPR = "per-pr"

// pipeline runs the script of the workflows, as a runner does.
type pipeline struct {
	t      *testing.T
	env    *acctest.Environment
	folder string
	vars   map[string]string
}

func startPipeline(t *testing.T) *pipeline {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the workflows' script is for sh")
	}
	env := acctest.New(t)
	acctest.NeedsFirewall(t, env)
	cli := acctest.CommandLine(t)
	dir := t.TempDir()
	folder := filepath.Join(dir, "checkout")
	if err := os.CopyFS(folder, os.DirFS(perPR)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(folder, "ci", "sandbox.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	// The script runs init, which takes a provider from a mirror only.
	mirror := filepath.Join(dir, "mirror")
	place := filepath.Join(mirror, cli.RegistryHost(), tfcli.Source, "0.1.0", runtime.GOOS+"_"+runtime.GOARCH)
	if err := os.MkdirAll(place, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(providerDir(t), "terraform-provider-sandbox"), filepath.Join(place, "terraform-provider-sandbox_v0.1.0")); err != nil {
		t.Fatal(err)
	}
	rc := filepath.Join(dir, "cli.tfrc")
	write(t, rc, fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror))
	p := &pipeline{t: t, env: env, folder: folder, vars: env.Variables()}
	maps.Copy(p.vars, map[string]string{
		"TF": cli.Path, "TF_CLI_CONFIG_FILE": rc, "CHECKPOINT_DISABLE": "1", "BACKEND": "local", "STATE_KEY": "pr-7",
		"TF_VAR_pull_request": "7", "TF_VAR_commit": "c0ffee1", "TF_VAR_run": "1", "PATH": os.Getenv("PATH"), "HOME": dir,
	})
	t.Cleanup(func() {
		if _, err := p.try("destroy"); err != nil {
			t.Errorf("destroying what is left: %v", err)
		}
	})
	return p
}

// try runs a step and returns what it said.
func (p *pipeline) try(step string, more ...string) (string, error) {
	cmd := exec.Command(filepath.Join(p.folder, "ci", "sandbox.sh"), step)
	for name, value := range p.vars {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, more...)
	said, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", step, err, said)
	}
	return string(said), err
}

func (p *pipeline) run(step string, more ...string) string {
	p.t.Helper()
	said, err := p.try(step, more...)
	if err != nil {
		p.t.Fatal(err)
	}
	return said
}

// guests are the sandboxes of the test's owner on the server, with their markers.
func (p *pipeline) guests(client *pve.Client) map[int]*sandbox.Marker {
	p.t.Helper()
	client.Lists().Drop()
	resources, err := client.Lists().Resources(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	out := map[int]*sandbox.Marker{}
	for _, r := range resources {
		if r.Type != "lxc" || r.Template || !strings.Contains(r.Tags, sandbox.OwnerTag(p.env.Owner)) {
			continue
		}
		cfg, err := client.LXCConfig(p.t.Context(), r.Node, r.VMID)
		if pve.Means(err, pve.NoSuchGuest) {
			continue
		}
		if err != nil {
			p.t.Fatal(err)
		}
		if _, m := sandbox.SplitDescription(cfg.Text("description")); m != nil && m.Owner == p.env.Owner {
			out[r.VMID] = m
		}
	}
	return out
}

func (p *pipeline) only(client *pve.Client) (int, *sandbox.Marker) {
	p.t.Helper()
	guests := p.guests(client)
	if len(guests) != 1 {
		p.t.Fatalf("on the server are %v, want one", guests)
	}
	for vmid, m := range guests {
		return vmid, m
	}
	return 0, nil
}

// expire moves the end of a lease into the past, on the server: what hours do otherwise.
func (p *pipeline) expire(client *pve.Client, vmid int) {
	p.t.Helper()
	resources, err := client.Lists().Resources(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	i := slices.IndexFunc(resources, func(r pve.Resource) bool { return r.IsGuest() && r.VMID == vmid })
	cfg, err := client.LXCConfig(p.t.Context(), resources[i].Node, vmid)
	if err != nil {
		p.t.Fatal(err)
	}
	text, m := sandbox.SplitDescription(cfg.Text("description"))
	m.Expires = time.Now().Add(-time.Hour)
	description, err := sandbox.JoinDescription(text, m)
	if err == nil {
		err = client.UpdateLXC(p.t.Context(), resources[i].Node, vmid, pve.LXCUpdate{Set: map[string]string{"description": description}})
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// The whole life: a push, another push, a night after everybody forgot, a new push, and the end.
func TestTheLifeOfAPullRequestThroughTerraform(t *testing.T) {
	t.Parallel()
	p := startPipeline(t)
	client, err := pve.New(p.env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)

	// The saved plan doesn't hold the ephemeral token; the apply is given it again.
	token := "TF_VAR_token=token-of-this-test"
	p.run("plan", token)
	plan, err := os.ReadFile(filepath.Join(p.folder, "plan.tfplan"))
	if err != nil || bytes.Contains(plan, []byte("token-of-this-test")) {
		t.Errorf("the plan holds the token, or there is none: %v", err)
	}
	if said := p.run("apply", token); !strings.Contains(said, "testing c0ffee1 on pr-7") || !strings.Contains(said, "with a token") {
		t.Errorf("the apply said %s", said)
	}
	state, err := os.ReadFile(filepath.Join(p.folder, "pr-7.tfstate"))
	if err != nil || bytes.Contains(state, []byte("token-of-this-test")) {
		t.Errorf("the state holds the token, or there is none: %v", err)
	}
	first, m := p.only(client)
	if left := time.Until(m.Expires); m.Renewed != "c0ffee1/1" || left < 7*time.Hour || left > 8*time.Hour {
		t.Errorf("the first push leases it as %v", m)
	}

	// Another push renews the same sandbox, even one whose lease was over.
	p.expire(client, first)
	p.vars["TF_VAR_commit"] = "c0ffee2"
	p.run("plan", token)
	if said := p.run("apply", token); !strings.Contains(said, "testing c0ffee2 on pr-7") {
		t.Errorf("the second apply said %s", said)
	}
	second, m := p.only(client)
	if second != first || m.Renewed != "c0ffee2/1" || time.Until(m.Expires) < 7*time.Hour {
		t.Errorf("after the second push %d is leased as %v, was %d", second, m, first)
	}

	// Nobody closes it. The janitor's first run looks, its second destroys.
	if said := p.run("reap"); strings.Contains(said, "pr-7: expired") {
		t.Errorf("the janitor takes what isn't over: %s", said)
	}
	p.expire(client, first)
	if said := p.run("reap"); !strings.Contains(said, "1 sandboxes are reaped") || !strings.Contains(said, "pr-7: expired since") {
		t.Errorf("the janitor said %s", said)
	}
	if left := p.guests(client); len(left) != 0 {
		t.Errorf("after the janitor there are %v", left)
	}

	// To the pull request's own state that is clean drift: the next push makes a new one, and its end is the usual one.
	p.vars["TF_VAR_commit"] = "c0ffee3"
	if said := p.run("plan", token); strings.Contains(said, "Error") || !strings.Contains(said, "sandbox_container.pr will be created") {
		t.Errorf("the plan after the janitor said %s", said)
	}
	p.run("apply", token)
	p.run("destroy")
	if left := p.guests(client); len(left) != 0 {
		t.Errorf("when it is closed there are %v", left)
	}
}

// The plan becomes one comment, which the next push replaces, on each of the three.
func TestThePlanIsOneCommentThatIsReplaced(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool)
		}
	}
	for _, edit := range []string{http.MethodPatch, http.MethodPut} {
		folder := filepath.Join(t.TempDir(), "checkout")
		if err := os.CopyFS(folder, os.DirFS(perPR)); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		bodies := map[string]string{"1": "a comment of somebody"}
		var calls []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if r.Header.Get("Authorization") != "Bearer s3cret" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			calls = append(calls, r.Method+" "+r.URL.Path)
			var in struct{ Body string }
			content, _ := io.ReadAll(r.Body)
			_ = json.Unmarshal(content, &in)
			switch r.Method {
			case http.MethodGet:
				list := []map[string]any{}
				for _, id := range slices.Sorted(maps.Keys(bodies)) {
					list = append(list, map[string]any{"id": json.Number(id), "body": bodies[id]})
				}
				_ = json.NewEncoder(w).Encode(list)
			case http.MethodPost:
				bodies["22"] = in.Body
			default:
				bodies[filepath.Base(r.URL.Path)] = in.Body
			}
		}))
		t.Cleanup(server.Close)
		p := &pipeline{t: t, folder: folder, vars: map[string]string{
			"PATH": os.Getenv("PATH"), "COMMENTS": server.URL + "/list", "EDIT": server.URL + "/edit", "EDIT_METHOD": edit, "COMMENT_HEADER": "Authorization: Bearer s3cret",
		}}
		for _, text := range []string{"first \"plan\" with `ticks` and $dollars", "second plan"} {
			write(t, filepath.Join(folder, "plan.txt"), text)
			p.run("comment")
			if got := bodies["22"]; !strings.Contains(got, text) || bodies["1"] != "a comment of somebody" {
				t.Errorf("the comments are %q", bodies)
			}
		}
		if want := []string{"GET /list", "POST /list", "GET /list", edit + " /edit/22"}; !slices.Equal(calls, want) {
			t.Errorf("calls %v, want %v", calls, want)
		}
		if left, _ := filepath.Glob(filepath.Join(folder, "comment.header")); len(left) != 0 {
			t.Error("the token is left in a file")
		}
	}
}

// node is a part of a workflow.
type node = map[string]any

func workflows(t *testing.T) map[string]node {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(perPR, "ci", "*.yml"))
	if err != nil || len(files) != 5 {
		t.Fatalf("workflows: %v, %v", files, err)
	}
	out := map[string]node{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var parsed node
		if err := yaml.Unmarshal(content, &parsed); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out[filepath.Base(file)] = parsed
	}
	return out
}

func at(t *testing.T, v any, path ...string) any {
	t.Helper()
	for _, step := range path {
		m, ok := v.(node)
		if !ok {
			t.Fatalf("%v: there is no %s in %T", path, step, v)
		}
		v = m[step]
	}
	return v
}

// commands are the shell parts of a workflow.
func commands(v any) []string {
	var out []string
	switch v := v.(type) {
	case node:
		for key, inner := range v {
			switch text, ok := inner.(string); {
			case ok && key == "run":
				out = append(out, text)
			case key == "script" || key == "before_script":
				for _, line := range inner.([]any) {
					out = append(out, line.(string))
				}
			default:
				out = append(out, commands(inner)...)
			}
		}
	case []any:
		for _, inner := range v {
			out = append(out, commands(inner)...)
		}
	}
	return out
}

// The rules that keep a pipeline with secrets and a state safe. A workflow that breaks one looks as if it worked.
func TestWorkflowsKeepTheRules(t *testing.T) {
	t.Parallel()
	own := "github.event.pull_request.head.repo.full_name == github.repository"
	for name, w := range workflows(t) {
		raw, err := os.ReadFile(filepath.Join(perPR, "ci", name))
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`(?m)^\s*#.*$`).ReplaceAllString(string(raw), "")
		if strings.Contains(text, "pull_request_target") {
			t.Errorf("%s: pull_request_target runs with secrets beside a fork's code", name)
		}
		for _, command := range commands(w) {
			if strings.Contains(command, "${{") {
				t.Errorf("%s: an expression in a shell command is an injection: %s", name, command)
			}
			step := strings.TrimPrefix(command, "./ci/sandbox.sh ")
			if !slices.Contains([]string{"plan", "comment", "apply", "destroy", "reap"}, step) {
				t.Errorf("%s: %q is no step of the script", name, command)
			}
		}
		if len(commands(w)) == 0 {
			t.Errorf("%s: there are no commands", name)
		}
		switch {
		case name == "gitlab.yml":
			gitlabRules(t, w)
		case strings.HasSuffix(name, "-reap.yml"):
			if at(t, w, "on", "schedule") == nil || at(t, w, "concurrency", "group") != "sandbox-reap" || at(t, w, "concurrency", "cancel-in-progress") != false {
				t.Errorf("%s: no schedule, or two at once", name)
			}
		default:
			group, _ := at(t, w, "concurrency", "group").(string)
			key, _ := at(t, w, "env", "STATE_KEY").(string)
			const number = "${{ github.event.pull_request.number }}"
			if group != "sandbox-pr-"+number || key != "pr-"+number || at(t, w, "concurrency", "cancel-in-progress") != false {
				t.Errorf("%s: group %q, state %q: one writer for each state, and none is cut", name, group, key)
			}
			if kinds := fmt.Sprint(at(t, w, "on", "pull_request", "types")); kinds != "[opened synchronize reopened closed]" {
				t.Errorf("%s: runs on %s", name, kinds)
			}
			for job, state := range map[string]string{"sandbox": "github.event.action != 'closed' && ", "destroy": "github.event.action == 'closed' && "} {
				if got := at(t, w, "jobs", job, "if"); got != state+own {
					t.Errorf("%s, %s: the condition is %v, and must keep forks out", name, job, got)
				}
			}
			if env := fmt.Sprint(at(t, w, "env")); strings.Contains(env, "secrets.") {
				t.Errorf("%s: secrets stand in the environment of every step", name)
			}
			stepRules(t, name, at(t, w, "jobs", "sandbox", "steps").([]any))
		}
	}
}

// stepRules: what plan got, apply gets too; nobody else gets a secret of the server's; the checkout leaves no token.
func stepRules(t *testing.T, name string, steps []any) {
	t.Helper()
	env := map[string]node{}
	order := []string{}
	for _, s := range steps {
		step := s.(node)
		if uses, _ := step["uses"].(string); strings.HasPrefix(uses, "actions/checkout@") {
			if at(t, step, "with", "persist-credentials") != false || at(t, step, "with", "ref") != nil {
				t.Errorf("%s: the checkout keeps a token, or takes another ref", name)
			}
		}
		if run, ok := step["run"].(string); ok {
			which := strings.TrimPrefix(run, "./ci/sandbox.sh ")
			order = append(order, which)
			env[which], _ = step["env"].(node)
		}
	}
	if !slices.Equal(order, []string{"plan", "comment", "apply"}) {
		t.Errorf("%s: the steps are %v", name, order)
	}
	if env["plan"]["TF_VAR_token"] == nil || !maps.Equal(env["plan"], env["apply"]) {
		t.Errorf("%s: apply is given %v, plan %v: a saved plan holds no ephemeral variable", name, env["apply"], env["plan"])
	}
	if strings.Contains(fmt.Sprint(env["comment"]), "secrets.") {
		t.Errorf("%s: the comment is given secrets", name)
	}
}

func gitlabRules(t *testing.T, w node) {
	t.Helper()
	fork := `$CI_PIPELINE_SOURCE == "merge_request_event" && $CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID`
	base := at(t, w, ".sandbox").(node)
	if base["resource_group"] != "sandbox-pr-$CI_MERGE_REQUEST_IID" || base["interruptible"] != false || at(t, base, "variables", "STATE_KEY") != "pr-$CI_MERGE_REQUEST_IID" {
		t.Errorf("gitlab.yml: %v: one writer for each state, and none is cut", base)
	}
	for _, job := range []string{"sandbox", "destroy"} {
		rules := at(t, w, job, "rules").([]any)
		if len(rules) != 1 || at(t, rules[0], "if") != fork || at(t, w, job, "extends") != ".sandbox" {
			t.Errorf("gitlab.yml, %s: the rules are %v, and must keep forks out", job, rules)
		}
	}
	for _, lock := range []string{"TF_HTTP_LOCK_ADDRESS", "TF_HTTP_LOCK_METHOD", "TF_HTTP_UNLOCK_ADDRESS", "TF_HTTP_UNLOCK_METHOD"} {
		if at(t, w, ".state", "variables", lock) == nil {
			t.Errorf("gitlab.yml: the state has no %s, so no lock", lock)
		}
	}
	if at(t, w, "sandbox", "environment", "on_stop") != "destroy" || at(t, w, "destroy", "environment", "action") != "stop" {
		t.Error("gitlab.yml: closing the merge request destroys nothing")
	}
	if at(t, w, "sandbox", "artifacts") != nil {
		t.Error("gitlab.yml: a saved plan holds what a state holds, and is no artifact")
	}
	if rules := fmt.Sprint(at(t, w, "reap", "rules")); !strings.Contains(rules, `$CI_PIPELINE_SOURCE == "schedule"`) {
		t.Errorf("gitlab.yml: the janitor runs by %s", rules)
	}
}

func TestShellOfTheExamplesIsSound(t *testing.T) {
	t.Parallel()
	shellcheck, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("shellcheck isn't installed")
	}
	scripts := []string{}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".sh") && !strings.HasPrefix(path, "resources") {
			scripts = append(scripts, path)
		}
		return err
	})
	if err != nil || len(scripts) < 3 {
		t.Fatalf("%v, %v", scripts, err)
	}
	if said, err := exec.Command(shellcheck, scripts...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	for name, w := range workflows(t) {
		cmd := exec.Command(shellcheck, "--shell=sh", "-")
		cmd.Stdin = strings.NewReader(strings.Join(commands(w), "\n"))
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
	}
}
