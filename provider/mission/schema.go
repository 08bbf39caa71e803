package mission

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
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

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/mission"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

const (
	defaultMemberTimeout = 30 * time.Minute
	defaultTimeout       = 2 * time.Hour
	defaultName          = "mission"
	defaultUser          = "agent"
	maxRounds            = 20

	failOnFailure   = "error"
	recordOnFailure = "record"

	again = " A change starts a new mission."
)

var (
	plainName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)
	userName     = regexp.MustCompile(`^[a-z_][a-z0-9_.-]*\$?$`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	absolutePath = regexp.MustCompile(`^/`)
)

func named(what string) validator.String {
	return stringvalidator.RegexMatches(plainName, what+" must have 1 to 63 letters, digits, _, . and -, a letter or digit first")
}

func variables() []validator.Map {
	return []validator.Map{mapvalidator.KeysAre(stringvalidator.RegexMatches(variableName, `must be the name of an environment variable: letters, digits and "_", no digit first`))}
}

func (r *missionResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	anew := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	kept := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	attributes := map[string]schema.Attribute{
		"id": schema.StringAttribute{MarkdownDescription: "The mission's name and the time at which it ended.", Computed: true, PlanModifiers: kept},
		"name": schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("Tells missions of the same containers apart. Default `%s`.", defaultName) + again,
			Optional:            true, Computed: true, Default: stringdefault.StaticString(defaultName),
			Validators: []validator.String{named("name")}, PlanModifiers: anew,
		},
		"strategy": schema.StringAttribute{
			MarkdownDescription: "How the members work together. `parallel`: each does the task, side by side. `pipeline`: one after the other, each told what the one before said. " +
				"`debate`: in `rounds`, each told the others' answers of the round before; `judge` closes. `arena`: each does the task, from the same snapshot where `snapshot_name` says one, and `score_command` decides who was better." + again,
			Required:   true,
			Validators: []validator.String{stringvalidator.OneOf(mission.Strategies()...)}, PlanModifiers: anew,
		},
		"task": schema.StringAttribute{
			MarkdownDescription: "What is to be done, up to 32 KiB. Each member's prompt is its role, the task, and what others have said where the strategy has it so." + again,
			Required:            true,
			Validators:          []validator.String{stringvalidator.LengthAtLeast(1)}, PlanModifiers: anew,
		},
		"members": schema.MapNestedAttribute{
			MarkdownDescription: fmt.Sprintf("Those who work, by names of your choice: 1 to %d.", mission.MaxMembers) + again,
			Required:            true,
			Validators:          []validator.Map{mapvalidator.SizeBetween(1, mission.MaxMembers), mapvalidator.KeysAre(named("a member's name"))},
			PlanModifiers:       []planmodifier.Map{mapplanmodifier.RequiresReplace()},
			NestedObject:        schema.NestedAttributeObject{Attributes: memberAttributes()},
		},
		"order": schema.ListAttribute{
			MarkdownDescription: "Names of all members, in the order of a `pipeline`. Default: architect, developer, tester, reviewer, then the others, those of one role by name." + again,
			ElementType:         types.StringType, Optional: true,
			Validators:    []validator.List{listvalidator.UniqueValues(), listvalidator.SizeAtLeast(1)},
			PlanModifiers: []planmodifier.List{listplanmodifier.RequiresReplace()},
		},
		"judge": schema.StringAttribute{
			MarkdownDescription: "Name of the member that closes a `debate`, told everybody's last answers. Default none: the last answers stand beside each other." + again,
			Optional:            true, PlanModifiers: anew,
		},
		"rounds": schema.Int64Attribute{
			MarkdownDescription: fmt.Sprintf("Rounds of a `debate` or an `arena`, 1 to %d. Default 1.", maxRounds) + again,
			Optional:            true,
			Validators:          []validator.Int64{int64validator.Between(1, maxRounds)},
			PlanModifiers:       []planmodifier.Int64{int64planmodifier.RequiresReplace()},
		},
		"score_command": schema.StringAttribute{
			MarkdownDescription: "Shell code that is run where each member of an `arena` has worked, as the same user; the number in its last line of output is the score, and more is better. Another exit code than 0 gives none." + again,
			Optional:            true,
			Validators:          []validator.String{stringvalidator.LengthAtLeast(1)}, PlanModifiers: anew,
		},
		"snapshot_name": schema.StringAttribute{
			MarkdownDescription: "Snapshot that each member's container is rolled back to before each round of an `arena`; what is in the containers then is lost. Default none: each container as it is." + again,
			Optional:            true,
			Validators:          []validator.String{base.SnapshotName()}, PlanModifiers: anew,
		},
		"stop_on": schema.StringAttribute{
			MarkdownDescription: "What ends the mission before everybody is done: `first_success`, `first_failure` or `never`; who is still at work then is stopped. Default: a `pipeline` ends with the first that fails, the others never." + again,
			Optional:            true,
			Validators:          []validator.String{stringvalidator.OneOf(mission.Stops()...)}, PlanModifiers: anew,
		},
		"timeout": schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("How long all together may take, as a Go duration. Default `%s`. Who is still at work then is stopped. A change touches nothing.", base.ShortDuration(defaultTimeout)),
			Optional:            true, Computed: true, Default: stringdefault.StaticString(base.ShortDuration(defaultTimeout)),
			Validators: []validator.String{base.Duration()},
		},
		"secrets_wo": schema.MapAttribute{
			MarkdownDescription: "Secret variables for all members, as in `sandbox_agent_run`: in memory only, in no state, taken out of all output. A change by itself touches nothing: see `secrets_wo_version`.",
			ElementType:         types.StringType, Optional: true, WriteOnly: true, Validators: variables(),
		},
		"secrets_wo_version": schema.Int64Attribute{
			MarkdownDescription: "Any number; another one says that `secrets_wo` has changed." + again,
			Optional:            true,
			Validators:          []validator.Int64{int64validator.AlsoRequires(path.MatchRoot("secrets_wo"))},
			PlanModifiers:       []planmodifier.Int64{int64planmodifier.RequiresReplace()},
		},
		"on_failure": schema.StringAttribute{
			MarkdownDescription: "What a mission that didn't succeed does to the apply: `record` (default) nothing; `error` fails it, and the next apply starts a new one. A change touches nothing.",
			Optional:            true, Computed: true, Default: stringdefault.StaticString(recordOnFailure),
			Validators: []validator.String{stringvalidator.OneOf(failOnFailure, recordOnFailure)},
		},
		"triggers": schema.MapAttribute{
			MarkdownDescription: "Any values; a change of one starts a new mission.",
			ElementType:         types.StringType, Optional: true, PlanModifiers: []planmodifier.Map{mapplanmodifier.RequiresReplace()},
		},
	}
	for name, a := range resultAttributes() {
		attributes[name] = a
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Several agents, or commands, work on one task: side by side, one after the other, in a debate, or against each other for a score. Each piece of work is a run as in `sandbox_agent_run`, in the member's own container. " +
			"An apply that is stopped leaves runs going on; the next apply finds them and goes on with the mission.",
		Attributes: attributes,
	}
}

func memberAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"container_id": schema.StringAttribute{MarkdownDescription: base.ContainerIDDescription, Required: true, Validators: base.ContainerIDValidators()},
		"host_key":     schema.StringAttribute{MarkdownDescription: base.HostKeyDescription, Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)}},
		"role": schema.StringAttribute{
			MarkdownDescription: "`architect`, `developer`, `tester`, `reviewer` or `judge`, whose descriptions go before the task; or words of your own that do. Default none.",
			Optional:            true, Validators: []validator.String{stringvalidator.LengthBetween(1, 4096)},
		},
		"agent": schema.StringAttribute{
			MarkdownDescription: "Name of a known agent, see the data source `sandbox_agents`. This or `command` is required.",
			Optional:            true,
			Validators: []validator.String{stringvalidator.LengthAtLeast(1),
				stringvalidator.ExactlyOneOf(path.MatchRelative().AtParent().AtName("agent"), path.MatchRelative().AtParent().AtName("command"))},
		},
		"model":       schema.StringAttribute{MarkdownDescription: "Model that the agent is to use. Default: the agent's own choice.", Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)}},
		"command":     schema.StringAttribute{MarkdownDescription: "Shell code instead of an agent; it has its prompt as standard input.", Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)}},
		"user":        schema.StringAttribute{MarkdownDescription: fmt.Sprintf("User of the container. Default `%s`.", defaultUser), Optional: true, Validators: []validator.String{stringvalidator.RegexMatches(userName, "must be the name of a user")}},
		"working_dir": schema.StringAttribute{MarkdownDescription: "Absolute path to work in. Default: the user's home.", Optional: true, Validators: []validator.String{stringvalidator.RegexMatches(absolutePath, "must be an absolute path")}},
		"environment": schema.MapAttribute{MarkdownDescription: "Variables that are no secrets. Default none.", ElementType: types.StringType, Optional: true, Validators: variables()},
		"timeout": schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("How long one turn of this member may take. Default `%s`.", base.ShortDuration(defaultMemberTimeout)),
			Optional:            true, Validators: []validator.String{base.Duration()},
		},
	}
}

func resultAttributes() map[string]schema.Attribute {
	kept := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	return map[string]schema.Attribute{
		"status": schema.StringAttribute{
			MarkdownDescription: "`succeeded`, `failed` or `timed_out`. A mission succeeds when all its members do; with `stop_on = \"first_success\"` when one does; a debate with a judge when the judge does; an arena when somebody has a score.",
			Computed:            true, PlanModifiers: kept,
		},
		"duration": schema.StringAttribute{MarkdownDescription: "How long it took, as a Go duration.", Computed: true, PlanModifiers: kept},
		"answer":   schema.StringAttribute{MarkdownDescription: "The last word, at most 16 KiB: of a pipeline's last member, of the judge, of an arena's winner. Empty for `parallel`.", Computed: true, PlanModifiers: kept},
		"winner":   schema.StringAttribute{MarkdownDescription: "Name of an arena's winner: most rounds won, then the highest score. Null where nobody has a score, and for other strategies.", Computed: true, PlanModifiers: kept},
		"ranking": schema.ListAttribute{MarkdownDescription: "Names of an arena's members, the best first. Empty for other strategies.", ElementType: types.StringType, Computed: true,
			PlanModifiers: []planmodifier.List{listplanmodifier.UseStateForUnknown()}},
		"results": schema.MapNestedAttribute{
			MarkdownDescription: "What each member did.",
			Computed:            true,
			PlanModifiers:       []planmodifier.Map{mapplanmodifier.UseStateForUnknown()},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"status":    schema.StringAttribute{MarkdownDescription: "Status of the last turn, as in `sandbox_agent_run`; `skipped` where the mission had ended before.", Computed: true},
				"exit_code": schema.Int64Attribute{MarkdownDescription: "Exit code of the last turn.", Computed: true},
				"turns":     schema.Int64Attribute{MarkdownDescription: "How often it worked.", Computed: true},
				"duration":  schema.StringAttribute{MarkdownDescription: "How long, all turns together, as a Go duration.", Computed: true},
				"answer":    schema.StringAttribute{MarkdownDescription: "The end of what it said, at most 16 KiB, without secrets.", Computed: true},
				"score":     schema.Float64Attribute{MarkdownDescription: "Its best score in an arena.", Computed: true},
				"win_rate":  schema.Float64Attribute{MarkdownDescription: "Share of the arena's rounds that it won, 0 to 1.", Computed: true},
				"rank":      schema.Int64Attribute{MarkdownDescription: "Place in an arena, 1 for the best; equals share one.", Computed: true},
			}},
		},
		"report": schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("All of it as JSON, `schema_version` %d, with the report of each run. The function `leaderboard` sums such reports up.", mission.SchemaVersion),
			Computed:            true, PlanModifiers: kept,
		},
	}
}
