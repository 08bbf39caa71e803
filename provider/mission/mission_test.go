package mission_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

// containers makes n of them, each with a snapshot "start".
func containers(t *testing.T, server *protocoltest.Server, n int) []string {
	t.Helper()
	var ids []string
	for i := range n {
		r := server.NewResource(t, "sandbox_container")
		protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, values{"hostname": fmt.Sprintf("member-%d", i)})))
		snapshot := server.NewResource(t, "sandbox_snapshot")
		protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, snapshot, values{"container_id": r.Text(t, "id"), "name": "start"})))
		t.Cleanup(func() { protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), r)) })
		ids = append(ids, r.Text(t, "id"))
	}
	return ids
}

func apply(t *testing.T, server *protocoltest.Server, config values) *protocoltest.Resource {
	t.Helper()
	r := server.NewResource(t, "sandbox_mission")
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, config)))
	return r
}

func TestMissions(t *testing.T) {
	t.Parallel()
	server := protocoltest.For(t, acctest.New(t), nil)
	ids := containers(t, server, 3)
	sh := func(id, code string) string {
		r := server.NewResource(t, "sandbox_exec")
		protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, values{"container_id": id, "script": code})))
		return r.Text(t, "stdout")
	}

	t.Run("a pipeline hands answers on in the order of roles", func(t *testing.T) {
		r := apply(t, server, values{"name": "line", "strategy": "pipeline", "task": "count", "secrets_wo": values{"KEY": "hunter2!"}, "members": values{
			"zoe": values{"container_id": ids[0], "role": "architect", "command": `echo "plan: one, $KEY"`},
			"abe": values{"container_id": ids[1], "role": "developer", "command": "grep -c 'plan: one, .redacted.'; echo built"},
			"max": values{"container_id": ids[1], "role": "reviewer", "command": "grep -c 'Before you, abe (developer)'"},
		}})
		if r.Get(t, "status") != "succeeded" || r.Get(t, "answer") != "1\n" || r.Get(t, "results.abe.answer") != "1\nbuilt\n" || r.Get(t, "results.zoe.answer") != "plan: one, [redacted]\n" || r.Get(t, "winner") != nil {
			t.Errorf("%v: %v", r.Get(t, "status"), r.Get(t, "results"))
		}
		protocoltest.NoErrors(t, server.Refresh(t, r))
		if got := sh(ids[1], "ls /var/lib/sandbox/runs/*/collected | wc -l; grep -rl hunter2 /var /run /home | wc -l"); got != "2\n0\n" {
			t.Errorf("collected and secrets: %q", got)
		}
		protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
	})

	t.Run("an arena begins each round with the same files and ranks", func(t *testing.T) {
		member := func(i int, command string) values {
			return values{"container_id": ids[i], "command": "[ ! -e result ] && echo here >> /home/agent/here; " + command}
		}
		config := values{"name": "ring", "strategy": "arena", "task": "be good", "rounds": 2, "snapshot_name": "start", "score_command": "cat result", "members": values{
			"good": member(0, "echo 9 > result"), "bad": member(1, "echo 2 > result"),
		}}
		r := apply(t, server, config)
		if r.Get(t, "winner") != "good" || fmt.Sprint(r.Get(t, "ranking")) != "[good bad]" || r.Get(t, "results.good.win_rate") != 1.0 || r.Get(t, "results.bad.score") != 2.0 ||
			r.Get(t, "results.bad.rank") != 2.0 || r.Get(t, "results.good.turns") != 2.0 {
			t.Errorf("%v, %v: %v", r.Get(t, "winner"), r.Get(t, "ranking"), r.Get(t, "results"))
		}
		if got := sh(ids[0], "cat /home/agent/here"); got != "here\n" {
			t.Errorf("the second round began with the first one's files: %q", got)
		}
		if got := server.Plan(t, r, config).Action(); got != "no-op" {
			t.Errorf("planned %s", got)
		}
		protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
	})

	t.Run("a debate is closed by its judge, and failing is an error where it is to be", func(t *testing.T) {
		config := values{"name": "talk", "strategy": "debate", "task": "why?", "rounds": 2, "judge": "judge", "on_failure": "error", "members": values{
			"a":     values{"container_id": ids[0], "command": `grep -c "The answer of b" || echo because`},
			"b":     values{"container_id": ids[1], "command": "echo no; exit 0"},
			"judge": values{"container_id": ids[2], "command": "grep -c 'The answer of'; exit 3"},
		}}
		r := server.NewResource(t, "sandbox_mission")
		text := protocoltest.Text(server.Apply(t, t.Context(), server.Plan(t, r, config)))
		for _, want := range []string{"ERROR", `mission "talk" (debate)`, "judge: failed, exit code 3", "SBX606"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in: %s", want, text)
			}
		}
		if !r.Tainted || r.Get(t, "answer") != "2\n" || r.Get(t, "results.a.answer") != "1\n" || r.Get(t, "results.a.turns") != 2.0 {
			t.Errorf("tainted %t, %v", r.Tainted, r.Get(t, "results"))
		}
	})

	t.Run("a mission that was cut goes on", func(t *testing.T) {
		config := values{"name": "cut", "strategy": "pipeline", "task": "x", "members": values{
			"a": values{"container_id": ids[0], "role": "architect", "command": "echo a >> /tmp/turns; echo first"},
			"b": values{"container_id": ids[0], "role": "developer", "command": "echo b >> /tmp/turns; while [ ! -e /tmp/go ]; do sleep 0.02; done; echo second"},
		}}
		ctx, stop := context.WithCancel(t.Context())
		plan := server.Plan(t, server.NewResource(t, "sandbox_mission"), config)
		done := make(chan string, 1)
		go func() { done <- protocoltest.Text(server.Apply(t, ctx, plan)) }()
		sh(ids[0], "until grep -q b /tmp/turns 2>/dev/null; do sleep 0.02; done")
		stop()
		if text := <-done; !strings.Contains(text, "Unable to carry out mission") || plan.Resource.Exists() {
			t.Errorf("it said: %s", text)
		}
		sh(ids[0], "touch /tmp/go")
		r := apply(t, server, config)
		if got := sh(ids[0], "cat /tmp/turns"); got != "a\nb\n" || r.Get(t, "answer") != "second\n" {
			t.Errorf("turns %q, answer %v", got, r.Get(t, "answer"))
		}
	})
}

func TestValidation(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	one := values{"a": values{"container_id": "100000", "command": "true"}}
	for name, config := range map[string]values{
		"no member":                {"strategy": "parallel", "task": "x", "members": values{}},
		"an unknown strategy":      {"strategy": "chaos", "task": "x", "members": one},
		"no task":                  {"strategy": "parallel", "task": "", "members": one},
		"a member without work":    {"strategy": "parallel", "task": "x", "members": values{"a": values{"container_id": "100000"}}},
		"a member with two works":  {"strategy": "parallel", "task": "x", "members": values{"a": values{"container_id": "100000", "agent": "codex", "command": "true"}}},
		"a member that is a path":  {"strategy": "parallel", "task": "x", "members": values{"../a": values{"container_id": "100000", "command": "true"}}},
		"a wrong container":        {"strategy": "parallel", "task": "x", "members": values{"a": values{"container_id": "web", "command": "true"}}},
		"too many rounds":          {"strategy": "debate", "task": "x", "members": one, "rounds": 21},
		"an unknown stop rule":     {"strategy": "parallel", "task": "x", "members": one, "stop_on": "later"},
		"a wrong snapshot's name":  {"strategy": "arena", "task": "x", "members": one, "score_command": "x", "snapshot_name": "1"},
		"a secret without a name":  {"strategy": "parallel", "task": "x", "members": one, "secrets_wo": values{"": "x"}},
		"a member's odd variable":  {"strategy": "parallel", "task": "x", "members": values{"a": values{"container_id": "100000", "command": "true", "environment": values{"a-b": "c"}}}},
		"a version without secret": {"strategy": "parallel", "task": "x", "members": one, "secrets_wo_version": 2},
	} {
		if diags := server.Validate(t, "sandbox_mission", config); !protocoltest.HasErrors(diags) {
			t.Errorf("%s was accepted", name)
		}
	}
	known := protocoltest.For(t, acctest.New(t), nil)
	for name, c := range map[string]struct {
		config values
		want   []string
	}{
		"an arena without a score": {values{"strategy": "arena"}, []string{"score_command"}},
		"an order that misses one": {values{"strategy": "pipeline", "order": []string{"b"}}, []string{"order", "a"}},
		"a judge who isn't there":  {values{"strategy": "debate", "judge": "z"}, []string{"judge", "z"}},
		"an agent without its key": {values{"strategy": "parallel", "members": values{"a": values{"container_id": "100000", "agent": "codex"}}}, []string{"secrets_wo", "OPENAI_API_KEY"}},
		"an unknown agent":         {values{"strategy": "parallel", "members": values{"a": values{"container_id": "100000", "agent": "codexx"}}}, []string{`ElementKeyString("a")`, "codex"}},
		"an agent as root":         {values{"strategy": "parallel", "secrets_wo": values{"ANTHROPIC_API_KEY": "x"}, "members": values{"a": values{"container_id": "100000", "agent": "claude-code", "user": "root"}}}, []string{"user", "root"}},
	} {
		c.config["task"] = "x"
		if c.config["members"] == nil {
			c.config["members"] = one
		}
		text := protocoltest.Text(known.Plan(t, known.NewResource(t, "sandbox_mission"), c.config).Diags)
		for _, want := range append(c.want, "ERROR") {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in: %s", name, want, text)
			}
		}
	}
}
