package sandbox_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

func stopped(hostname string) sandbox.Spec {
	s := spec(hostname)
	s.Started = false
	return s
}

func (w *world) snapshot(p *process, ref sandbox.Ref, name string) sandbox.Snapshot {
	w.t.Helper()
	out, err := p.CreateSnapshot(w.context(), ref, sandbox.SnapshotSpec{Name: name})
	if err != nil {
		w.t.Fatalf("snapshot %s: %v", name, err)
	}
	return out.Snapshot
}

func (w *world) guest(vmid int) (config map[string]string, running bool) {
	w.t.Helper()
	dump, err := w.lab.Control().Dump(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, g := range dump.Guests {
		if g.VMID == vmid {
			return g.Config, g.Running
		}
	}
	w.t.Fatalf("no guest %d", vmid)
	return nil, false
}

func (w *world) names(p *process, vmid int) []string {
	w.t.Helper()
	list, err := p.ListSnapshots(w.context(), vmid, "")
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, s := range list.Snapshots {
		names = append(names, s.Name)
	}
	return names
}

// change changes a guest behind everybody's back.
func (w *world) change(vmid int, set map[string]string) {
	w.t.Helper()
	if err := w.lab.Control().ChangeGuest(context.Background(), control.Guest{VMID: vmid, Set: set}); err != nil {
		w.t.Fatal(err)
	}
}

// call sends one request to the server, past everything under test.
func (w *world) call(method, path string, form url.Values) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.lab.Endpoint()+"/api2/json"+path, strings.NewReader(form.Encode()))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "PVEAPIToken="+w.lab.Token())
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
}

func TestASnapshotLivesAndDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, stopped("box"))

	text := "  first line\nsecond\n\nlast "
	out, err := p.CreateSnapshot(w.context(), s.Ref, sandbox.SnapshotSpec{Name: "one", Description: text})
	if err != nil {
		t.Fatal(err)
	}
	one := out.Snapshot
	if one.Description != text || one.Parent != "" || one.Created.IsZero() || one.Claim != s.Claim || !out.Accepted {
		t.Errorf("made %+v", out)
	}
	for _, name := range []string{"two", "three"} {
		w.snapshot(p, s.Ref, name)
	}
	if names := w.names(p, s.VMID); !slices.Equal(names, []string{"one", "two", "three"}) {
		t.Fatalf("listed %v, want the oldest first", names)
	}
	if one, err = p.DescribeSnapshot(w.context(), s.Ref, "one", "another"); err != nil || one.Description != "another" {
		t.Errorf("described %+v, %v", one, err)
	}

	// One that has children goes, and the children stay.
	if _, err := p.DestroySnapshot(w.context(), s.Ref, "two"); err != nil {
		t.Fatal(err)
	}
	three, err := p.ReadSnapshot(w.context(), s.Ref, "three")
	if err != nil || three.Parent != "one" {
		t.Errorf("the child is %+v, %v", three, err)
	}
	if _, err := p.ReadSnapshot(w.context(), s.Ref, "two"); !errors.Is(err, sandbox.ErrNoSnapshot) {
		t.Errorf("a snapshot that is gone reads as %v", err)
	}
	if _, err := p.DestroySnapshot(w.context(), s.Ref, "two"); err != nil {
		t.Errorf("destroyed again: %v", err)
	}

	if _, err := p.Destroy(w.context(), s.Ref, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := p.ReadSnapshot(w.context(), s.Ref, "one"); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("a snapshot whose container is gone reads as %v", err)
	}
	if _, err := p.DestroySnapshot(w.context(), s.Ref, "one"); err != nil {
		t.Errorf("destroyed after its container: %v", err)
	}
}

func TestASnapshotCostsThreeRequestsAndAListOfAFleetOneEach(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	var refs []sandbox.Ref
	for _, name := range []string{"a", "b", "c"} {
		refs = append(refs, w.create(p, stopped("box-"+name)).Ref)
	}
	for _, ref := range refs {
		n, list := w.requests(func() { w.snapshot(p, ref, "one") })
		if n > 3 {
			t.Errorf("a snapshot took %d requests: %v", n, list)
		}
		w.snapshot(p, ref, "two")
	}
	next := w.process()
	n, list := w.requests(func() {
		for _, ref := range refs {
			for _, name := range []string{"one", "two"} {
				if _, err := next.ReadSnapshot(w.context(), ref, name); err != nil {
					t.Error(err)
				}
			}
		}
	})
	if n > len(refs) {
		t.Errorf("six snapshots of three containers were read by %d requests: %v", n, list)
	}
}

func TestASnapshotIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, stopped("box"))
	for _, name := range []string{"", "a", "1st", "pre-8.4-upgrade", "with space", "current", "vzdump", "ä-umlaut", strings.Repeat("x", 41)} {
		n, _ := w.requests(func() {
			if _, err := p.CreateSnapshot(w.context(), s.Ref, sandbox.SnapshotSpec{Name: name}); err == nil {
				t.Errorf("the name %q was taken", name)
			}
		})
		if n > 0 {
			t.Errorf("%q: %d requests", name, n)
		}
	}
	problems := sandbox.CheckSnapshotName("name", "pre-8.4-upgrade")
	if len(problems) != 1 || !strings.Contains(problems[0].Detail, `"pre-8-4-upgrade"`) {
		t.Errorf("the classic mistake is answered by %v", problems)
	}
}

func TestWhatKeepsAContainerFromBeingSnapshottedIsToldAtPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	file := stopped("from-file")
	file.Source, file.Storage = sandbox.Source{TemplateFileID: lab.TemplateFile}, "local-dir2"
	onDir := w.create(p, file)
	plain := w.create(p, stopped("plain"))
	volume := w.create(p, stopped("volume"))
	w.change(volume.VMID, map[string]string{"mp0": "local-btrfs:1/vm-1-disk-9.raw,mp=/work,size=1G"})
	bind := w.create(p, stopped("bind"))
	w.change(bind.VMID, map[string]string{"mp3": "/srv/data,mp=/data"})

	for name, c := range map[string]struct {
		ref  sandbox.Ref
		spec sandbox.SnapshotSpec
		at   string
		says string
	}{
		"a storage without snapshots": {onDir.Ref, sandbox.SnapshotSpec{Name: "s1"}, "container_id", "local-dir2"},
		"a bind mount":                {bind.Ref, sandbox.SnapshotSpec{Name: "s1"}, "container_id", "/srv/data"},
		"a workspace":                 {volume.Ref, sandbox.SnapshotSpec{Name: "s1"}, "include_workspaces", "/work"},
		"a name":                      {plain.Ref, sandbox.SnapshotSpec{Name: "a.b"}, "name", "a-b"},
	} {
		_, problems, err := p.CheckSnapshot(w.context(), sandbox.Ref{VMID: c.ref.VMID}, c.spec)
		if err != nil || len(problems) != 1 || problems[0].Attribute != c.at || !strings.Contains(problems[0].Summary+problems[0].Detail, c.says) {
			t.Errorf("%s: %v, %v", name, problems, err)
		}
		if _, err := p.CreateSnapshot(w.context(), c.ref, c.spec); err == nil {
			t.Errorf("%s: it was made", name)
		}
	}
	if _, problems, err := p.CheckSnapshot(w.context(), plain.Ref, sandbox.SnapshotSpec{Name: "s1"}); err != nil || len(problems) > 0 {
		t.Errorf("one that is fine: %v, %v", problems, err)
	}
	if _, problems, err := p.CheckSnapshot(w.context(), volume.Ref, sandbox.SnapshotSpec{Name: "s1", IncludeWorkspaces: true}); err != nil || len(problems) > 0 {
		t.Errorf("a workspace that is wanted: %v, %v", problems, err)
	}
	stranger := w.process(func(_ *pve.Config, s *sandbox.Settings, _ *sandbox.Options) { s.Owner = "stranger" })
	if _, _, err := stranger.CheckSnapshot(w.context(), sandbox.Ref{VMID: plain.VMID}, sandbox.SnapshotSpec{Name: "s1"}); !errors.Is(err, sandbox.ErrForeign) {
		t.Errorf("somebody else's: %v", err)
	}
}

func TestANameThatIsTakenIsToldWithARemedy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, stopped("box"))
	w.snapshot(p, s.Ref, "one")
	w.snapshot(p, s.Ref, "two")
	for _, name := range []string{"one", "two"} { // an older one, and the one that the present state comes from
		out, err := p.CreateSnapshot(w.context(), s.Ref, sandbox.SnapshotSpec{Name: name})
		if !errors.Is(err, sandbox.ErrSnapshotExists) || !strings.Contains(err.Error(), "import") || out.Accepted {
			t.Errorf("%s: %v, accepted %v", name, err, out.Accepted)
		}
	}
}

func TestALostAnswerToASnapshotMakesOneSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, stopped("box"))
	for _, kind := range []string{control.DropAfter, control.DropBefore} {
		name := strings.ReplaceAll(kind, "_", "-")
		id := w.inject(control.Fault{Method: "POST", Pattern: "/snapshot$", Kind: kind})
		w.snapshot(p, s.Ref, name)
		if !w.fired(id) {
			t.Error("nothing was lost")
		}
		w.calm()
		id = w.inject(control.Fault{Method: "DELETE", Pattern: "/snapshot/", Kind: kind})
		if _, err := p.DestroySnapshot(w.context(), s.Ref, name); err != nil || !w.fired(id) {
			t.Errorf("%s, lost %v", err, w.fired(id))
		}
		w.calm()
	}
	if names := w.names(w.process(), s.VMID); len(names) > 0 {
		t.Errorf("left %v", names)
	}
}

func TestAFullStorageFailsTheSnapshotWithTheServersWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, stopped("box"))
	if err := w.lab.Control().FailTask(t.Context(), control.TaskFault{Type: "vzsnapshot", Exit: "Free space in pool below threshold: No space left on device"}); err != nil {
		t.Fatal(err)
	}
	_, err := p.CreateSnapshot(w.context(), s.Ref, sandbox.SnapshotSpec{Name: "one"})
	if err == nil || !strings.Contains(err.Error(), "No space left on device") {
		t.Errorf("it said: %v", err)
	}
	w.calm()
	if names := w.names(w.process(), s.VMID); len(names) > 0 {
		t.Errorf("left %v", names)
	}
}

func TestALockIsWaitedForNamedAndHonoursTheTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, stopped("box"))
	w.snapshot(p, s.Ref, "one")
	w.change(s.VMID, map[string]string{"lock": "backup"})
	for name, do := range map[string]func(context.Context) error{
		"snapshot": func(ctx context.Context) error {
			_, err := p.CreateSnapshot(ctx, s.Ref, sandbox.SnapshotSpec{Name: "two"})
			return err
		},
		"delete": func(ctx context.Context) error {
			_, err := p.DestroySnapshot(ctx, s.Ref, "one")
			return err
		},
		"rollback": func(ctx context.Context) error {
			_, err := p.Rollback(ctx, sandbox.Prior{Ref: s.Ref}, sandbox.RollbackSpec{Snapshot: "one"})
			return err
		},
	} {
		err := do(short(t, 400*time.Millisecond))
		if !errors.Is(err, sandbox.ErrLocked) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "backup") {
			t.Errorf("%s: %v", name, err)
		}
	}
	go func() {
		time.Sleep(50 * time.Millisecond) // the backup ends while we wait
		w.change(s.VMID, map[string]string{"lock": ""})
	}()
	w.snapshot(p, s.Ref, "two")
}

func TestAStoppedSnapshotIsTracked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, stopped("box"))
	id := w.inject(control.Fault{Method: "GET", Pattern: "/tasks/.*vzsnapshot", Kind: control.Hold})
	ctx, stop := context.WithCancel(w.context())
	defer stop()
	go func() {
		_, _ = w.lab.Control().WaitHeld(context.Background(), id, 1, 10*time.Second)
		stop()
		_ = w.lab.Control().Release(context.Background(), id)
	}()
	out, err := p.CreateSnapshot(ctx, s.Ref, sandbox.SnapshotSpec{Name: "one"})
	if err != nil || !out.Unfinished || !out.Accepted || out.Snapshot.Claim != s.Claim {
		t.Fatalf("%+v, %v", out, err)
	}
	w.calm()
	if _, err := w.process().ReadSnapshot(w.context(), s.Ref, "one"); err != nil {
		t.Error(err)
	}
}

func TestSnapshotsOfAContainerThatWasReplacedAreGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	old := w.create(p, stopped("box"))
	w.snapshot(p, old.Ref, "clean")
	if _, err := p.Destroy(w.context(), old.Ref, ""); err != nil {
		t.Fatal(err)
	}
	want := stopped("box")
	want.VMID = old.VMID
	fresh := w.create(p, want)
	w.snapshot(p, fresh.Ref, "clean")
	if _, err := p.DestroySnapshot(w.context(), old.Ref, "clean"); err != nil {
		t.Fatal(err)
	}
	if names := w.names(p, fresh.VMID); !slices.Equal(names, []string{"clean"}) {
		t.Errorf("the new container's snapshot was taken for the old one's: left %v", names)
	}
}

func TestAnUpdateThatRestartsTakesASnapshotBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	from := spec("box")
	from.RestartWhenNeeded, from.SnapshotBeforeUpdate = true, true
	s := w.create(p, from)
	prior := sandbox.Prior{Ref: s.Ref}
	update := func(to sandbox.Spec, at time.Duration) {
		t.Helper()
		if _, err := w.process(later(at)).Update(w.context(), prior, from, to); err != nil {
			t.Fatal(err)
		}
		from = to
	}
	to := from
	to.MemoryMiB = ptr(384)
	update(to, 0)
	if names := w.names(w.process(), s.VMID); len(names) > 0 {
		t.Errorf("a change that is applied live took %v", names)
	}
	to.Hostname = "other"
	update(to, 0)
	first := w.names(w.process(), s.VMID)
	if len(first) != 1 || !strings.HasPrefix(first[0], "before-update-") {
		t.Fatalf("a restart took %v", first)
	}
	kept := w.snapshot(p, s.Ref, "mine")
	to.DiskGiB = ptr(9)
	update(to, time.Hour)
	second := w.names(w.process(), s.VMID)
	if len(second) != 2 || second[0] != kept.Name || second[1] == first[0] {
		t.Errorf("a second one left %v: want mine and the newest", second)
	}
}
