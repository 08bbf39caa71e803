package sandbox_test

import (
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

func TestRequestsStayWithinTheirBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	var s sandbox.Sandbox
	// The plan, in a process of its own as Terraform has it, then the creation.
	if n, list := w.requests(func() {
		if _, err := w.process().CheckServer(w.context(), spec("one"), nil); err != nil {
			t.Error(err)
		}
		s = w.create(p, spec("one"))
	}); n > 9 { // the plan's own: the list, and the template for the policy
		t.Errorf("plan and create: %d requests, want at most 9\n%s", n, strings.Join(list, "\n"))
	}
	// A later process refreshes, then destroys.
	p = w.process()
	if n, list := w.requests(func() {
		if _, err := p.Read(w.context(), sandbox.Prior{Ref: s.Ref}); err != nil {
			t.Error(err)
		}
		if _, err := p.Destroy(w.context(), s.Ref, ""); err != nil {
			t.Error(err)
		}
	}); n > 6 {
		t.Errorf("refresh and destroy: %d requests, want at most 6\n%s", n, strings.Join(list, "\n"))
	}
	var all []sandbox.Sandbox
	p = w.process()
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(all, w.create(p, spec(name)))
	}
	p = w.process()
	if n, list := w.requests(func() {
		for _, s := range all {
			if _, err := p.Read(w.context(), sandbox.Prior{Ref: s.Ref}); err != nil {
				t.Error(err)
			}
		}
	}); n > len(all)+1+1 {
		t.Errorf("refresh of %d: %d requests\n%s", len(all), n, strings.Join(list, "\n"))
	}
	// Nothing differs: nothing is written.
	p = w.process()
	_, list := w.requests(func() {
		if _, err := p.Update(w.context(), sandbox.Prior{Ref: all[0].Ref}, spec("a"), spec("a")); err != nil {
			t.Error(err)
		}
	})
	for _, r := range list {
		if !strings.HasPrefix(r, "GET ") {
			t.Errorf("an update of nothing sent %s", r)
		}
	}
}

func TestFleetWithOneHostnameIsNotReadOverAndOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	for range 4 {
		w.create(w.process(), spec("same"))
	}
	w.calm()
	p := w.process()
	w.create(p, spec("same"))
	if n, list := w.requests(func() { w.create(p, spec("same")) }); n > 8 {
		t.Errorf("%d requests\n%s", n, strings.Join(list, "\n"))
	}
}
