package container

import (
	"context"
	"regexp"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// workspaceModel is one element of the attribute workspace.
type workspaceModel struct {
	ID            types.String `tfsdk:"id"`
	Path          types.String `tfsdk:"path"`
	Wait          types.String `tfsdk:"wait"`
	DropSnapshots types.Bool   `tfsdk:"drop_snapshots"`
}

var workspaceTypes = map[string]attr.Type{
	"id": types.StringType, "path": types.StringType, "wait": types.StringType, "drop_snapshots": types.BoolType,
}

var workspaceType = types.ObjectType{AttrTypes: workspaceTypes}

var workspaceID = regexp.MustCompile(`^[1-9][0-9]{2,8}$`)

func workspaceAttribute() schema.Attribute {
	return schema.ListNestedAttribute{
		MarkdownDescription: "Workspaces that the sandbox has, at most " + strconv.Itoa(sandbox.MaxWorkspaces) + ". One that is added is mounted at once, also while the container runs. One that is taken out goes back to its holder: " +
			"a running container keeps a volume until it stops, so with `restart_when_needed` it is stopped, lets go and is started again; without, the detach is pending (`posture.pending`) and the apply warns. " +
			"Moving a workspace from one sandbox to another is a change of both in one apply: the new one waits for the old one. " +
			"Before a destroy every workspace is handed back; a destroy is refused if that can't be done. Default none.",
		Optional:   true,
		Validators: []validator.List{listvalidator.SizeAtMost(sandbox.MaxWorkspaces)},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "Workspace, by the `id` of its `sandbox_workspace`. It must be on the sandbox's node. A change detaches the one and attaches the other in place.",
				Required:            true,
				Validators:          []validator.String{stringvalidator.RegexMatches(workspaceID, "must be the id of a workspace, such as sandbox_workspace.example.id")},
			},
			"path": schema.StringAttribute{
				MarkdownDescription: "Absolute path to mount it at, made if it isn't there, such as `/workspace`. The mount point is given to the account `" + sandbox.AgentUser + "`, where the template has it, mode 0755." + restart,
				Required:            true,
			},
			"wait": schema.StringAttribute{
				MarkdownDescription: "How long to wait for another sandbox to let go of it, as a Go duration such as `\"2m\"`. Default `" + base.ShortDuration(sandbox.DefaultWorkspaceWait) + "`. When time is up the error says who has it." + local,
				Optional:            true,
				Validators:          []validator.String{base.Duration()},
			},
			"drop_snapshots": schema.BoolAttribute{
				MarkdownDescription: "Delete the workspace's snapshots when it is attached: a volume that has some can't be handed over. With `false` (default) the apply fails and names them." + local,
				Optional:            true,
			},
		}},
	}
}

// workspaceSpec is what the model asks for. Elements with an unknown id are left out: nothing can be said of them yet.
func (m *Model) workspaceSpec(ctx context.Context, diags *diag.Diagnostics) []sandbox.Attachment {
	if !value.Known(m.Workspace) {
		return nil
	}
	var list []workspaceModel
	diags.Append(m.Workspace.ElementsAs(ctx, &list, true)...)
	var out []sandbox.Attachment
	for _, w := range list {
		id, err := strconv.Atoi(w.ID.ValueString())
		if err != nil {
			continue
		}
		wait, _ := time.ParseDuration(w.Wait.ValueString()) // the validator has seen it
		out = append(out, sandbox.Attachment{Workspace: id, Path: w.Path.ValueString(), Wait: wait, DropSnapshots: w.DropSnapshots.ValueBool()})
	}
	return out
}

// fillWorkspaces takes over which workspaces the sandbox has: those of the model in its order, then others. What only
// the configuration can say stays.
func (m *Model) fillWorkspaces(list []sandbox.Attached) {
	var elements []attr.Value
	done := map[int]bool{}
	for _, element := range m.Workspace.Elements() {
		before, ok := element.(types.Object)
		if !ok {
			continue
		}
		text, _ := before.Attributes()["id"].(types.String)
		for _, w := range list {
			if strconv.Itoa(w.Workspace) != text.ValueString() || done[w.Workspace] {
				continue
			}
			attributes := before.Attributes()
			attributes["path"] = types.StringValue(w.Path)
			elements = append(elements, types.ObjectValueMust(workspaceTypes, attributes))
			done[w.Workspace] = true
		}
	}
	for _, w := range list {
		if !done[w.Workspace] {
			elements = append(elements, types.ObjectValueMust(workspaceTypes, map[string]attr.Value{
				"id": types.StringValue(strconv.Itoa(w.Workspace)), "path": types.StringValue(w.Path),
				"wait": types.StringNull(), "drop_snapshots": types.BoolNull(),
			}))
		}
	}
	if len(elements) == 0 && !value.Known(m.Workspace) {
		m.Workspace = types.ListNull(workspaceType)
		return
	}
	m.Workspace = types.ListValueMust(workspaceType, elements)
}

// attached is what the state remembers, for checks of a change.
func (m *Model) attached(ctx context.Context, diags *diag.Diagnostics) []sandbox.Attached {
	var out []sandbox.Attached
	for _, a := range m.workspaceSpec(ctx, diags) {
		out = append(out, sandbox.Attached{Workspace: a.Workspace, Path: a.Path})
	}
	return out
}
