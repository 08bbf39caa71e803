package sandbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// A hostile inside can refuse to answer for ever. What is known from outside is known all the same.
func TestAnInsideThatNeverAnswersLeavesItsChecksUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process(func(_ *pve.Config, _ *sandbox.Settings, o *sandbox.Options) { o.AuditPatience = 500 * time.Millisecond })
	s := w.create(p, spec("web-1"))
	w.within(p, s.Ref, "mkdir -p /usr/sbin && printf '#!/bin/sh\\nsleep 600\\n' >/usr/sbin/sshd && chmod 755 /usr/sbin/sshd && printf '#!/bin/sh\\nsleep 600\\n' >/usr/local/bin/find && chmod 755 /usr/local/bin/find")
	got, err := p.Audit(w.context(), sandbox.AuditSpec{Prior: sandbox.Prior{Ref: s.Ref}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range got.Findings {
		switch {
		case f.ID == "C1" && f.Status != audit.Passed:
			t.Errorf("C1: %s", f.Status)
		case f.ID == "G2" && (f.Status != audit.Unknown || !strings.Contains(strings.Join(f.Evidence, ""), "could not be looked at")):
			t.Errorf("G2: %s %v", f.Status, f.Evidence)
		}
	}
}
