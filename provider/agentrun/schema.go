package agentrun

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

const (
	defaultTimeout = 30 * time.Minute
	defaultUser    = "agent"
	defaultName    = "run"
	maxRepairs     = 20

	failOnFailure   = "error"
	recordOnFailure = "record"
)

const (
	again   = " A change starts a new run."
	touches = " A change touches nothing."
)

var (
	absolutePath = regexp.MustCompile(`^/`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	userName     = regexp.MustCompile(`^[a-z_][a-z0-9_.-]*\$?$`)
	runName      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)
)

func (r *runResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := coreAttributes()
	maps.Copy(attributes, resultAttributes())
	maps.Copy(attributes, codeAttributes())
	resp.Schema = schema.Schema{
		MarkdownDescription: "A run of a coding agent, or of any command, in a container, once: started at its creation, and again when its task, its container, another input or a trigger changes. " +
			"The run belongs to the container, not to the apply: it goes on when the connection breaks or the apply is stopped, and the next apply finds it again. " +
			"Secrets reach it in memory only and are taken out of all output. The guide \"Agent runs\" has the states, what happens on failure, and what is where.",
		Attributes: attributes,
	}
}

func coreAttributes() map[string]schema.Attribute {
	anew := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	return map[string]schema.Attribute{
		"id": schema.StringAttribute{
			MarkdownDescription: "`container_id`, a slash and the run's id in the container, which `sbx-run status`, `tail` and `stop` take there.",
			Computed:            true,
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		},
		"container_id": schema.StringAttribute{
			MarkdownDescription: base.ContainerIDDescription + again,
			Required:            true,
			Validators:          base.ContainerIDValidators(),
			PlanModifiers:       anew,
		},
		"host_key": schema.StringAttribute{
			MarkdownDescription: base.HostKeyDescription + touches,
			Optional:            true,
			Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"name": schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("Tells runs in one container apart that have the same inputs: up to 63 letters, digits, `_`, `.` and `-`. Default `%s`.", defaultName) + again,
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(defaultName),
			Validators:          []validator.String{stringvalidator.RegexMatches(runName, "must have 1 to 63 letters, digits, _, . and -, a letter or digit first")},
			PlanModifiers:       anew,
		},
		"agent": schema.StringAttribute{
			MarkdownDescription: "Name of a known agent, such as `claude-code`; the data source `sandbox_agents` lists them. It is called without a terminal and approves its own actions. " +
				"The container's template must have it. This, `agent_definition` or `command` is required." + again,
			Optional: true,
			Validators: []validator.String{
				stringvalidator.LengthAtLeast(1),
				stringvalidator.ExactlyOneOf(path.MatchRoot("agent"), path.MatchRoot("agent_definition"), path.MatchRoot("command")),
			},
			PlanModifiers: anew,
		},
		"agent_definition": schema.StringAttribute{
			MarkdownDescription: "An agent that isn't among the known ones, as a JSON document: `jsonencode({ name = \"mine\", binary = \"mine\", source = { kind = \"installed\" }, headless = { arguments = [\"--once\"], prompt_via = \"stdin\" }, keys = { all_of = [\"MINE_KEY\"] } })`. " +
				"Its fields are those of the data source `sandbox_agents`, which checks it too. The container's template must have the agent." + again,
			Optional:      true,
			Validators:    []validator.String{stringvalidator.LengthAtLeast(1)},
			PlanModifiers: anew,
		},
		"model": schema.StringAttribute{
			MarkdownDescription: "Model that the agent is to use, by the agent's name for it. Default: the agent's own choice." + again,
			Optional:            true,
			Validators:          []validator.String{stringvalidator.LengthAtLeast(1), stringvalidator.ConflictsWith(path.MatchRoot("command"))},
			PlanModifiers:       anew,
		},
		"command": schema.StringAttribute{
			MarkdownDescription: "Shell code to run instead of a known agent, by the container's `sh`. It has the prompt as standard input and in the file that `$SBX_PROMPT` names. This, `agent` or `agent_definition` is required." + again,
			Optional:            true,
			Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			PlanModifiers:       anew,
		},
		"user": schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("User of the container that the run belongs to. Agents that refuse to work as root are refused at plan. Default `%s`.", defaultUser) + again,
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(defaultUser),
			Validators:          []validator.String{stringvalidator.RegexMatches(userName, "must be the name of a user")},
			PlanModifiers:       anew,
		},
		"prompt": schema.StringAttribute{
			MarkdownDescription: "The task, up to 64 KiB. It travels by SSH's standard input and lies in a file that only the run's user can read; it stands in no command line unless the agent takes it in no other way (`sandbox_agents` says which). Required with an agent." + again,
			Optional:            true,
			PlanModifiers:       anew,
		},
		"working_dir": schema.StringAttribute{
			MarkdownDescription: "Absolute path to run in; it must exist. Default: the user's home, or where `source` or `repo` puts the code." + again,
			Optional:            true,
			Validators:          []validator.String{stringvalidator.RegexMatches(absolutePath, "must be an absolute path")},
			PlanModifiers:       anew,
		},
		"environment": schema.MapAttribute{
			MarkdownDescription: "Variables for the run that are no secrets: they stand in the state, and in a file of the container. Default none." + again,
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.Map{mapvalidator.KeysAre(stringvalidator.RegexMatches(variableName, `must be the name of an environment variable: letters, digits and "_", no digit first`))},
			PlanModifiers:       []planmodifier.Map{mapplanmodifier.RequiresReplace()},
		},
		"secrets_wo": schema.MapAttribute{
			MarkdownDescription: "Variables for the run that are secret, such as an agent's API key. They stand in no state and no plan; they travel by SSH's standard input into a file in memory (tmpfs, mode 0600) and from there into the run's environment, " +
				"and the file is removed at the run's end. A container that has no tmpfs gets none. Output and report have `[redacted]` in their place, in every common encoding. A change by itself touches nothing: see `secrets_wo_version`.",
			ElementType: types.StringType,
			Optional:    true,
			WriteOnly:   true,
			Validators:  []validator.Map{mapvalidator.KeysAre(stringvalidator.RegexMatches(variableName, `must be the name of an environment variable: letters, digits and "_", no digit first`))},
		},
		"secrets_wo_version": schema.Int64Attribute{
			MarkdownDescription: "Any number; another one says that `secrets_wo` has changed." + again,
			Optional:            true,
			Validators:          []validator.Int64{int64validator.AlsoRequires(path.MatchRoot("secrets_wo"))},
			PlanModifiers:       []planmodifier.Int64{int64planmodifier.RequiresReplace()},
		},
		"timeout": schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("How long the run may take, tests and repairs included, as a Go duration such as `\"45m\"`; parts of a second count as a whole one. Default `%s`. The container itself enforces it: TERM, after %s KILL, for everything that the run started. A change touches nothing, also not a run that is under way.",
				base.ShortDuration(defaultTimeout), base.ShortDuration(agentrun.Grace)),
			Optional:   true,
			Computed:   true,
			Default:    stringdefault.StaticString(base.ShortDuration(defaultTimeout)),
			Validators: []validator.String{base.Duration()},
		},
		"test_command": schema.StringAttribute{
			MarkdownDescription: "Shell code that says by its exit code whether the work is done; it runs in the same place, as the same user, after an agent that ended with 0. Default none." + again,
			Optional:            true,
			Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			PlanModifiers:       anew,
		},
		"max_repairs": schema.Int64Attribute{
			MarkdownDescription: fmt.Sprintf("How often the agent is run again when the tests fail, with its prompt and the end of their output; 0 to %d. Default 0.", maxRepairs) + again,
			Optional:            true,
			Computed:            true,
			Default:             int64default.StaticInt64(0),
			Validators:          []validator.Int64{int64validator.Between(0, maxRepairs), repairsNeedTests{}},
			PlanModifiers:       []planmodifier.Int64{int64planmodifier.RequiresReplace()},
		},
		"log_file": schema.StringAttribute{
			MarkdownDescription: "File on the machine that applies that the run's output is appended to while it comes, without its secrets. Default none." + touches,
			Optional:            true,
			Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"detached": schema.BoolAttribute{
			MarkdownDescription: "Return as soon as the run has started; `status` is then `running`, and later refreshes complete the result. Default `false`." + touches,
			Optional:            true,
			Computed:            true,
			Default:             booldefault.StaticBool(false),
		},
		"on_failure": schema.StringAttribute{
			MarkdownDescription: "What a run does to the apply that didn't succeed: `record` (default) nothing, so that a postcondition on `self.status` decides; `error` fails it and taints the object: the next apply starts, and pays for, a new attempt." + touches,
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(recordOnFailure),
			Validators:          []validator.String{stringvalidator.OneOf(failOnFailure, recordOnFailure)},
		},
		"triggers": schema.MapAttribute{
			MarkdownDescription: "Any values; a change of one starts a new run.",
			ElementType:         types.StringType,
			Optional:            true,
			PlanModifiers:       []planmodifier.Map{mapplanmodifier.RequiresReplace()},
		},
	}
}

func resultAttributes() map[string]schema.Attribute {
	kept := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	keptNumber := []planmodifier.Int64{int64planmodifier.UseStateForUnknown()}
	return map[string]schema.Attribute{
		"status": schema.StringAttribute{
			MarkdownDescription: "`running`, `succeeded` (exit code 0, and the tests passed), `failed`, `timed_out`, or `lost`: the container was destroyed, stopped or rolled back under the run.",
			Computed:            true,
			PlanModifiers:       kept,
		},
		"exit_code": schema.Int64Attribute{
			MarkdownDescription: "Exit code of the run's last step, the agent or the tests; 128 + n when signal n ended it. Null while it runs and when it is lost.",
			Computed:            true,
			PlanModifiers:       keptNumber,
		},
		"attempts": schema.Int64Attribute{
			MarkdownDescription: "How often the agent ran: 1, and 1 for each repair.",
			Computed:            true,
			PlanModifiers:       keptNumber,
		},
		"started_at": schema.StringAttribute{
			MarkdownDescription: "When the run started (RFC 3339), on the clock of the machine that applies.",
			Computed:            true,
			PlanModifiers:       kept,
		},
		"finished_at": schema.StringAttribute{
			MarkdownDescription: "When it ended (RFC 3339). Null while it runs.",
			Computed:            true,
			PlanModifiers:       kept,
		},
		"duration": schema.StringAttribute{
			MarkdownDescription: "How long it took, as a Go duration, measured in the container. Null while it runs.",
			Computed:            true,
			PlanModifiers:       kept,
		},
		"commit": schema.StringAttribute{
			MarkdownDescription: "Commit that the run's code began at, where there is a repository.",
			Computed:            true,
			PlanModifiers:       kept,
		},
		"diff_stat": schema.StringAttribute{
			MarkdownDescription: "What the run changed in its code, as `git diff --stat` says it, where there is any.",
			Computed:            true,
			PlanModifiers:       kept,
		},
		"output_tail": schema.StringAttribute{
			MarkdownDescription: "The end of the output, standard output and standard error together: at most 32 KiB, without secrets; bytes that aren't UTF-8 are replaced.",
			Computed:            true,
			PlanModifiers:       kept,
		},
		"report": schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("All of it as JSON, `schema_version` %d: status, exit code, each attempt with its tests, times, commit, diff, artifacts with SHA-256, agent and version. For `jsondecode`.", agentrun.SchemaVersion),
			Computed:            true,
			PlanModifiers:       kept,
		},
	}
}

// repairsNeedTests refuses repairs that nothing would ask for.
type repairsNeedTests struct{}

func (repairsNeedTests) Description(context.Context) string {
	return "needs test_command where it is more than 0"
}
func (v repairsNeedTests) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (repairsNeedTests) ValidateInt64(ctx context.Context, req validator.Int64Request, resp *validator.Int64Response) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() || req.ConfigValue.ValueInt64() == 0 {
		return
	}
	var tests types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("test_command"), &tests)...)
	if tests.IsNull() {
		resp.Diagnostics.AddAttributeError(req.Path, "Repairs without tests", "The agent is run again when test_command fails, and there is none. Set test_command, or leave max_repairs out.")
	}
}
