package agentrun

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun/code"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/workcopy"
)

var _ resource.ResourceWithValidateConfig = (*runResource)(nil)

// ValidateConfig refuses code that can't go in or out as configured.
func (r *runResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	diags := &resp.Diagnostics
	m.validateSync(diags)
	m.validateRepo(ctx, diags)
	for i, a := range list[artifactModel](ctx, m.Artifacts, diags) {
		if !given(a.Path) {
			continue
		}
		if err := workcopy.CheckPattern(a.Path.ValueString()); err != nil {
			diags.AddAttributeError(path.Root("artifacts").AtListIndex(i).AtName("path"), "Invalid artifact", err.Error()+". Name a path below working_dir.")
		}
	}
	m.validateCheckpoint(ctx, diags)
}

func (m *model) validateSync(diags *diag.Diagnostics) {
	at := path.Root("sync_back")
	switch sync := code.SyncBack(m.SyncBack.ValueString()); {
	case sync == code.SyncApply && m.Source.IsNull():
		diags.AddAttributeError(at, "Nothing to apply to", "apply makes the changes in source.dir, and there is no source. With repo, use push_branch, or sync_back = \"patch\".")
	case sync == code.SyncApply && m.Detached.ValueBool():
		diags.AddAttributeError(at, "A detached run applies nothing", "Its result is collected by a refresh, which changes no folder. Leave detached out, or use sync_back = \"patch\".")
	case sync == code.SyncPatch && m.Source.IsNull() && m.Repo.IsNull():
		diags.AddAttributeError(at, "No code to compare", "A patch is made of what goes in by source or repo, and there is neither.")
	}
}

func (m *model) validateRepo(ctx context.Context, diags *diag.Diagnostics) {
	if !given(m.Repo) {
		return
	}
	at := path.Root("repo")
	r := object[repoModel](ctx, m.Repo, diags)
	if given(r.URL) && given(m.Name) || m.Name.IsNull() {
		name := m.Name.ValueString()
		if name == "" {
			name = defaultName
		}
		repo := workcopy.Repo{URL: r.URL.ValueString(), Ref: r.Ref.ValueString(), Branch: workcopy.WorkBranch(r.Namespace.ValueString(), name, 100000)}
		if c := object[credentialsModel](ctx, r.Credentials, diags); given(r.Credentials) && !c.Token.IsUnknown() && !c.SSHKey.IsUnknown() && !c.KnownHosts.IsUnknown() {
			repo.Credentials = &workcopy.Credentials{Username: c.Username.ValueString(), Token: c.Token.ValueString(), SSHKey: c.SSHKey.ValueString(), KnownHosts: c.KnownHosts.ValueString()}
		}
		if err := repo.Check(); err != nil && given(r.URL) {
			diags.AddAttributeError(at, "Invalid repository", err.Error())
		}
	}
	if !given(r.PushBranch) || r.Namespace.IsUnknown() {
		return
	}
	branch := r.PushBranch.ValueString()
	switch err := workcopy.CheckBranch(branch); {
	case err != nil:
		diags.AddAttributeError(at.AtName("push_branch"), "Invalid branch", err.Error())
	case !workcopy.InNamespace(branch, r.Namespace.ValueString()):
		diags.AddAttributeError(at.AtName("push_branch"), "Branch outside of the namespace",
			fmt.Sprintf("Pushes go only to branches in branch_namespace, and %q isn't in %q. Set branch_namespace = \"agents\" and push_branch = \"agents/…\", for example.", branch, r.Namespace.ValueString()))
	case strings.HasPrefix(r.URL.ValueString(), "file:"):
		diags.AddAttributeError(at.AtName("push_branch"), "A path of the container can't be pushed to", "The machine that applies pushes, and a file:// address means another repository here. Use https:// or ssh://.")
	case m.Detached.ValueBool():
		diags.AddAttributeError(at.AtName("push_branch"), "A detached run pushes nothing", "Its result is collected by a refresh, which has no credentials and changes no repository. Leave detached out, or use sync_back = \"patch\".")
	}
}

func (m *model) validateCheckpoint(ctx context.Context, diags *diag.Diagnostics) {
	if !given(m.Checkpoint) {
		return
	}
	at := path.Root("checkpoint")
	c := object[checkpointModel](ctx, m.Checkpoint, diags)
	known := !c.Before.IsUnknown() && !c.After.IsUnknown()
	side := map[string]types.Bool{code.BeforeRun: c.Before, code.AfterRun: c.After}[c.Restore.ValueString()]
	switch {
	case known && !c.Before.ValueBool() && !c.After.ValueBool():
		diags.AddAttributeError(at, "A checkpoint at no time", "Set before = true, after = true, or both.")
	case given(c.Restore) && known && !side.ValueBool():
		diags.AddAttributeError(at.AtName("restore"), "No such checkpoint", fmt.Sprintf("restore names the checkpoint %s the run, which isn't made: set %[1]s = true.", c.Restore.ValueString()))
	case given(c.Restore) && c.Method.ValueString() == string(code.Snapshot):
		diags.AddAttributeError(at.AtName("restore"), "A snapshot is restored by sandbox_rollback", "restore goes back to copies. Use method = \"copy\", or a sandbox_rollback of the snapshot that the report names.")
	case c.Restore.IsNull() && !c.RestoreTriggers.IsNull():
		diags.AddAttributeError(at.AtName("restore_triggers"), "Nothing to restore", "Say by restore which checkpoint the triggers go back to: before or after.")
	}
}
