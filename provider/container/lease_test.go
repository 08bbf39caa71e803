package container_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

// laterClock is the real time plus an offset: what a run sees that comes later.
type laterClock struct{ offset time.Duration }

func (c laterClock) Now() time.Time { return time.Now().Add(c.offset) }

func (laterClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// after is a server of a run that comes later.
func after(t *testing.T, env *acctest.Environment, d time.Duration) *protocoltest.Server {
	t.Helper()
	return protocoltest.ForWith(t, env, nil, provider.Options{Domain: sandbox.Options{Clock: laterClock{d}}})
}

// box is a container with a lease that nobody logs in to.
func box(lease values) values {
	return values{"hostname": "box", "memory": 64, "started": false, "lease": lease}
}

func end(t *testing.T, r *protocoltest.Resource) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, r.Text(t, "expires_at"))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestALeaseLivesFromItsCreationToItsRemoval(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	made := time.Now()
	r := create(t, server, box(values{"ttl": "8h", "renew": "c0ffee"}))
	first := end(t, r)
	if d := first.Sub(made); d < 8*time.Hour-time.Second || d > 8*time.Hour+5*time.Minute {
		t.Errorf("it ends %v after it was made", d)
	}
	if r.Get(t, "expired") != false || r.Get(t, "lease.on_expiry") != "warn" || r.Get(t, "lease.keepalive") != false {
		t.Errorf("the state is %v", r.Get(t, ""))
	}
	// The same in other words is no change.
	settled(t, server, r, box(values{"ttl": "480m", "renew": "c0ffee"}))

	hour := after(t, env, time.Hour)
	for _, c := range []struct {
		name   string
		lease  values
		moves  bool
		action string
	}{
		{"what a plan does at its end", values{"ttl": "8h", "renew": "c0ffee", "on_expiry": "stop"}, false, "update"},
		{"whether it is kept", values{"ttl": "8h", "renew": "c0ffee", "on_expiry": "stop", "keepalive": true}, false, "update"},
		{"idleness", values{"ttl": "8h", "renew": "c0ffee", "idle_stop": "30m"}, false, "update"},
		{"a new commit", values{"ttl": "8h", "renew": "a text with spaces, of any length", "idle_stop": "30m"}, true, "update"},
	} {
		was := end(t, r)
		apply(t, hour, r, box(c.lease), c.action)
		if moved := !end(t, r).Equal(was); moved != c.moves {
			t.Errorf("%s: the end moved is %v", c.name, moved)
		}
	}
	two := after(t, env, 2*time.Hour)
	was := end(t, r)
	apply(t, two, r, box(values{"ttl": "24h", "renew": "a text with spaces, of any length"}), "update")
	if d := end(t, r).Sub(was); d < 16*time.Hour {
		t.Errorf("another ttl moved the end by %v", d)
	}
	apply(t, two, r, values{"hostname": "box", "memory": 64, "started": false}, "update")
	if r.Get(t, "lease") != nil || r.Get(t, "expires_at") != nil || r.Get(t, "expired") != false {
		t.Errorf("without a lease the state is %v, %v, %v", r.Get(t, "lease"), r.Get(t, "expires_at"), r.Get(t, "expired"))
	}
}

// A refresh looks at the clock, and a plan at what the refresh has seen.
func TestAPlanNeverLooksAtTheClock(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	config := box(values{"ttl": "1h", "on_expiry": "replace"})
	r := create(t, protocoltest.For(t, env, nil), config)
	server := after(t, env, 2*time.Hour)
	if plan := server.Plan(t, r, config); plan.Action() != "no-op" || len(plan.Diags) != 0 {
		t.Errorf("without a refresh the plan is %s: %s", plan.Action(), protocoltest.Text(plan.Diags))
	}
	protocoltest.NoErrors(t, server.Refresh(t, r))
	if !r.Exists() || r.Get(t, "expired") != true {
		t.Fatalf("the refresh left %v: a container whose lease is over is never forgotten", r.Get(t, ""))
	}
	if plan := server.Plan(t, r, config); plan.Action() != "replace" {
		t.Errorf("after a refresh the plan is %s", plan.Action())
	}
}

func TestWhatAPlanDoesWhenALeaseIsOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lease  values
		more   values
		action string
		says   string
	}{
		"warn":              {values{"ttl": "1h"}, nil, "no-op", "isn't started again before it is renewed"},
		"warn, renewed":     {values{"ttl": "1h"}, values{"lease": values{"ttl": "1h", "renew": "again"}}, "update", ""},
		"replace":           {values{"ttl": "1h", "on_expiry": "replace"}, nil, "replace", "This plan replaces it"},
		"replace, renewed":  {values{"ttl": "1h", "on_expiry": "replace"}, values{"lease": values{"ttl": "1h", "renew": "again", "on_expiry": "replace"}}, "update", ""},
		"replace, longer":   {values{"ttl": "1h", "on_expiry": "replace"}, values{"lease": values{"ttl": "2h", "on_expiry": "replace"}}, "update", ""},
		"replace, unknown":  {values{"ttl": "1h", "on_expiry": "replace"}, values{"lease": values{"ttl": "1h", "renew": protocoltest.Unknown, "on_expiry": "replace"}}, "update", ""},
		"replace, no lease": {values{"ttl": "1h", "on_expiry": "replace"}, values{"lease": nil}, "update", ""},
		"stop, stopped":     {values{"ttl": "1h", "on_expiry": "stop"}, nil, "no-op", "isn't started again"},
		"keepalive":         {values{"ttl": "1h", "keepalive": true}, nil, "no-op", "The lease of container"},
		"a change of mind":  {values{"ttl": "1h"}, values{"lease": values{"ttl": "1h", "on_expiry": "replace"}}, "replace", "This plan replaces it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := acctest.New(t)
			config := box(c.lease)
			r := create(t, protocoltest.For(t, env, nil), config)
			server := after(t, env, 2*time.Hour)
			protocoltest.NoErrors(t, server.Refresh(t, r))
			config = with(config, c.more)
			plan := server.Plan(t, r, config)
			protocoltest.NoErrors(t, plan.Diags)
			if plan.Action() != c.action {
				t.Errorf("the plan is %s because of %v, want %s", plan.Action(), plan.Replace, c.action)
			}
			if text := protocoltest.Text(plan.Diags); !strings.Contains(text, c.says) || c.says == "" && strings.Contains(text, "lease") {
				t.Errorf("it says %q, want %q", text, c.says)
			}
			if c.action == "replace" {
				was := r.Text(t, "claim")
				protocoltest.NoErrors(t, server.Apply(t, t.Context(), plan))
				settled(t, server, r, config)
				if r.Text(t, "claim") == was || r.Get(t, "expired") != false {
					t.Errorf("after the replacement the state is %v", r.Get(t, ""))
				}
			}
		})
	}
}

// Protection says no to a replacement before anything is stopped; the plan says so.
func TestAProtectedContainerIsNotReplacedWhenItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	config := with(box(values{"ttl": "1h", "on_expiry": "replace"}), values{"protection": true})
	server := protocoltest.For(t, env, nil)
	r := create(t, server, config)
	server = after(t, env, 2*time.Hour)
	protocoltest.NoErrors(t, server.Refresh(t, r))
	plan := server.Plan(t, r, config)
	if plan.Action() != "no-op" {
		t.Errorf("the plan is %s", plan.Action())
	}
	wants(t, plan.Diags, "is over", "set protection = false")
	apply(t, protocoltest.For(t, env, nil), r, with(config, values{"protection": false}), "update")
}

// With on_expiry = "stop" it is stopped once, stays so without a plan that wants to start it, and starts when it is
// renewed.
func TestAContainerIsStoppedAtItsEndAndStartedByItsRenewal(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	config := values{"hostname": "box", "memory": 64, "started": true, "lease": values{"ttl": "1h", "on_expiry": "stop"}}
	r := create(t, protocoltest.For(t, env, nil), config)
	server := after(t, env, 2*time.Hour)
	protocoltest.NoErrors(t, server.Refresh(t, r))
	diags := apply(t, server, r, config, "update") // and its next plan is empty
	wants(t, diags, "is over", "This plan stops it")
	if r.Get(t, "status") != "stopped" || r.Get(t, "started") != true || r.Get(t, "expired") != true {
		t.Fatalf("status %v, started %v, expired %v", r.Get(t, "status"), r.Get(t, "started"), r.Get(t, "expired"))
	}
	// Another change leaves it stopped.
	config = with(config, values{"description": "over"})
	apply(t, server, r, config, "update")
	if r.Get(t, "status") != "stopped" {
		t.Fatalf("after another change it is %v", r.Get(t, "status"))
	}
	config = with(config, values{"lease": values{"ttl": "1h", "renew": "again", "on_expiry": "stop"}})
	apply(t, server, r, config, "update")
	if r.Get(t, "status") != "running" || r.Get(t, "expired") != false {
		t.Errorf("after the renewal: %v, expired %v", r.Get(t, "status"), r.Get(t, "expired"))
	}
}

// The guest's own timer stops it, whatever on_expiry says: nobody starts it again before it is renewed.
func TestAContainerThatItsTimerStoppedIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	config := values{"hostname": "box", "memory": 64, "lease": values{"ttl": "1h"}}
	r := create(t, protocoltest.For(t, env, nil), config)
	c := client(t, env)
	upid, err := c.StopLXC(t.Context(), r.Text(t, "node_name"), r.VMID(t))
	wait(t, c, upid, err)

	// Within its lease that is drift, and mended.
	server := protocoltest.For(t, env, nil)
	protocoltest.NoErrors(t, server.Refresh(t, r))
	if plan := server.Plan(t, r, config); plan.Action() != "update" || plan.Get(t, "started") != true {
		t.Errorf("within its lease the plan is %s", plan.Action())
	}
	server = after(t, env, 2*time.Hour)
	protocoltest.NoErrors(t, server.Refresh(t, r))
	plan := server.Plan(t, r, config)
	if plan.Action() != "no-op" || r.Get(t, "status") != "stopped" {
		t.Fatalf("it is %v, and the plan is %s", r.Get(t, "status"), plan.Action())
	}
	wants(t, plan.Diags, "is over", "isn't started again before it is renewed")
}

func TestARefreshWarnsWhenLittleOfALeaseIsLeft(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	r := create(t, protocoltest.For(t, env, nil), box(values{"ttl": "10h"}))
	for at, warns := range map[time.Duration]bool{0: false, 8*time.Hour + 50*time.Minute: false, 9*time.Hour + 10*time.Minute: true, 11 * time.Hour: false} {
		diags := after(t, env, at).Refresh(t, r)
		if got := strings.Contains(protocoltest.Text(diags), "ends soon"); got != warns {
			t.Errorf("after %v of 10h: %q", at, protocoltest.Text(diags))
		}
	}
}

func TestAnImportBringsTheLeaseAlong(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	config := box(values{"ttl": "90m", "renew": "c0ffee", "keepalive": true, "idle_stop": "20m"})
	r := create(t, server, config)
	imported, diags := server.Import(t, resourceType, r.Text(t, "id"))
	protocoltest.NoErrors(t, diags)
	for path, want := range map[string]any{"lease.ttl": "1h30m", "lease.renew": "c0ffee", "lease.keepalive": true, "lease.idle_stop": "20m", "expires_at": r.Text(t, "expires_at"), "expired": false} {
		if got := imported.Get(t, path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	// Nothing renews it for having been imported.
	settled(t, server, imported, config)
	if imported.Get(t, "expires_at") != r.Get(t, "expires_at") {
		t.Errorf("the end moved from %v to %v", r.Get(t, "expires_at"), imported.Get(t, "expires_at"))
	}
}

// Somebody else has taken the lease out, or given it another: the configuration's comes back.
func TestALeaseThatWasChangedOutsideComesBack(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	config := box(values{"ttl": "8h", "renew": "c0ffee"})
	r := create(t, server, config)
	c := client(t, env)
	for name, change := range map[string]func(text string) string{
		"another ttl":   func(text string) string { return strings.Replace(text, " ttl=8h", " ttl=9h", 1) },
		"no ttl":        func(text string) string { return strings.Replace(text, " ttl=8h", "", 1) },
		"another renew": func(text string) string { return strings.Replace(text, " renew=c0ffee", " renew=dec0de", 1) },
		"no lease": func(text string) string {
			return strings.Replace(text, " expires="+r.Text(t, "expires_at")+" ttl=8h renew=c0ffee", "", 1)
		},
	} {
		cfg, err := c.LXCConfig(t.Context(), r.Text(t, "node_name"), r.VMID(t))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.TrimSuffix(cfg.Text("description"), "\n")
		if change(text) == text {
			t.Fatalf("%s: nothing to change in %s", name, text)
		}
		outside(t, c, r, map[string]string{"description": change(text)})
		server = protocoltest.For(t, env, nil)
		protocoltest.NoErrors(t, server.Refresh(t, r))
		apply(t, server, r, config, "update")
		if r.Get(t, "lease.ttl") != "8h" || r.Get(t, "lease.renew") != "c0ffee" || time.Until(end(t, r)) < 7*time.Hour {
			t.Errorf("%s: the state is %v", name, r.Get(t, "lease"))
		}
	}
}

func TestLeasesThatCannotBeAreRefusedAtPlan(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	for name, c := range map[string]struct {
		lease values
		at    string
	}{
		"no duration":       {values{"ttl": "tomorrow"}, "ttl"},
		"a fraction":        {values{"ttl": "1.5s"}, "ttl"},
		"no time":           {values{"ttl": "0s"}, "ttl"},
		"too short":         {values{"ttl": "30s"}, "ttl"},
		"too long":          {values{"ttl": "2000000h"}, "ttl"},
		"too idle":          {values{"ttl": "1h", "idle_stop": "1s"}, "idle_stop"},
		"an unknown action": {values{"ttl": "1h", "on_expiry": "destroy"}, "on_expiry"},
		"an empty renew":    {values{"ttl": "1h", "renew": ""}, "renew"},
		"kept and replaced": {values{"ttl": "1h", "keepalive": true, "on_expiry": "replace"}, "on_expiry"},
	} {
		diags := server.Plan(t, server.NewResource(t, resourceType), box(c.lease)).Diags
		if text := protocoltest.Text(diags); !protocoltest.HasErrors(diags) || !strings.Contains(text, `AttributeName("`+c.at+`")`) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestContainersAreFoundByTheEndOfTheirLease(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := create(t, server, with(box(values{"ttl": "1h", "keepalive": true}), values{"hostname": "short"}))
	create(t, server, with(box(values{"ttl": "10h"}), values{"hostname": "long"}))
	create(t, server, values{"hostname": "none", "memory": 64, "started": false})
	server = after(t, env, 2*time.Hour)
	hostnames := func(config values) string {
		t.Helper()
		var out []string
		for _, c := range server.ReadData(t, "sandbox_containers", config, "containers").([]any) {
			out = append(out, c.(map[string]any)["hostname"].(string))
		}
		return strings.Join(out, " ")
	}
	for want, config := range map[string]values{
		"short":           {"expired": true},
		"long none":       {"expired": false},
		"short long":      {"expires_before": time.Now().Add(12 * time.Hour).UTC().Format(time.RFC3339)},
		"short long none": {},
	} {
		if got := hostnames(config); got != want {
			t.Errorf("%v: %s, want %s", config, got, want)
		}
	}
	first := server.ReadData(t, "sandbox_containers", nil, "containers.0").(map[string]any)
	if fmt.Sprint(first["expires_at"], first["expired"], first["keepalive"]) != fmt.Sprint(r.Get(t, "expires_at"), true, true) {
		t.Errorf("listed as %v", first)
	}
	if _, diags := server.Data(t, "sandbox_containers", values{"expires_before": "soon"}); !protocoltest.HasErrors(diags) {
		t.Error("a time that is none was taken")
	}
}
