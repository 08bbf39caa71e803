package agentrun_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

// place is a container to run in, and the provider server of one apply.
type place struct {
	*protocoltest.Server
	t         *testing.T
	env       *acctest.Environment
	container *protocoltest.Resource
	id        string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := server.NewResource(t, "sandbox_container")
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, values{"hostname": "work-1"})))
	p := &place{Server: server, t: t, env: env, container: r, id: r.Text(t, "id")}
	t.Cleanup(func() {
		if r.Exists() {
			protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), r))
		}
	})
	return p
}

// run applies a run of the container.
func (p *place) run(config values) *protocoltest.Resource {
	p.t.Helper()
	r := p.NewResource(p.t, "sandbox_agent_run")
	p.apply(r, config)
	return r
}

func (p *place) apply(r *protocoltest.Resource, config values) string {
	p.t.Helper()
	config["container_id"] = p.id
	diags := p.Apply(p.t, p.t.Context(), p.Plan(p.t, r, config))
	protocoltest.NoErrors(p.t, diags)
	return protocoltest.Text(diags)
}

// sh runs code in the container as root and gives its output.
func (p *place) sh(code string) string {
	p.t.Helper()
	r := p.NewResource(p.t, "sandbox_exec")
	protocoltest.NoErrors(p.t, p.Apply(p.t, p.t.Context(), p.Plan(p.t, r, values{"container_id": p.id, "script": code, "on_failure": "record", "triggers": values{"n": code}})))
	return r.Text(p.t, "stdout") + r.Text(p.t, "stderr")
}

func report(t *testing.T, r *protocoltest.Resource) agentrun.Report {
	t.Helper()
	var out agentrun.Report
	if err := json.Unmarshal([]byte(r.Text(t, "report")), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestARunIsRecorded(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := p.run(values{"command": "echo \"$(id -un) $WHERE $TOKEN\"; cat; exit 3", "prompt": "say it's done\n", "environment": values{"WHERE": "here"},
		"secrets_wo": values{"TOKEN": "canary-4711"}, "secrets_wo_version": 1})
	if r.Get(t, "status") != "failed" || r.Get(t, "exit_code") != 3.0 || r.Get(t, "attempts") != 1.0 || r.Get(t, "output_tail") != "agent here [redacted]\nsay it's done\n" {
		t.Errorf("status %v, exit code %v, attempts %v, output %q", r.Get(t, "status"), r.Get(t, "exit_code"), r.Get(t, "attempts"), r.Get(t, "output_tail"))
	}
	if rep := report(t, r); rep.SchemaVersion != 1 || rep.ID == "" || rep.Attempt != 1 || rep.StartedAt == nil || rep.FinishedAt == nil || rep.Timings.RoundTrips-rep.Timings.Polls > 6 {
		t.Errorf("report %+v", rep)
	}
	if text := r.State.String(); strings.Contains(text, "canary") {
		t.Error("the secret is in the state")
	}
}

func TestWhatCantBeRightIsSaidBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	for name, config := range map[string]values{
		"neither agent nor command":   {},
		"both":                        {"agent": "codex", "command": "true"},
		"a container without an id":   {"container_id": "web", "command": "true"},
		"a relative folder":           {"command": "true", "working_dir": "src"},
		"a variable without a name":   {"command": "true", "environment": values{"a b": "c"}},
		"a secret without a name":     {"command": "true", "secrets_wo": values{"1": "c"}},
		"a version without secrets":   {"command": "true", "secrets_wo_version": 1},
		"no time":                     {"command": "true", "timeout": "0s"},
		"repairs without tests":       {"command": "true", "max_repairs": 1},
		"too many repairs":            {"command": "true", "test_command": "true", "max_repairs": 21},
		"a model without an agent":    {"command": "true", "model": "x"},
		"an unknown reaction":         {"command": "true", "on_failure": "ignore"},
		"a name that is a path":       {"command": "true", "name": "../x"},
		"a user that is an option":    {"command": "true", "user": "-x"},
		"a log file without a name":   {"command": "true", "log_file": ""},
		"an agent without a name":     {"agent": "", "prompt": "x"},
		"a command that says nothing": {"command": ""},
	} {
		if config["container_id"] == nil {
			config["container_id"] = "100000"
		}
		if diags := server.Validate(t, "sandbox_agent_run", config); !protocoltest.HasErrors(diags) {
			t.Errorf("%s was accepted", name)
		}
	}
	p := newPlace(t)
	for name, c := range map[string]struct {
		config values
		want   []string
	}{
		"an unknown agent":    {values{"agent": "claude", "prompt": "x"}, []string{"agent", "claude-code"}},
		"root":                {values{"agent": "claude-code", "prompt": "x", "user": "root", "secrets_wo": values{"ANTHROPIC_API_KEY": "k-1234"}}, []string{"user", "root", "refuses"}},
		"no key":              {values{"agent": "claude-code", "prompt": "x"}, []string{"secrets_wo", "ANTHROPIC_API_KEY", "nothing was started"}},
		"another agent's key": {values{"agent": "claude-code", "prompt": "x", "secrets_wo": values{"OPENAI_API_KEY": "k-1234"}}, []string{"ANTHROPIC_API_KEY"}},
		"no task":             {values{"agent": "codex", "secrets_wo": values{"OPENAI_API_KEY": "k-1234"}}, []string{"prompt"}},
		"too long a task":     {values{"command": "cat", "prompt": strings.Repeat("x", 64<<10+1)}, []string{"prompt", "65537", "65536"}},
		"a variable twice":    {values{"command": "true", "environment": values{"A": "1"}, "secrets_wo": values{"A": "2"}}, []string{"environment", "A"}},
	} {
		c.config["container_id"] = p.id
		diags := p.Plan(t, p.NewResource(t, "sandbox_agent_run"), c.config).Diags
		text := protocoltest.Text(diags)
		for _, want := range append(c.want, "ERROR", "SBX100") {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in: %s", name, want, text)
			}
		}
		if strings.Contains(text, "k-1234") {
			t.Errorf("%s: a secret is shown", name)
		}
	}
	for name, config := range map[string]values{
		"a key that isn't known yet":      {"secrets_wo": values{"ANTHROPIC_API_KEY": protocoltest.Unknown}},
		"secrets that aren't known yet":   {"secrets_wo": protocoltest.Unknown},
		"a variable that isn't known yet": {"environment": values{"ANTHROPIC_API_KEY": protocoltest.Unknown}},
	} {
		config["container_id"], config["agent"], config["prompt"] = p.id, "claude-code", "x"
		if diags := p.Plan(t, p.NewResource(t, "sandbox_agent_run"), config).Diags; protocoltest.HasErrors(diags) {
			t.Errorf("%s: %s", name, protocoltest.Text(diags))
		}
	}
	if got := p.sh("ls /var/lib/sandbox /usr/local/bin/sbx-run 2>/dev/null"); got != "" {
		t.Errorf("something was started: %s", got)
	}
}

func TestAnAgentThatIsntInstalledIsNamedWithWhatIs(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	config := values{"container_id": p.id, "agent": "codex", "prompt": "x", "secrets_wo": values{"OPENAI_API_KEY": "k-1234"}}
	try := func() string {
		return protocoltest.Text(p.Apply(t, t.Context(), p.Plan(t, p.NewResource(t, "sandbox_agent_run"), config)))
	}
	if text := try(); !strings.Contains(text, "codex") || !strings.Contains(text, "no manifest") || !strings.Contains(text, "SBX604") {
		t.Error(text)
	}
	p.sh(`mkdir -p /etc/sandbox; echo '{"agents":[{"name":"aider","version":"0.86.2"}]}' > /etc/sandbox/template.json`)
	if text := try(); !strings.Contains(text, "aider 0.86.2") || !strings.Contains(text, "SBX604") {
		t.Error(text)
	}
	// One that only plays the agent: version, prompt by its own way, key in the environment.
	p.sh(`printf '#!/bin/sh\n[ "$1" = --version ] && echo codex-cli 9.8.7 && exit\necho "args: $*"; echo "key: ${OPENAI_API_KEY#k-}"; echo "task: $(cat)"\n' > /usr/local/bin/codex; chmod 755 /usr/local/bin/codex`)
	config["prompt"] = "fix 'it'\nplease"
	r := p.run(config)
	out := r.Text(t, "output_tail")
	if r.Get(t, "status") != "succeeded" || !strings.Contains(out, "key: 1234\ntask: fix 'it'\nplease\n") || !strings.Contains(out, "args: exec") {
		t.Errorf("%v: %s", r.Get(t, "status"), out)
	}
	if rep := report(t, r); rep.Agent == nil || rep.Agent.Name != "codex" || rep.Agent.Version != "9.8.7" {
		t.Errorf("%+v", rep.Agent)
	}
}

func TestOnlyInputsStartANewRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	base := func() values {
		return values{"container_id": p.id, "command": "echo run >> /tmp/runs", "secrets_wo": values{"K": "hunter2"}, "secrets_wo_version": 1}
	}
	r := p.run(base())
	for range 2 {
		protocoltest.NoErrors(t, p.Refresh(t, r))
		if plan := p.Plan(t, r, base()); plan.Action() != "no-op" {
			t.Fatalf("planned %s", plan.Action())
		}
	}
	for name, change := range map[string]values{
		"timeout": {"timeout": "1m"}, "on_failure": {"on_failure": "error"}, "detached": {"detached": true}, "log_file": {"log_file": "/tmp/x"}, "host_key": {"host_key": "ssh-ed25519 AAAA"},
		"secrets alone": {"secrets_wo": values{"K": "other"}},
	} {
		config := base()
		for k, v := range change {
			config[k] = v
		}
		if got := p.Plan(t, r, config).Action(); got != "update" && (name != "secrets alone" || got != "no-op") {
			t.Errorf("%s planned %s", name, got)
		}
	}
	for name, change := range map[string]values{
		"name": {"name": "x"}, "command": {"command": "true"}, "user": {"user": "root"}, "prompt": {"prompt": "x"}, "working_dir": {"working_dir": "/"}, "environment": {"environment": values{"A": "b"}},
		"version": {"secrets_wo_version": 2}, "test": {"test_command": "true"}, "triggers": {"triggers": values{"a": "b"}}, "container": {"container_id": "100001"},
	} {
		config := base()
		for k, v := range change {
			config[k] = v
		}
		if got := p.Plan(t, r, config).Action(); got != "replace" {
			t.Errorf("%s planned %s", name, got)
		}
	}
	config := base()
	config["triggers"] = values{"n": "2"}
	p.apply(r, config)
	if got := p.sh("cat /tmp/runs; ls /var/lib/sandbox/runs/*/collected | wc -l"); got != "run\nrun\n1\n" {
		t.Errorf("it ran: %q", got)
	}
	protocoltest.NoErrors(t, p.Destroy(t, t.Context(), r))
	if got := p.sh("ls -d /var/lib/sandbox/runs/*/collected | wc -l"); got != "2\n" {
		t.Errorf("collected: %q", got)
	}
}

// The same inputs after the result was in a state are another attempt; before that they are the same run.
func TestAResultIsTakenOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	config := values{"command": "echo run >> /tmp/runs; sleep 0.2"}
	lost := p.run(config) // as if the apply had been killed before the state was written
	again := p.NewResource(t, "sandbox_agent_run")
	if text := p.apply(again, config); !strings.Contains(text, "found again") || again.Text(t, "id") != lost.Text(t, "id") {
		t.Errorf("%s is not %s: %s", again.Text(t, "id"), lost.Text(t, "id"), text)
	}
	protocoltest.NoErrors(t, p.Refresh(t, again))
	third := p.NewResource(t, "sandbox_agent_run")
	if text := p.apply(third, config); strings.Contains(text, "found again") || third.Text(t, "id") == lost.Text(t, "id") || report(t, third).Attempt != 2 {
		t.Errorf("%s: %s", third.Text(t, "id"), text)
	}
	if got := p.sh("cat /tmp/runs"); got != "run\nrun\n" {
		t.Errorf("it ran: %q", got)
	}
}

func TestAFailureIsRecordedOrAnError(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	config := values{"container_id": p.id, "command": "echo broken; exit 137", "on_failure": "error"}
	r := p.NewResource(t, "sandbox_agent_run")
	text := protocoltest.Text(p.Apply(t, t.Context(), p.Plan(t, r, config)))
	for _, want := range []string{"ERROR", `status is "failed"`, "exit code 137", "broken", "tainted", "SBX606"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in: %s", want, text)
		}
	}
	if !r.Tainted || r.Get(t, "exit_code") != 137.0 {
		t.Errorf("tainted %t, exit code %v", r.Tainted, r.Get(t, "exit_code"))
	}
	first := r.Text(t, "id")
	protocoltest.NoErrors(t, p.Refresh(t, r))
	config["on_failure"] = "record"
	p.apply(r, config)
	if r.Tainted || r.Get(t, "status") != "failed" || r.Text(t, "id") == first || report(t, r).Attempt != 2 {
		t.Errorf("tainted %t, %v, %+v", r.Tainted, r.Get(t, "status"), report(t, r))
	}
	config["timeout"], config["command"] = "1s", "echo begun; sleep 60"
	p.apply(r, config)
	if r.Get(t, "status") != "timed_out" || r.Get(t, "output_tail") != "begun\n" {
		t.Errorf("%v, %q", r.Get(t, "status"), r.Get(t, "output_tail"))
	}
}

func TestADetachedRunIsCompletedByARefresh(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	config := values{"command": "echo \"$T\"; while [ ! -e /tmp/go ]; do sleep 0.02; done; exit 4", "detached": true, "secrets_wo": values{"T": "canary-4711"}}
	r := p.run(config)
	if r.Get(t, "status") != "running" || r.Get(t, "exit_code") != nil || r.Get(t, "finished_at") != nil {
		t.Errorf("%v, %v", r.Get(t, "status"), r.Get(t, "exit_code"))
	}
	protocoltest.NoErrors(t, p.Refresh(t, r))
	if r.Get(t, "status") != "running" || p.Plan(t, r, config).Action() != "no-op" {
		t.Errorf("after a refresh: %v, planned %s", r.Get(t, "status"), p.Plan(t, r, config).Action())
	}
	p.sh("touch /tmp/go; until [ -e /var/lib/sandbox/runs/*/end ]; do sleep 0.02; done")
	protocoltest.NoErrors(t, p.Refresh(t, r))
	if r.Get(t, "status") != "failed" || r.Get(t, "exit_code") != 4.0 || r.Get(t, "output_tail") != "[redacted]\n" || report(t, r).FinishedAt == nil {
		t.Errorf("%v, %v, %q", r.Get(t, "status"), r.Get(t, "exit_code"), r.Get(t, "output_tail"))
	}
	if got := p.sh("ls /var/lib/sandbox/runs/*/collected 2>/dev/null | wc -l"); got != "0\n" {
		t.Error("the result counts as taken before it is in a state")
	}
	protocoltest.NoErrors(t, p.Refresh(t, r))
	if got := p.sh("ls /var/lib/sandbox/runs/*/collected | wc -l"); got != "1\n" {
		t.Error("the result isn't noted as taken")
	}
}

func TestAStoppedApplyLeavesTheRunGoingAndADestroyEndsIt(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	config := values{"container_id": p.id, "command": "touch /tmp/begun; trap '' TERM; sleep 1000"}
	r := p.NewResource(t, "sandbox_agent_run")
	ctx, stop := context.WithCancel(t.Context())
	plan := p.Plan(t, r, config)
	done := make(chan []*tfprotov6.Diagnostic, 1)
	go func() { done <- p.Apply(t, ctx, plan) }()
	p.sh("while [ ! -e /tmp/begun ]; do sleep 0.02; done")
	stop()
	diags := <-done
	protocoltest.NoErrors(t, diags)
	if text := protocoltest.Text(diags); !strings.Contains(text, "The run goes on") || r.Tainted || r.Get(t, "status") != "running" {
		t.Errorf("tainted %t, %v: %s", r.Tainted, r.Get(t, "status"), text)
	}
	protocoltest.NoErrors(t, p.Destroy(t, t.Context(), r))
	if got := p.sh("grep -l SBX_RUN= /proc/[0-9]*/environ 2>/dev/null; ls /run/sandbox/runs/*/secrets /var/lib/sandbox/runs/*/collected 2>/dev/null | wc -l"); got != "1\n" {
		t.Errorf("left: %s", got)
	}
}

func TestALostRunIsSaidOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	config := values{"command": "sleep 1000", "detached": true}
	r := p.run(config)
	protocoltest.NoErrors(t, p.Destroy(t, t.Context(), p.container))
	diags := p.Refresh(t, r)
	protocoltest.NoErrors(t, diags)
	if text := protocoltest.Text(diags); !strings.Contains(text, "A run was lost") || r.Get(t, "status") != "lost" || r.Get(t, "exit_code") != nil {
		t.Errorf("%v: %s", r.Get(t, "status"), text)
	}
	if diags := p.Refresh(t, r); len(diags) > 0 || r.Get(t, "status") != "lost" {
		t.Errorf("said again: %s", protocoltest.Text(diags))
	}
	if got := p.Plan(t, r, config).Action(); got != "no-op" {
		t.Errorf("planned %s", got)
	}
	protocoltest.NoErrors(t, p.Destroy(t, t.Context(), r))
}
