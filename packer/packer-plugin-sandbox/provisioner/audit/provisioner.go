// Package audit is the provisioner sandbox-audit: it audits the system that is being built, with any builder.
package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hcldec"
	packersdk "github.com/hashicorp/packer-plugin-sdk/packer"
	"github.com/hashicorp/packer-plugin-sdk/template/config"
	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit/format"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/commrunner"
)

// Provisioner audits.
type Provisioner struct{ config Config }

var _ packersdk.Provisioner = (*Provisioner)(nil)

// ConfigSpec describes the configuration to Packer.
func (p *Provisioner) ConfigSpec() hcldec.ObjectSpec { return p.config.FlatMapstructure().HCL2Spec() }

// Prepare checks the configuration.
func (p *Provisioner) Prepare(raws ...any) error {
	c := &p.config
	err := config.Decode(c, &config.DecodeOpts{PluginType: "sandbox-audit", Interpolate: true, InterpolateContext: &c.ctx}, raws...)
	if err != nil {
		return err
	}
	var errs *packersdk.MultiError
	if c.MinimumGrade == "" {
		c.MinimumGrade = string(audit.GradeA)
	}
	if _, ok := audit.ParseGrade(c.MinimumGrade); !ok {
		errs = packersdk.MultiErrorAppend(errs, fmt.Errorf("minimum_grade: there is no grade %q; there are %v", c.MinimumGrade, audit.Grades()))
	}
	if c.Profile != "" && !slices.Contains(audit.Profiles(), audit.Profile(c.Profile)) {
		errs = packersdk.MultiErrorAppend(errs, fmt.Errorf("profile: there is no profile %q; there are %v", c.Profile, audit.Profiles()))
	}
	switch audit.Stage(c.Stage) {
	case "", audit.StageGuest, audit.StageTemplate:
	default:
		errs = packersdk.MultiErrorAppend(errs, fmt.Errorf("stage: %q is neither %q nor %q", c.Stage, audit.StageGuest, audit.StageTemplate))
	}
	for i, key := range c.AllowedKeys {
		if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key)); err != nil {
			errs = packersdk.MultiErrorAppend(errs, fmt.Errorf("allowed_keys[%d] is no public key: %w", i, err))
		}
	}
	if errs != nil && len(errs.Errors) > 0 {
		return errs
	}
	return nil
}

// Provision audits.
func (p *Provisioner) Provision(ctx context.Context, ui packersdk.Ui, comm packersdk.Communicator, data map[string]any) error {
	c := &p.config
	runner := commrunner.Runner{Comm: comm}
	if c.Sudo {
		runner.Prefix = "sudo -n"
	}
	o := audit.Options{
		Stage: audit.Stage(c.Stage), Profile: audit.Profile(c.Profile), AgentUser: c.AgentUser, AllowedKeys: c.AllowedKeys, Ports: c.Ports, Agents: c.Agents,
	}
	if key, ok := data["SSHPublicKey"].(string); ok && strings.TrimSpace(key) != "" && c.AllowedKeys != nil {
		o.AllowedKeys = append(slices.Clone(o.AllowedKeys), strings.TrimSpace(key)) // gone when the template is sealed
	}
	ui.Say("Auditing")
	report, err := audit.Run(ctx, audit.Target{Runner: runner}, o)
	if err != nil {
		return fmt.Errorf("unable to audit the system: %w", err)
	}
	Tell(ui, report)
	if err := p.write(report); err != nil {
		return err
	}
	if least, _ := audit.ParseGrade(c.MinimumGrade); !report.Grade.AtLeast(least) {
		return fmt.Errorf("the audit's grade is %s (%d points), and minimum_grade is %s: see to the findings above", report.Grade, report.Score, least)
	}
	return nil
}

// Tell shows a report: what failed with its remedy, and what could not be looked at.
func Tell(ui packersdk.Ui, r audit.Report) {
	for _, f := range r.Findings {
		switch f.Status {
		case audit.Failed:
			ui.Say(fmt.Sprintf("%s failed (%s): %s. %s. Remedy: %s", f.ID, f.Severity, f.Title, strings.Join(f.Evidence, "; "), f.Remedy))
		case audit.Unknown:
			ui.Say(fmt.Sprintf("%s unknown (%s): %s. %s", f.ID, f.Severity, f.Title, strings.Join(f.Evidence, "; ")))
		}
	}
	ui.Say(fmt.Sprintf("Grade %s, %d points: %d passed, %d failed, %d unknown", r.Grade, r.Score, r.Count(audit.Passed), r.Count(audit.Failed), r.Count(audit.Unknown)))
	for _, cap := range r.Caps {
		ui.Say(fmt.Sprintf("Capped at %s by %s", cap.Grade, cap.ID))
	}
}

func (p *Provisioner) write(r audit.Report) error {
	c := &p.config
	var errs []error
	for _, o := range []struct{ file, format string }{{c.JSONFile, format.JSON}, {c.SARIFFile, format.SARIF}, {c.JUnitFile, format.JUnit}} {
		if o.file == "" {
			continue
		}
		f, err := os.Create(o.file)
		if err == nil {
			err = errors.Join(format.Write(f, o.format, r, c.PackerBuildName), f.Close())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("write the report: %w", err))
		}
	}
	return errors.Join(errs...)
}
