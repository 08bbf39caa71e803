package lxc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/packer-plugin-sdk/multistep"
	packersdk "github.com/hashicorp/packer-plugin-sdk/packer"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// StepVerify proves the template by a clone.
type StepVerify struct{}

// Run boots a clone twice and audits it.
func (s *StepVerify) Run(ctx context.Context, state multistep.StateBag) multistep.StepAction {
	w, ui := workOf(state)
	ui.Say("Proving it: a clone boots twice, with a host key and a machine id of its own")
	ctx, cancel := context.WithTimeout(ctx, w.config.VerifyTimeout)
	defer cancel()
	spec := sandbox.VerifySpec{
		Before:  w.before,
		Inspect: func(ctx context.Context, clone sandbox.VerifyClone) error { return w.audit(ctx, ui, clone) },
	}
	if w.node != nil && (w.config.Comm.Type == pct || !w.canLogIn()) {
		spec.Enter = w.node.enter
	}
	if spec.Enter == nil && !w.canLogIn() {
		return halt(state, ui, errors.New("nobody can log in to the clone that is to prove the template: set provider_private_key_file (or SANDBOX_GUEST_SSH_PRIVATE_KEY), the node's SSH, or skip_verify = true"))
	}
	_, err := w.build.Verify(ctx, spec)
	w.tell(ui)
	if err != nil {
		return halt(state, ui, err)
	}
	return multistep.ActionContinue
}

// Cleanup does nothing: the clone is gone when Run returns.
func (s *StepVerify) Cleanup(multistep.StateBag) {}

// canLogIn says whether there is a key to log in to clones with.
func (w *work) canLogIn() bool {
	g, err := w.config.login().Guest()
	return err == nil && (g.Auth.PrivateKey != "" || g.Auth.PrivateKeyFile != "" || g.Auth.Agent)
}

// audit grades the running clone; the grade goes into the template's marker.
func (w *work) audit(ctx context.Context, ui packersdk.Ui, clone sandbox.VerifyClone) error {
	o := audit.Options{Stage: audit.StageGuest, AllowedKeys: w.config.ProviderPublicKeys, ManifestDigest: w.sealed.summary.Digest}
	report, err := audit.Run(ctx, audit.Target{Container: sandbox.AuditContainer(clone.Config), Runner: clone.Runner}, o)
	if err != nil {
		return fmt.Errorf("audit the clone: %w", err)
	}
	w.sealed.summary.Grade, w.sealed.summary.Score = string(report.Grade), report.Score
	least, wanted := audit.ParseGrade(w.config.MinimumGrade)
	if wanted {
		tell(ui, report)
	}
	ui.Say(fmt.Sprintf("Audit of the clone: grade %s, %d points; %d passed, %d failed, %d unknown",
		report.Grade, report.Score, report.Count(audit.Passed), report.Count(audit.Failed), report.Count(audit.Unknown)))
	if wanted && !report.Grade.AtLeast(least) {
		return fmt.Errorf("the audit's grade is %s (%d points), and minimum_grade is %s: see to the findings above, most of which sandbox-harden does", report.Grade, report.Score, least)
	}
	return nil
}

// tell names what failed, and what could not be looked at.
func tell(ui packersdk.Ui, r audit.Report) {
	for _, f := range r.Findings {
		if f.Status == audit.Failed || f.Status == audit.Unknown {
			ui.Say(fmt.Sprintf("%s %s (%s): %s. %s. Remedy: %s", f.ID, f.Status, f.Severity, f.Title, strings.Join(f.Evidence, "; "), f.Remedy))
		}
	}
}
