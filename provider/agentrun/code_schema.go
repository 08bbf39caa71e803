package agentrun

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/objectvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun/code"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/workcopy"
)

// codeAttributes are the schema of codeModel.
func codeAttributes() map[string]schema.Attribute {
	notEmpty := []validator.String{stringvalidator.LengthAtLeast(1)}
	return map[string]schema.Attribute{
		"source": schema.SingleNestedAttribute{
			MarkdownDescription: "A folder of the machine that applies, copied into `working_dir` before the run starts (default `/home/USER/work`), which must be missing, empty, or filled by an earlier run: then it is emptied first, but for `.checkpoints`. " +
				"Left out are what the folder's and its repository's `.gitignore` files say, `.git`, and what is made anew from the rest (`node_modules`, `.venv`, caches) or is Terraform's state. " +
				"Another content of the folder starts no new run; put its hash into `triggers` for that. At most one of `source` and `repo`." + again,
			Optional:      true,
			Validators:    []validator.Object{objectvalidator.ConflictsWith(path.MatchRoot("repo"))},
			PlanModifiers: []planmodifier.Object{objectplanmodifier.RequiresReplace()},
			Attributes: map[string]schema.Attribute{
				"dir": schema.StringAttribute{
					MarkdownDescription: "The folder's path. Links in it may lead to places in it only.",
					Required:            true,
					Validators:          notEmpty,
				},
				"exclude": schema.ListAttribute{
					MarkdownDescription: "More patterns to leave out, as in `.gitignore`. They decide before the files do; `!node_modules/` brings back what is left out by default. Default none.",
					ElementType:         types.StringType,
					Optional:            true,
					Validators:          []validator.List{listvalidator.ValueStringsAre(notEmpty...)},
				},
			},
		},
		"repo": schema.SingleNestedAttribute{
			MarkdownDescription: "A git repository, cloned into `working_dir` (as `source` is copied) inside the container, on a new branch `NAME#sbx-VMID`. The template must have git. At most one of `source` and `repo`." + again,
			Optional:            true,
			PlanModifiers:       []planmodifier.Object{objectplanmodifier.RequiresReplace()},
			Attributes: map[string]schema.Attribute{
				"url": schema.StringAttribute{
					MarkdownDescription: "Its address: `https://…`, `ssh://…`, `user@host:path`, or `file://…` for a path of the container. No password belongs in it.",
					Required:            true,
					Validators:          notEmpty,
				},
				"ref": schema.StringAttribute{
					MarkdownDescription: "Branch, tag or commit to begin at. Default: the server's default branch.",
					Optional:            true,
					Validators:          notEmpty,
				},
				"depth": schema.Int64Attribute{
					MarkdownDescription: "How many commits of history come along. Default all.",
					Optional:            true,
					Validators:          []validator.Int64{int64validator.AtLeast(1)},
				},
				"branch_namespace": schema.StringAttribute{
					MarkdownDescription: "What the names of the run's branches begin with, before a slash: with `agents` the run works on `agents/NAME#sbx-VMID`. Default none.",
					Optional:            true,
					Validators:          notEmpty,
				},
				"push_branch": schema.StringAttribute{
					MarkdownDescription: "Branch to push the changes to, in `branch_namespace`. The machine that applies does it, from a clone of its own that the container has no part in, in one commit; it needs git. " +
						"A branch that holds other commits is not overwritten. When a push fails, the changes are in `patch_file`, and the apply warns. Default none.",
					Optional:   true,
					Validators: notEmpty,
				},
				"credentials_wo": schema.SingleNestedAttribute{
					MarkdownDescription: "What the repository is opened with, to clone in the container and to push from here: `token`, or `ssh_key` with `known_hosts`. It stands in no state and no plan, in no command line, no git configuration and on no disk; in the container it lies in memory while git clones, and is gone before the run starts.",
					Optional:            true,
					WriteOnly:           true,
					Attributes: map[string]schema.Attribute{
						"username":    schema.StringAttribute{MarkdownDescription: "User name that goes with the token. Default `x-access-token`.", Optional: true, WriteOnly: true},
						"token":       schema.StringAttribute{MarkdownDescription: "Token or password, for https.", Optional: true, WriteOnly: true},
						"ssh_key":     schema.StringAttribute{MarkdownDescription: "Private key in OpenSSH's format, without a passphrase.", Optional: true, WriteOnly: true},
						"known_hosts": schema.StringAttribute{MarkdownDescription: "The server's lines of a `known_hosts` file.", Optional: true, WriteOnly: true},
					},
				},
			},
		},
		"sync_back": schema.StringAttribute{
			MarkdownDescription: "What becomes of the run's changes here, beside their count in `diff_stat` and `report`: `none` (default), `patch`: they are written to `patch_file`; `apply`: they are made in `source.dir`. " +
				"For `apply` the folder's repository must have no uncommitted changes when the run starts, and each path must still be as it was sent when it ends: else nothing is applied, the changes are in `patch_file`, and the apply warns. " +
				"Changes never reach `.git`, links never lead out of the folder, and changes that hold one of the run's secrets stay in the container. A refresh that completes a run applies and pushes nothing; it writes the patch." + again,
			Optional:      true,
			Computed:      true,
			Default:       stringdefault.StaticString(string(code.SyncNone)),
			Validators:    []validator.String{stringvalidator.OneOf(string(code.SyncNone), string(code.SyncPatch), string(code.SyncApply))},
			PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
		},
		"patch_file": schema.StringAttribute{
			MarkdownDescription: "File on the machine that applies for the run's changes, in the form that `git apply` takes. Written where `sync_back` is `patch`, or where applying or pushing failed. Default `sandbox-VMID-NAME.patch` in the current folder." + touches,
			Optional:            true,
			Validators:          notEmpty,
		},
		"artifacts": schema.ListNestedAttribute{
			MarkdownDescription: "Files of `working_dir` to bring out when the run has ended, however it did. Links, devices, pipes and setuid files stay in the container, as does what is over the limit; the apply warns. They stay here when the run is destroyed." + again,
			Optional:            true,
			PlanModifiers:       []planmodifier.List{listplanmodifier.RequiresReplace()},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"path": schema.StringAttribute{
					MarkdownDescription: "Path below `working_dir`, with `*`, `?`, `[a-z]` and `**` as in `.gitignore`; a folder's name stands for all that is in it.",
					Required:            true,
					Validators:          notEmpty,
				},
				"destination": schema.StringAttribute{
					MarkdownDescription: "Path on the machine that applies: a folder, in which paths are as in `working_dir`; the file's own path where `path` is one file's and no slash at the end, and no folder that is there, says otherwise.",
					Required:            true,
					Validators:          notEmpty,
				},
				"max_bytes": schema.Int64Attribute{
					MarkdownDescription: fmt.Sprintf("Most bytes of all its files together. Default %d (100 MiB).", workcopy.DefaultArtifactBytes),
					Optional:            true,
					Validators:          []validator.Int64{int64validator.AtLeast(1)},
				},
			}},
		},
		"checkpoint": checkpointAttribute(),
	}
}

func checkpointAttribute() schema.Attribute {
	anew := []planmodifier.Bool{boolplanmodifier.RequiresReplace()}
	sides := stringvalidator.OneOf(code.BeforeRun, code.AfterRun)
	return schema.SingleNestedAttribute{
		MarkdownDescription: "States to go back to, made before the run starts and after it has ended. The next run of the same `name` replaces them; they stay when the run is destroyed.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"before": schema.BoolAttribute{MarkdownDescription: "Make one before the run, with its code in place. Default `false`." + again, Optional: true, PlanModifiers: anew},
			"after":  schema.BoolAttribute{MarkdownDescription: "Make one after the run. Default `false`." + again, Optional: true, PlanModifiers: anew},
			"method": schema.StringAttribute{
				MarkdownDescription: "`snapshot`: of the whole container, named `run-NAME-before` and `run-NAME-after`; `sandbox_rollback` goes back to it. `copy`: of `working_dir`, in its `.checkpoints`; by reflink where the file system can. " +
					"Default: `copy` where a workspace is attached, which a snapshot would pin, else `snapshot`." + again,
				Optional:      true,
				Validators:    []validator.String{stringvalidator.OneOf(string(code.Snapshot), string(code.Copy))},
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"restore": schema.StringAttribute{
				MarkdownDescription: "The copy that a change of `restore_triggers` goes back to: `before` or `after`. A change of this alone touches nothing.",
				Optional:            true,
				Validators:          []validator.String{sides, stringvalidator.AlsoRequires(path.MatchRelative().AtParent().AtName("restore_triggers"))},
			},
			"restore_triggers": schema.MapAttribute{
				MarkdownDescription: "Any values; a change of one makes `working_dir` what it was at the checkpoint that `restore` names, in place.",
				ElementType:         types.StringType,
				Optional:            true,
			},
		},
	}
}
