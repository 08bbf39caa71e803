package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

func leased(hostname string, lease sandbox.Lease) sandbox.Spec {
	s := spec(hostname)
	s.Lease = &lease
	return s
}

// markerOf is the marker that the server holds.
func (w *world) markerOf(vmid int) *sandbox.Marker {
	w.t.Helper()
	dump, err := w.lab.Control().Dump(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, g := range dump.Guests {
		if g.VMID == vmid {
			_, m := sandbox.SplitDescription(g.Config["description"])
			return m
		}
	}
	return nil
}

// inside is a JSON file of the guest; nil when it isn't there.
func (w *world) inside(p *process, ref sandbox.Ref, path string) map[string]any {
	w.t.Helper()
	text, err := p.ReadFile(w.context(), sandbox.Prior{Ref: ref}, path, 4096)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		w.t.Fatalf("%s holds %q: %v", path, text, err)
	}
	return out
}

// A second call would be lost with the process that was to make it.
func TestALeaseGoesInWithTheCallThatMakesTheGuest(t *testing.T) {
	t.Parallel()
	for _, source := range []sandbox.Source{{TemplateID: lab.TemplateID}, {TemplateFileID: lab.TemplateFile}} {
		w := newWorld(t, lab.Options{})
		ctx, kill := context.WithCancel(w.context())
		want := leased("born", sandbox.Lease{TTL: 3 * time.Hour, Renew: "c0ffee"})
		want.Source = source
		var made sandbox.Ref
		before := time.Now()
		_, err := w.process().Create(ctx, want, func(ref sandbox.Ref, _ string) { made = ref; kill() })
		if err != nil {
			t.Fatal(err)
		}
		w.settle()
		m := w.markerOf(made.VMID)
		if m == nil || m.Phase != sandbox.PhaseCreating || m.Renewed != "c0ffee" || m.Expires.Before(before.Add(3*time.Hour-2*time.Second)) || m.Expires.After(time.Now().Add(3*time.Hour)) {
			t.Errorf("%v: after the first call the marker is %v", source, m)
		}
	}
}

func TestAGuestIsToldItsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	want := leased("told", sandbox.Lease{TTL: 8 * time.Hour, IdleStop: 30 * time.Minute})
	s := w.create(p, want)
	prior := sandbox.Prior{Ref: s.Ref}
	check := func(when string, expires time.Time, idle float64) {
		t.Helper()
		lease, metadata := w.inside(p, s.Ref, sandbox.LeaseFile), w.inside(p, s.Ref, sandbox.MetadataFile)
		if lease["version"] != 1.0 || lease["claim"] != s.Claim || lease["expires_at"] != expires.Format(time.RFC3339) || lease["idle_stop_s"] != idle {
			t.Errorf("%s: %s holds %v, want the end %v", when, sandbox.LeaseFile, lease, expires)
		}
		if metadata["version"] != 1.0 || metadata["owner"] != testOwner || metadata["vmid"] != float64(s.VMID) || metadata["expires_at"] != expires.Format(time.RFC3339) || metadata["mode"] != string(sandbox.ModeUnmanaged) {
			t.Errorf("%s: %s holds %v", when, sandbox.MetadataFile, metadata)
		}
	}
	check("after the creation", s.ExpiresAt, 1800)
	info, err := p.StatFile(w.context(), prior, sandbox.LeaseFile, false)
	if err != nil || info.Mode.Perm() != 0o644 || info.Owner != "root" {
		t.Errorf("%+v, %v", info, err)
	}

	update := func(p *process, to sandbox.Spec) sandbox.Sandbox {
		t.Helper()
		out, err := p.Update(w.context(), prior, want, to)
		if err != nil {
			t.Fatal(err)
		}
		want = to
		return out.Sandbox
	}
	// What isn't the lease's business leaves its end where it is.
	other := want.Clone()
	other.Description = "another"
	if now := update(w.process(later(time.Hour)), other); !now.ExpiresAt.Equal(s.ExpiresAt) {
		t.Errorf("an update moved the end to %v", now.ExpiresAt)
	}
	renewed := want.Clone()
	renewed.Lease.Renew, renewed.Lease.IdleStop = "again", 0
	now := update(w.process(later(time.Hour)), renewed)
	if d := now.ExpiresAt.Sub(s.ExpiresAt); d < 59*time.Minute || d > 62*time.Minute {
		t.Errorf("the renewal moved the end by %v", d)
	}
	check("after the renewal", now.ExpiresAt, 0)

	// A stopped guest is told when it starts.
	stopped := want.Clone()
	stopped.Started, stopped.Lease.TTL = false, 2*time.Hour
	now = update(p, stopped)
	started := want.Clone()
	started.Started = true
	update(p, started)
	check("after the start", now.ExpiresAt, 0)

	without := want.Clone()
	without.Lease = nil
	if now := update(p, without); now.Lease != nil || !now.ExpiresAt.IsZero() || w.markerOf(s.VMID).Renewed != "" {
		t.Errorf("a lease is left: %+v", now.Lease)
	}
	if lease := w.inside(p, s.Ref, sandbox.LeaseFile); lease != nil {
		t.Errorf("without a lease %s holds %v", sandbox.LeaseFile, lease)
	}
	if end, there := w.inside(p, s.Ref, sandbox.MetadataFile)["expires_at"]; end != nil || !there {
		t.Errorf("without a lease the metadata's end is %v", end)
	}
}

// A snapshot's disk holds the lease of its time, which would stop the container ten minutes after the rollback.
func TestARollbackDoesNotTakeTheLeaseBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	want := leased("back", sandbox.Lease{TTL: time.Hour})
	s := w.create(p, want)
	if _, err := p.CreateSnapshot(w.context(), s.Ref, sandbox.SnapshotSpec{Name: "clean"}); err != nil {
		t.Fatal(err)
	}
	renewed := want.Clone()
	renewed.Lease.TTL = 10 * time.Hour
	out, err := p.Update(w.context(), sandbox.Prior{Ref: s.Ref}, want, renewed)
	if err != nil {
		t.Fatal(err)
	}
	w.rollBack(p, s.Ref, sandbox.RollbackSpec{Snapshot: "clean"})
	if got := w.inside(p, s.Ref, sandbox.LeaseFile)["expires_at"]; got != out.Sandbox.ExpiresAt.Format(time.RFC3339) {
		t.Errorf("after the rollback the guest believes in %v, want %v", got, out.Sandbox.ExpiresAt)
	}
	if m := w.markerOf(s.VMID); !m.Expires.Equal(out.Sandbox.ExpiresAt) {
		t.Errorf("the marker says %v", m.Expires)
	}
}

// A template that was made from a sandbox carries that one's lease, which is long over.
func TestASandboxWithoutALeaseHasNoneOfItsTemplates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, leased("seed", sandbox.Lease{TTL: time.Hour}))
	w.within(p, s.Ref, "mkdir -p /etc/sandbox && echo '{}' > /etc/sandbox/template.json")
	stopped := leased("seed", sandbox.Lease{TTL: time.Hour})
	stopped.Started = false
	if _, err := p.Update(w.context(), sandbox.Prior{Ref: s.Ref}, stopped, stopped); err != nil {
		t.Fatal(err)
	}
	if err := p.client.ConvertToTemplate(w.context(), s.Node, s.VMID); err != nil {
		t.Fatal(err)
	}
	want := spec("clone")
	want.Source = sandbox.Source{TemplateID: s.VMID}
	c := w.create(w.process(), want)
	if got := w.within(p, c.Ref, "ls /etc/sandbox"); got != "template.json" {
		t.Errorf("in /etc/sandbox: %q", got)
	}
	if c.Lease != nil {
		t.Errorf("it has the lease %+v", c.Lease)
	}
}

func TestALeaseIsCheckedBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	for _, c := range []struct {
		lease     sandbox.Lease
		attribute string
	}{
		{sandbox.Lease{TTL: time.Second}, "lease.ttl"},
		{sandbox.Lease{TTL: 200 * 365 * 24 * time.Hour}, "lease.ttl"},
		{sandbox.Lease{TTL: time.Hour, IdleStop: time.Second}, "lease.idle_stop"},
		{sandbox.Lease{TTL: time.Hour, OnExpiry: "destroy"}, "lease.on_expiry"},
		{sandbox.Lease{TTL: time.Hour, Keepalive: true, OnExpiry: sandbox.ExpiryReplace}, "lease.on_expiry"},
	} {
		_, err := p.Create(w.context(), leased("bad", c.lease), nil)
		var found *sandbox.ProblemsError
		if !errors.As(err, &found) || found.Problems[0].Attribute != c.attribute {
			t.Errorf("%+v: %v", c.lease, err)
		}
	}
	if left := w.marked(); len(left) > 0 {
		t.Errorf("made %v", left)
	}
}

// A user who may not write below /etc has a lease all the same: the reaper's.
func TestAGuestThatCannotBeToldIsLeasedAllTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("dumb"))
	w.within(p, s.Ref, "rm -rf /etc/sandbox && touch /etc/sandbox")
	to := leased("dumb", sandbox.Lease{TTL: time.Hour})
	_, err := p.Update(w.context(), sandbox.Prior{Ref: s.Ref}, spec("dumb"), to)
	if err == nil || !strings.Contains(err.Error(), "write its lease") {
		t.Errorf("an update that could not write %s said %v", sandbox.LeaseFile, err)
	}
	// The next apply goes on: the end doesn't move again, and the file is written.
	was := w.markerOf(s.VMID).Expires
	w.within(p, s.Ref, "rm /etc/sandbox")
	out, err := w.process(later(time.Minute)).Update(w.context(), sandbox.Prior{Ref: s.Ref}, spec("dumb"), to)
	if err != nil || !out.Sandbox.ExpiresAt.Equal(was) {
		t.Errorf("the second apply: end %v, want %v, %v", out.Sandbox.ExpiresAt, was, err)
	}
	if got := w.inside(p, s.Ref, sandbox.LeaseFile)["expires_at"]; got != was.Format(time.RFC3339) {
		t.Errorf("the guest believes in %v", got)
	}
}

func TestAGuestThatNobodyLogsInToIsSaidNotToBeTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	want := leased("mute", sandbox.Lease{TTL: time.Hour})
	want.WaitFor = sandbox.WaitForNone
	s := w.create(p, want)
	renewed := want.Clone()
	renewed.Lease.Renew = "again"
	out, err := p.Update(w.context(), sandbox.Prior{Ref: s.Ref}, want, renewed)
	if err != nil || len(out.Warnings) != 1 || out.Warnings[0].Summary != "The guest isn't told its new lease" {
		t.Errorf("%v, %v", out.Warnings, err)
	}
	if m := w.markerOf(s.VMID); m.Renewed != "again" {
		t.Errorf("the marker is %v", m)
	}
}
