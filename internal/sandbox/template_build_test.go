package sandbox_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/manifest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// templates is a process whose ids are those of templates: any free one.
func (w *world) templates(options ...option) *process {
	return w.process(append([]option{func(_ *pve.Config, s *sandbox.Settings, _ *sandbox.Options) {
		s.VMIDs = sandbox.VMIDRange{First: sandbox.MinVMID, Last: sandbox.MaxVMID}
	}}, options...)...)
}

// smallTemplate is a template that a test builds.
func (w *world) smallTemplate() sandbox.TemplateSpec {
	return sandbox.TemplateSpec{
		Name: "small", Tags: []string{"ci"}, Description: "made by a test", Source: sandbox.TemplateSource{File: lab.TemplateFile}, Storage: lab.Storage, DiskGiB: 1,
		Config: map[string]string{"net0": "name=eth0,bridge=" + lab.Bridge + ",ip=dhcp,type=veth", "memory": "256", "features": "nesting=1"}, AuthorizedKeys: []string{w.lab.PublicKey()},
	}
}

// sealedBy is what happens inside between start and stop: the build's seal in short.
const sealedBy = `set -e
cat /etc/machine-id; cat /etc/ssh/ssh_host_ed25519_key.pub
mkdir -p /etc/systemd/system/multi-user.target.wants
printf '[Service]\nExecStart=/usr/bin/ssh-keygen -A\n' > /etc/systemd/system/multi-user.target.wants/sandbox-firstboot.service
rm -f /etc/ssh/ssh_host_*
: > /etc/machine-id`

// build takes a template through all of its steps. inside is run in the container; its output is who it was.
func (w *world) build(ctx context.Context, p *process, spec sandbox.TemplateSpec, inside string) (b *sandbox.TemplateBuild, err error) {
	if b, err = p.PlanTemplate(ctx, spec); err != nil {
		return b, err
	}
	if err := b.Make(ctx, nil); err != nil {
		return b, err
	}
	if err := b.Start(ctx); err != nil {
		return b, err
	}
	address, err := b.Address(ctx)
	if err != nil {
		return b, err
	}
	before, err := w.runIn(ctx, b.Ref().VMID, address.String(), inside)
	if err != nil {
		return b, err
	}
	if err := b.Stop(ctx); err != nil {
		return b, err
	}
	if err := b.Convert(ctx); err != nil {
		return b, err
	}
	if _, err := b.Verify(ctx, sandbox.VerifySpec{Before: sandbox.ParseIdentity(before)}); err != nil {
		return b, err
	}
	builtAt, err := time.Parse("20060102T150405Z", b.BuildID()) // by the process's own clock
	if err != nil {
		return b, err
	}
	m := manifest.Manifest{BuildID: b.BuildID(), Name: spec.Name, BuiltAt: builtAt, Source: manifest.Source{Kind: spec.Source.Kind(), Reference: spec.Source.Reference()}}
	file, err := m.Render()
	if err != nil {
		return b, err
	}
	return b, b.Finish(ctx, sandbox.SummaryOf(m, file))
}

func (w *world) runIn(ctx context.Context, vmid int, address, script string) (string, error) {
	pool, err := guest.NewPool(guest.Config{
		Username: lab.GuestUser, Auth: guest.Auth{PrivateKey: w.lab.PrivateKey()}, Timeout: 20 * time.Second,
		ProxyJump: &guest.ProxyJump{Host: w.lab.SSHHost(), Port: w.lab.SSHPort(), Username: lab.SSHUser, HostKey: w.lab.SSHHostKey()},
		Timing:    guest.Timing{PollMin: 5 * time.Millisecond, PollMax: 50 * time.Millisecond},
	})
	if err != nil {
		return "", err
	}
	defer func() { _ = pool.Close() }()
	t := guest.Target{ID: fmt.Sprint(vmid), Address: address}
	if _, err := pool.WaitReady(ctx, t); err != nil {
		return "", err
	}
	res, err := pool.Exec(ctx, t, guest.Command{Script: script})
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("exit status %d: %s", res.ExitCode, res.Stderr)
	}
	return string(res.Stdout), err
}

// built are the guests on the server besides the lab's own template: those that are finished templates, and the rest.
func (w *world) built() (ready, rest []int) {
	w.t.Helper()
	dump, err := w.lab.Control().Dump(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, g := range dump.Guests {
		if g.VMID == lab.TemplateID {
			continue
		}
		_, marker := sandbox.SplitDescription(g.Config["description"])
		if g.Config["template"] == "1" && marker != nil && marker.VMID == g.VMID && marker.Phase == sandbox.PhaseReady {
			ready = append(ready, g.VMID)
		} else {
			rest = append(rest, g.VMID)
		}
	}
	if len(dump.Strays) > 0 {
		w.t.Errorf("volumes without a container: %v", dump.Strays)
	}
	return ready, rest
}

func TestATemplateIsBuiltProvedAndFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.templates()
	b, err := w.build(w.context(), p, w.smallTemplate(), sealedBy)
	if err != nil {
		t.Fatal(err)
	}
	found, err := p.FindTemplates(w.context(), sandbox.TemplateFilter{Name: "small", Owner: testOwner, Tags: []string{"ci"}})
	if err != nil || len(found) != 1 || found[0].VMID != b.Ref().VMID || found[0].Summary.BuildID != b.BuildID() || found[0].Text != "made by a test" {
		t.Fatalf("found %+v, %v", found, err)
	}
	// A sandbox of it knows the generation that it was made of.
	s := w.create(w.process(), func() sandbox.Spec { s := spec("from-it"); s.Source.TemplateID = b.Ref().VMID; return s }())
	if s.Marker.TemplateBuild != b.BuildID() {
		t.Errorf("the sandbox's marker is %s", s.Marker)
	}
}

func TestATemplateWithHostKeysLeftBehindIsRefused(t *testing.T) {
	t.Parallel()
	for name, inside := range map[string]string{
		"keys left":       "cat /etc/machine-id; cat /etc/ssh/ssh_host_ed25519_key.pub; : > /etc/machine-id",
		"nothing new":     "cat /etc/machine-id; cat /etc/ssh/ssh_host_ed25519_key.pub; rm -f /etc/ssh/ssh_host_*",
		"another's login": sealedBy + "; echo 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE4Vh0CDHr2qLmLfZ1n2mS7dhCGWNuZ2tLdFFYiZSPSj x' > /root/.ssh/authorized_keys",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Options{})
			p := w.templates(func(_ *pve.Config, s *sandbox.Settings, _ *sandbox.Options) { s.Guest.Timeout = 2 * time.Second })
			b, err := w.build(w.context(), p, w.smallTemplate(), inside)
			if !errors.Is(err, sandbox.ErrTemplateUnfit) {
				t.Fatalf("the error is %v", err)
			}
			if code := sandbox.CodeOf(err); code == sandbox.CodeUnclassified {
				t.Errorf("it has no code: %v", err)
			}
			if _, rest := w.built(); !slices.Equal(rest, []int{b.Ref().VMID}) {
				t.Errorf("the throwaway clone is left: %v", rest)
			}
			if err := b.Remove(w.context()); err != nil {
				t.Fatal(err)
			}
			if ready, rest := w.built(); len(ready)+len(rest) != 0 {
				t.Errorf("left: %v %v", ready, rest)
			}
		})
	}
}

func TestABuildThatFailsAnywhereLeavesNothingOrAWholeTemplate(t *testing.T) {
	t.Parallel()
	request := func(f control.Fault) func(*world, int) (bool, error) {
		return func(w *world, n int) (bool, error) {
			f.Nth = n
			_, err := w.lab.Control().Inject(w.t.Context(), f)
			return true, err
		}
	}
	task := func(after bool) func(*world, int) (bool, error) {
		return func(w *world, n int) (bool, error) {
			// Create, start, stop, template, clone, start, reboot, destroy.
			return n < 8, w.lab.Control().FailTask(w.t.Context(), control.TaskFault{Nth: n, Count: 1, Exit: "unable to do it", After: after})
		}
	}
	const refusal = "got no worker upid - start worker failed"
	for name, inject := range map[string]func(*world, int) (more bool, err error){
		"task fails": task(false), "task fails late": task(true),
		"POST's answer lost": request(control.Fault{Method: "POST", Pattern: "/lxc", Kind: control.DropAfter}),
		"PUT's answer lost":  request(control.Fault{Method: "PUT", Pattern: "/lxc", Kind: control.DropAfter}),
		"write refused":      request(control.Fault{Method: "POST", Pattern: "/lxc", Kind: control.Status, Status: 500, Reason: refusal}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Options{})
			for n := 1; ; n++ {
				more, err := inject(w, n)
				if err != nil {
					t.Fatal(err)
				}
				p := w.templates(impatient)
				b, buildErr := w.build(w.context(), p, w.smallTemplate(), sealedBy)
				states, err := w.lab.Control().Faults(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range states {
					more = more && s.Fired > 0
				}
				w.calm()
				ready, rest := w.built()
				if buildErr == nil && (len(ready) != 1 || len(rest) != 0) {
					t.Fatalf("at %d the build succeeded and there is %v %v", n, ready, rest)
				}
				if b != nil {
					if err := b.Remove(w.context()); err != nil {
						t.Fatalf("at %d: remove after %v: %v", n, buildErr, err)
					}
				}
				if ready, rest := w.built(); len(ready)+len(rest) != 0 {
					t.Fatalf("at %d, after %v, there is left %v %v", n, buildErr, ready, rest)
				}
				if !more {
					if buildErr != nil && !strings.HasPrefix(name, "task") || n < 2 {
						t.Fatalf("at %d, without a fault: %v", n, buildErr)
					}
					return
				}
			}
		})
	}
}

func TestAnAbandonedBuildIsRemovedByTheNextOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	for name, steps := range map[string]func(b *sandbox.TemplateBuild) error{
		"made": func(b *sandbox.TemplateBuild) error { return b.Make(w.context(), nil) },
		"converted": func(b *sandbox.TemplateBuild) error {
			return errors.Join(b.Make(w.context(), nil), b.Convert(w.context()))
		},
	} {
		killed, err := w.templates().PlanTemplate(w.context(), w.smallTemplate())
		if err == nil {
			err = steps(killed)
		}
		if err != nil {
			t.Fatal(name, err)
		}
		// Somebody's work that is under way is left alone.
		w.calm()
		if _, err := w.templates().PlanTemplate(w.context(), w.smallTemplate()); err != nil {
			t.Fatal(err)
		}
		if _, rest := w.built(); len(rest) != 1 {
			t.Fatalf("%s: a build that is under way was touched: %v", name, rest)
		}
		if _, err := w.templates(later(5*time.Hour)).PlanTemplate(w.context(), w.smallTemplate()); err != nil {
			t.Fatal(err)
		}
		if ready, rest := w.built(); len(ready)+len(rest) != 0 {
			t.Fatalf("%s: left %v %v", name, ready, rest)
		}
	}
}

func TestForceReplacesOnlyWhatIsOursAndUnused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	first, err := w.build(w.context(), w.templates(), w.smallTemplate(), sealedBy)
	if err != nil {
		t.Fatal(err)
	}
	w.calm()
	refused := func(what, says string, change func(*sandbox.TemplateSpec)) {
		t.Helper()
		s := w.smallTemplate()
		change(&s)
		before, _ := w.lab.Control().Dump(t.Context())
		_, err := w.templates().PlanTemplate(w.context(), s)
		var found *sandbox.ProblemsError
		if !errors.As(err, &found) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", what, err)
		}
		after, _ := w.lab.Control().Dump(t.Context())
		if len(before.Guests) != len(after.Guests) {
			t.Errorf("%s: the server has %d guests, it had %d", what, len(after.Guests), len(before.Guests))
		}
	}
	id := first.Ref().VMID
	refused("id of ours without force", "packer build -force", func(s *sandbox.TemplateSpec) { s.VMID = id })
	refused("id of another's template", "no template of ours", func(s *sandbox.TemplateSpec) { s.VMID, s.Replace = lab.TemplateID, true })
	refused("name of another's template", "isn't ours", func(s *sandbox.TemplateSpec) { s.Name, s.Replace = "mini-tmpl", true })
	refused("over its own source", "id of the source", func(s *sandbox.TemplateSpec) {
		s.Source, s.VMID, s.Replace = sandbox.TemplateSource{CloneID: lab.TemplateID}, lab.TemplateID, true
	})
	clone := func() sandbox.Spec { s := spec("user"); s.Source.TemplateID = id; return s }()
	user := w.create(w.process(), clone)
	w.calm()
	refused("id in use", "is in use: container "+fmt.Sprint(user.VMID), func(s *sandbox.TemplateSpec) { s.VMID, s.Replace = id, true })
	refused("name in use", "is in use", func(s *sandbox.TemplateSpec) { s.Replace = true })
	if _, err := w.process().Destroy(w.context(), user.Ref, ""); err != nil {
		t.Fatal(err)
	}
	w.calm()
	again := w.smallTemplate()
	again.VMID, again.Replace = id, true
	second, err := w.build(w.context(), w.templates(later(time.Second)), again, sealedBy)
	if err != nil || second.Ref().VMID != id || second.Ref().Claim == first.Ref().Claim {
		t.Fatalf("with -force: %+v, %v", second.Ref(), err)
	}
}

func TestKeepRemovesOldGenerationsThatNothingUses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	var ids []int
	for n := range 4 {
		s := w.smallTemplate()
		s.Keep = 2
		b, err := w.build(w.context(), w.templates(later(time.Duration(n)*time.Minute)), s, sealedBy)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, b.Ref().VMID)
		if n == 0 {
			clone := func() sandbox.Spec { s := spec("user"); s.Source.TemplateID = ids[0]; return s }()
			w.create(w.process(), clone)
		}
		w.calm()
		if _, err := b.Prune(w.context()); err != nil {
			t.Fatal(err)
		}
		w.calm()
	}
	ready, _ := w.built()
	slices.Sort(ready)
	want := []int{ids[0], ids[2], ids[3]} // the first is in use
	slices.Sort(want)
	if !slices.Equal(ready, want) {
		t.Errorf("there are %v, want %v", ready, want)
	}
}

func TestATemplateFileIsFetchedOnlyWithTheRightSum(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	content := []byte("a root filesystem, so to say")
	files := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write(content) }))
	t.Cleanup(files.Close)
	sum := sha256.Sum256(content)
	s := w.smallTemplate()
	s.Source = sandbox.TemplateSource{URL: files.URL + "/debian-13-mini.tar.zst", Checksum: "sha256:" + strings.Repeat("0", 64), FileStorage: "local"}
	_, err := w.build(w.context(), w.templates(), s, sealedBy)
	if err == nil || !strings.Contains(err.Error(), "checksum mismatch") || !strings.Contains(err.Error(), "another than template_checksum says") {
		t.Errorf("the error is %v", err)
	}
	if ready, rest := w.built(); len(ready)+len(rest) != 0 {
		t.Errorf("left %v %v", ready, rest)
	}
	s.Source.Checksum = "sha256:" + hex.EncodeToString(sum[:])
	if _, err := w.build(w.context(), w.templates(), s, sealedBy); err != nil {
		t.Error(err)
	}
	w.configureStorage(lab.Storage, "rootdir,images")
	s.Source.FileStorage = lab.Storage
	_, err = w.build(w.context(), w.templates(), s, sealedBy)
	if err == nil || !strings.Contains(err.Error(), `takes no template files`) || !strings.Contains(err.Error(), "pvesm set") {
		t.Errorf("a storage without that content: %v", err)
	}
}

// An image is pulled by the node once; what its name means later is not looked up behind the builder's back.
func TestAnImageIsPulledByTheNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	var pulls atomic.Int32
	registry := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/library/debian/manifests/13" {
			http.NotFound(out, r)
			return
		}
		pulls.Add(1)
		_, _ = out.Write([]byte("{}"))
	}))
	t.Cleanup(registry.Close)
	host := strings.TrimPrefix(registry.URL, "http://")
	s := w.smallTemplate()
	s.Source = sandbox.TemplateSource{Image: host + "/library/nothing:13", FileStorage: "local"}
	if _, err := w.build(w.context(), w.templates(), s, sealedBy); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("an image that isn't there: %v", err)
	}
	if ready, rest := w.built(); len(ready)+len(rest) != 0 {
		t.Errorf("left %v %v", ready, rest)
	}
	s.Source.Image = host + "/library/debian:13"
	for n := range 2 {
		if _, err := w.build(w.context(), w.templates(), s, sealedBy); err != nil {
			t.Fatal(err)
		}
		if ready, rest := w.built(); len(ready) != n+1 || len(rest) != 0 {
			t.Errorf("built %v, left %v", ready, rest)
		}
	}
	if pulls.Load() != 1 {
		t.Errorf("pulled %d times", pulls.Load())
	}
}

// configureStorage sets what a storage may hold, as an administrator does.
func (w *world) configureStorage(name, content string) {
	w.t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(w.lab.CAPEM()))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPut, w.lab.Endpoint()+"/api2/json/storage/"+name, strings.NewReader("content="+url.QueryEscape(content)))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "PVEAPIToken="+w.lab.Token())
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := client.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		w.t.Fatalf("configure storage %s: %s", name, answer.Status)
	}
}

func TestWhatATokenMayNotDoIsSaidBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	s := w.smallTemplate()
	s.Config["features"] = "nesting=1,keyctl=1"
	_, err := w.templates().PlanTemplate(w.context(), s)
	if err == nil || !strings.Contains(err.Error(), "Only root@pam may set the feature keyctl") || !strings.Contains(err.Error(), "nesting = true alone") {
		t.Errorf("a token with keyctl: %v", err)
	}
	root := w.templates(func(c *pve.Config, _ *sandbox.Settings, _ *sandbox.Options) {
		c.Token, c.Username, c.Password = "", "root@pam", w.lab.RootPassword()
	})
	if _, err := w.build(w.context(), root, s, sealedBy); err != nil {
		t.Errorf("root with keyctl: %v", err)
	}
}
