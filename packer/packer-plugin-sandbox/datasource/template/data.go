// Package template is the data source sandbox-template: the newest template of a name or with tags.
package template

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/packer-plugin-sdk/hcl2helper"
	packersdk "github.com/hashicorp/packer-plugin-sdk/packer"
	"github.com/hashicorp/packer-plugin-sdk/template/config"
	"github.com/zclconf/go-cty/cty"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// Datasource finds templates.
type Datasource struct{ config Config }

var _ packersdk.Datasource = (*Datasource)(nil)

// ConfigSpec describes the configuration to Packer.
func (d *Datasource) ConfigSpec() hcldec.ObjectSpec { return d.config.FlatMapstructure().HCL2Spec() }

// OutputSpec describes what is found.
func (d *Datasource) OutputSpec() hcldec.ObjectSpec {
	return (&DatasourceOutput{}).FlatMapstructure().HCL2Spec()
}

// Configure checks the configuration.
func (d *Datasource) Configure(raws ...any) error {
	if err := config.Decode(&d.config, nil, raws...); err != nil {
		return err
	}
	var errs *packersdk.MultiError
	_, problems := d.config.Config.Prepare() //nolint:staticcheck // whose is meant
	for _, e := range problems {
		errs = packersdk.MultiErrorAppend(errs, e)
	}
	if d.config.Name == "" && len(d.config.Tags) == 0 {
		errs = packersdk.MultiErrorAppend(errs, fmt.Errorf("name and tags are missing: say which template is meant by at least one of them"))
	}
	if errs != nil && len(errs.Errors) > 0 {
		return errs
	}
	return nil
}

// Execute asks the server.
func (d *Datasource) Execute() (cty.Value, error) {
	none := cty.NullVal(cty.EmptyObject)
	client, err := d.config.Client()
	if err != nil {
		return none, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), d.config.TaskTimeout)
	defer cancel()
	filter := sandbox.TemplateFilter{Name: d.config.Name, Tags: d.config.Tags, Node: d.config.Node}
	if d.config.OwnedOnly {
		filter.Owner = d.config.Owner
	}
	found, err := sandbox.FindTemplates(ctx, client, filter)
	if err != nil {
		return none, err
	}
	switch {
	case len(found) == 0:
		return none, fmt.Errorf("the server has no template that matches %s, or the identity can't see it (VM.Audit)", filter)
	case len(found) > 1 && !d.config.Newest:
		var ids []string
		for _, t := range found {
			ids = append(ids, fmt.Sprint(t.VMID))
		}
		return none, fmt.Errorf("%d templates match %s (%s): say more, or newest = true", len(found), filter, strings.Join(ids, ", "))
	}
	return hcl2helper.HCL2ValueFromConfig(output(found[0]), d.OutputSpec()), nil
}

func output(t sandbox.Template) DatasourceOutput {
	out := DatasourceOutput{VMID: t.VMID, Node: t.Node, Name: t.Name, Tags: t.Tags, Agents: map[string]string{}}
	if s := t.Summary; s != nil {
		out.BuildID, out.Source, out.OS, out.Grade, out.Score, out.Agents = s.BuildID, s.Source, s.OS, s.Grade, s.Score, s.Agents
		if !s.BuiltAt.IsZero() {
			out.BuiltAt = s.BuiltAt.Format(time.RFC3339)
		}
	}
	return out
}
