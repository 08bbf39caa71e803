// Package exec is the resource sandbox_exec: a command that runs once inside a sandbox.
package exec

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var _ resource.ResourceWithConfigure = (*execResource)(nil)

const (
	defaultTimeout = 10 * time.Minute
	// outputLimit is what is kept of each output stream, in bytes: a state is no log.
	outputLimit = 64 << 10

	failOnFailure   = "error"
	recordOnFailure = "record"
)

const rerun = " A change runs the command again."

type execResource struct{ base.ResourceBase }

// NewResource returns sandbox_exec.
func NewResource() resource.Resource { return &execResource{} }

func (r *execResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_exec"
}

func (r *execResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	rerunText := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	keptText := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Runs a command inside a sandbox, once: at its creation, and again when the container, the command, its input or a trigger changes. A refresh never runs it, " +
			"and a destroy does nothing in the container. Output, arguments and environment stand in the state: nothing secret belongs there.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "`container_id`, a slash and the time of the run.",
				Computed:            true,
				PlanModifiers:       keptText,
			},
			"container_id": schema.StringAttribute{
				MarkdownDescription: base.ContainerIDDescription + rerun,
				Required:            true,
				Validators:          base.ContainerIDValidators(),
				PlanModifiers:       rerunText,
			},
			"host_key": schema.StringAttribute{
				MarkdownDescription: base.HostKeyDescription + " A change touches nothing.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"command": schema.ListAttribute{
				MarkdownDescription: "Program and arguments, run without a shell: `[\"git\", \"status\"]`. The program is looked for in the `PATH` of the login. This or `script` is required." + rerun,
				ElementType:         types.StringType,
				Optional:            true,
				Validators: []validator.List{
					listvalidator.SizeAtLeast(1),
					listvalidator.ExactlyOneOf(path.MatchRoot("command"), path.MatchRoot("script")),
				},
				PlanModifiers: []planmodifier.List{listplanmodifier.RequiresReplace()},
			},
			"script": schema.StringAttribute{
				MarkdownDescription: "Shell code, run by the container's `sh`; begin with `set -e` to stop at the first failure." + rerun,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
				PlanModifiers:       rerunText,
			},
			"environment": schema.MapAttribute{
				MarkdownDescription: "Variables for the command, beside those of the login. They travel over SSH's standard input and stand in no command line. Default none." + rerun,
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.Map{mapvalidator.KeysAre(variableName())},
				PlanModifiers:       []planmodifier.Map{mapplanmodifier.RequiresReplace()},
			},
			"stdin": schema.StringAttribute{
				MarkdownDescription: "Standard input of the command. Default empty." + rerun,
				Optional:            true,
				PlanModifiers:       rerunText,
			},
			"working_dir": schema.StringAttribute{
				MarkdownDescription: "Absolute path to run in. Default the login user's home." + rerun,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.RegexMatches(absolutePath, "must be an absolute path")},
				PlanModifiers:       rerunText,
			},
			"triggers": schema.MapAttribute{
				MarkdownDescription: "Any values; a change of one runs the command again.",
				ElementType:         types.StringType,
				Optional:            true,
				PlanModifiers:       []planmodifier.Map{mapplanmodifier.RequiresReplace()},
			},
			"timeout": schema.StringAttribute{
				MarkdownDescription: fmt.Sprintf("How long the command may run, as a Go duration such as `\"90s\"`. Default `%s`. When time is up it gets TERM and then KILL, and the run is an error. A change touches nothing.", base.ShortDuration(defaultTimeout)),
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(base.ShortDuration(defaultTimeout)),
				Validators:          []validator.String{base.Duration()},
			},
			"on_failure": schema.StringAttribute{
				MarkdownDescription: "What an exit code other than 0 does: `error` (default) fails the apply, and the next one runs the command again; `record` keeps the exit code. A change touches nothing.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(failOnFailure),
				Validators:          []validator.String{stringvalidator.OneOf(failOnFailure, recordOnFailure)},
			},
			"exit_code": schema.Int64Attribute{
				MarkdownDescription: "Exit code of the command; 128 + n when signal n ended it.",
				Computed:            true,
				PlanModifiers:       []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
			},
			"stdout": schema.StringAttribute{
				MarkdownDescription: "Standard output, its last 64 KiB; bytes that aren't UTF-8 are replaced.",
				Computed:            true,
				PlanModifiers:       keptText,
			},
			"stderr": schema.StringAttribute{
				MarkdownDescription: "Standard error, its last 64 KiB; bytes that aren't UTF-8 are replaced.",
				Computed:            true,
				PlanModifiers:       keptText,
			},
		},
	}
}

type model struct {
	ID          types.String `tfsdk:"id"`
	ContainerID types.String `tfsdk:"container_id"`
	HostKey     types.String `tfsdk:"host_key"`
	Command     types.List   `tfsdk:"command"`
	Script      types.String `tfsdk:"script"`
	Environment types.Map    `tfsdk:"environment"`
	Stdin       types.String `tfsdk:"stdin"`
	WorkingDir  types.String `tfsdk:"working_dir"`
	Triggers    types.Map    `tfsdk:"triggers"`
	Timeout     types.String `tfsdk:"timeout"`
	OnFailure   types.String `tfsdk:"on_failure"`
	ExitCode    types.Int64  `tfsdk:"exit_code"`
	Stdout      types.String `tfsdk:"stdout"`
	Stderr      types.String `tfsdk:"stderr"`
}

func (r *execResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	thing := "command in container " + plan.ContainerID.ValueString()
	inside, err := base.Inside(plan.ContainerID, plan.HostKey)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("container_id"), "Invalid container", err.Error())
		return
	}
	limit, err := time.ParseDuration(plan.Timeout.ValueString())
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("timeout"), "Invalid duration", err.Error())
		return
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	result, _, err := manager.Exec(limited, inside, plan.command(ctx, &resp.Diagnostics))
	if err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			resp.Diagnostics.AddAttributeError(path.Root("timeout"), "Unable to run "+thing,
				fmt.Sprintf("It didn't end within %s and was told to stop: %v.%s\n\nRaise timeout, or see what it waits for.\n\nError code %s.", plan.Timeout.ValueString(), err, output(result), sandbox.CodeOf(err)))
			return
		}
		base.AddError(&resp.Diagnostics, "run", thing, err)
		return
	}
	plan.ID = types.StringValue(plan.ContainerID.ValueString() + "/" + r.Data.Now().UTC().Format(time.RFC3339Nano))
	plan.ExitCode = types.Int64Value(int64(result.ExitCode))
	plan.Stdout = types.StringValue(clean(result.Stdout))
	plan.Stderr = types.StringValue(clean(result.Stderr))
	if result.ExitCode != 0 && plan.OnFailure.ValueString() == failOnFailure {
		// The state is saved all the same, tainted, so that the output can be looked at.
		base.AddCoded(&resp.Diagnostics, fmt.Sprintf("The %s failed", thing),
			fmt.Sprintf("It ended with exit code %d.%s\n\nThe next apply runs it again. With on_failure = \"record\" the exit code is kept instead.", result.ExitCode, output(result)), sandbox.CodeCommandFailed)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// Read does nothing: what has run has run, and looking again can't tell whether it would end the same way.
func (r *execResource) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

// Update is only called for attributes that matter at the next run.
func (r *execResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}

// Delete does nothing: what a command has done can't be undone by the provider.
func (r *execResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

// output is the end of what a command that went wrong has said, for a diagnostic.
func output(result sandbox.CommandResult) string {
	const lines = 20
	var b strings.Builder
	for _, stream := range []struct {
		name string
		text []byte
	}{{"standard output", result.Stdout}, {"standard error", result.Stderr}} {
		text := strings.TrimSpace(clean(stream.text))
		if text == "" {
			continue
		}
		all := strings.Split(text, "\n")
		what := "Its " + stream.name
		if len(all) > lines {
			all = all[len(all)-lines:]
			what = fmt.Sprintf("The last %d lines of its %s", lines, stream.name)
		}
		fmt.Fprintf(&b, "\n\n%s:\n%s", what, strings.Join(all, "\n"))
	}
	return b.String()
}

// clean makes output fit for a state, which holds UTF-8 only.
func clean(text []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(text), "\uFFFD"), "\x00", "\uFFFD")
}
