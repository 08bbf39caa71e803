package agentrun

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun/code"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/workcopy"
)

// codeModel are the attributes about code and files that go in and come out.
type codeModel struct {
	Source     types.Object `tfsdk:"source"`
	Repo       types.Object `tfsdk:"repo"`
	SyncBack   types.String `tfsdk:"sync_back"`
	PatchFile  types.String `tfsdk:"patch_file"`
	Artifacts  types.List   `tfsdk:"artifacts"`
	Checkpoint types.Object `tfsdk:"checkpoint"`

	// credentials are the configuration's: no plan and no state has them.
	credentials *workcopy.Credentials
}

type sourceModel struct {
	Dir     types.String `tfsdk:"dir"`
	Exclude types.List   `tfsdk:"exclude"`
}

type repoModel struct {
	URL         types.String `tfsdk:"url"`
	Ref         types.String `tfsdk:"ref"`
	Depth       types.Int64  `tfsdk:"depth"`
	Namespace   types.String `tfsdk:"branch_namespace"`
	PushBranch  types.String `tfsdk:"push_branch"`
	Credentials types.Object `tfsdk:"credentials_wo"`
}

type credentialsModel struct {
	Username   types.String `tfsdk:"username"`
	Token      types.String `tfsdk:"token"`
	SSHKey     types.String `tfsdk:"ssh_key"`
	KnownHosts types.String `tfsdk:"known_hosts"`
}

type artifactModel struct {
	Path        types.String `tfsdk:"path"`
	Destination types.String `tfsdk:"destination"`
	MaxBytes    types.Int64  `tfsdk:"max_bytes"`
}

type checkpointModel struct {
	Before          types.Bool   `tfsdk:"before"`
	After           types.Bool   `tfsdk:"after"`
	Method          types.String `tfsdk:"method"`
	Restore         types.String `tfsdk:"restore"`
	RestoreTriggers types.Map    `tfsdk:"restore_triggers"`
}

// given says whether an object is there and known.
func given(v interface {
	IsNull() bool
	IsUnknown() bool
}) bool {
	return !v.IsNull() && !v.IsUnknown()
}

// object reads a nested attribute; what isn't there or not known yet stays zero.
func object[T any](ctx context.Context, v types.Object, diags *diag.Diagnostics) (out T) {
	if given(v) {
		diags.Append(v.As(ctx, &out, basetypes.ObjectAsOptions{})...)
	}
	return out
}

func list[T any](ctx context.Context, v types.List, diags *diag.Diagnostics) (out []T) {
	if given(v) {
		diags.Append(v.ElementsAs(ctx, &out, false)...)
	}
	return out
}

// configuredCredentials reads the write-only attribute, which only the configuration has.
func configuredCredentials(ctx context.Context, get func(context.Context, path.Path, any) diag.Diagnostics, diags *diag.Diagnostics) *workcopy.Credentials {
	var repo types.Object
	diags.Append(get(ctx, path.Root("repo"), &repo)...)
	r := object[repoModel](ctx, repo, diags)
	if !given(r.Credentials) {
		return nil
	}
	c := object[credentialsModel](ctx, r.Credentials, diags)
	return &workcopy.Credentials{Username: c.Username.ValueString(), Token: c.Token.ValueString(), SSHKey: c.SSHKey.ValueString(), KnownHosts: c.KnownHosts.ValueString()}
}

// stages adds to a specification what surrounds the run. It is called with the plan at create, and with the state when a
// later refresh collects.
func (m *codeModel) stages(ctx context.Context, s *agentrun.Spec, refresh bool, diags *diag.Diagnostics) {
	working := &code.Stage{SyncBack: code.SyncBack(m.SyncBack.ValueString()), PatchFile: m.PatchFile.ValueString(), Refresh: refresh}
	if given(m.Source) {
		source := object[sourceModel](ctx, m.Source, diags)
		working.Source = &workcopy.Source{Dir: filepath.FromSlash(source.Dir.ValueString()), Exclude: plain(list[types.String](ctx, source.Exclude, diags))}
		input(s, "source", []any{source.Dir.ValueString(), working.Source.Exclude})
	}
	if given(m.Repo) {
		r := object[repoModel](ctx, m.Repo, diags)
		working.Repo = &code.Repo{
			Repo:      workcopy.Repo{URL: r.URL.ValueString(), Ref: r.Ref.ValueString(), Depth: int(r.Depth.ValueInt64()), Credentials: m.credentials},
			Namespace: strings.Trim(r.Namespace.ValueString(), "/"), PushBranch: r.PushBranch.ValueString(),
		}
		input(s, "repo", []any{r.URL.ValueString(), r.Ref.ValueString(), r.Depth.ValueInt64(), r.Namespace.ValueString(), r.PushBranch.ValueString()})
	}
	if working.Source != nil || working.Repo != nil {
		if s.Dir == "" {
			s.Dir = code.DefaultDir(s.User)
		}
		input(s, "sync_back", working.SyncBack)
		s.Stages = append(s.Stages, working)
	}
	if given(m.Checkpoint) {
		c := object[checkpointModel](ctx, m.Checkpoint, diags)
		stage := &code.Checkpoint{AtBefore: c.Before.ValueBool(), AtAfter: c.After.ValueBool(), Method: code.Method(c.Method.ValueString())}
		input(s, "checkpoint", []any{stage.AtBefore, stage.AtAfter, stage.Method})
		s.Stages = append(s.Stages, stage)
	}
	if wanted := m.wanted(ctx, diags); len(wanted) > 0 {
		input(s, "artifacts", wanted)
		s.Stages = append(s.Stages, &code.Artifacts{Wanted: wanted})
	}
}

func (m *codeModel) wanted(ctx context.Context, diags *diag.Diagnostics) []workcopy.Wanted {
	var wanted []workcopy.Wanted
	for _, a := range list[artifactModel](ctx, m.Artifacts, diags) {
		wanted = append(wanted, workcopy.Wanted{Pattern: a.Path.ValueString(), Destination: a.Destination.ValueString(), MaxBytes: a.MaxBytes.ValueInt64()})
	}
	return wanted
}

// input makes a value part of what a run is found again by.
func input(s *agentrun.Spec, name string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // texts, numbers and lists of them
	}
	s.Inputs[name] = string(text)
}

// plain are the known texts of a list.
func plain(values []types.String) []string {
	var out []string
	for _, v := range values {
		if given(v) {
			out = append(out, v.ValueString())
		}
	}
	return out
}
