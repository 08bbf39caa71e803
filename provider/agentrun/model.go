package agentrun

import (
	"context"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

// model is the resource as Terraform has it.
type model struct {
	coreModel
	codeModel
}

type coreModel struct {
	ID             types.String `tfsdk:"id"`
	ContainerID    types.String `tfsdk:"container_id"`
	HostKey        types.String `tfsdk:"host_key"`
	Name           types.String `tfsdk:"name"`
	Agent          types.String `tfsdk:"agent"`
	Definition     types.String `tfsdk:"agent_definition"`
	Model          types.String `tfsdk:"model"`
	Command        types.String `tfsdk:"command"`
	User           types.String `tfsdk:"user"`
	Prompt         types.String `tfsdk:"prompt"`
	WorkingDir     types.String `tfsdk:"working_dir"`
	Environment    types.Map    `tfsdk:"environment"`
	Secrets        types.Map    `tfsdk:"secrets_wo"`
	SecretsVersion types.Int64  `tfsdk:"secrets_wo_version"`
	Timeout        types.String `tfsdk:"timeout"`
	TestCommand    types.String `tfsdk:"test_command"`
	MaxRepairs     types.Int64  `tfsdk:"max_repairs"`
	LogFile        types.String `tfsdk:"log_file"`
	Detached       types.Bool   `tfsdk:"detached"`
	OnFailure      types.String `tfsdk:"on_failure"`
	Triggers       types.Map    `tfsdk:"triggers"`
	Status         types.String `tfsdk:"status"`
	ExitCode       types.Int64  `tfsdk:"exit_code"`
	Attempts       types.Int64  `tfsdk:"attempts"`
	StartedAt      types.String `tfsdk:"started_at"`
	FinishedAt     types.String `tfsdk:"finished_at"`
	Duration       types.String `tfsdk:"duration"`
	Commit         types.String `tfsdk:"commit"`
	DiffStat       types.String `tfsdk:"diff_stat"`
	OutputTail     types.String `tfsdk:"output_tail"`
	Report         types.String `tfsdk:"report"`
}

// spec is what the domain is asked for. secrets are the configuration's: no
// plan and no state has them. Values that aren't known yet are left out.
func (m *model) spec(ctx context.Context, secrets types.Map, diags *diag.Diagnostics) agentrun.Spec {
	s := agentrun.Spec{
		Name: m.Name.ValueString(), User: m.User.ValueString(), Prompt: m.Prompt.ValueString(), Dir: m.WorkingDir.ValueString(),
		TestCommand: m.TestCommand.ValueString(), MaxRepairs: int(m.MaxRepairs.ValueInt64()), LogFile: m.LogFile.ValueString(),
		Environment: base.Texts(ctx, m.Environment, diags), Triggers: base.Texts(ctx, m.Triggers, diags), Secrets: base.Texts(ctx, secrets, diags),
		Inputs: map[string]string{"model": m.Model.ValueString(), "agent_definition": m.Definition.ValueString(), "secrets_wo_version": m.SecretsVersion.String()},
	}
	if !m.Timeout.IsNull() && !m.Timeout.IsUnknown() {
		limit, err := time.ParseDuration(m.Timeout.ValueString())
		if err != nil {
			diags.AddAttributeError(path.Root("timeout"), "Invalid duration", err.Error())
		}
		s.Timeout = limit
	}
	// Where the status is known the run was started by an earlier apply: a refresh collects.
	m.stages(ctx, &s, !m.Status.IsUnknown(), diags)
	return s
}

func (m *model) program() agentrun.Program {
	return agentrun.Program{Agent: m.Agent.ValueString(), Definition: m.Definition.ValueString(), Model: m.Model.ValueString(), Command: m.Command.ValueString()}
}

// fill is the one way from a run to the state.
func (m *model) fill(r *agentrun.Run, diags *diag.Diagnostics) {
	report := r.Report
	report.ID = r.ID
	m.ID = types.StringValue(m.ContainerID.ValueString() + "/" + r.ID)
	m.Secrets = types.MapNull(types.StringType)
	m.Status = types.StringValue(string(report.Status))
	m.ExitCode = types.Int64Null()
	if report.ExitCode != nil {
		m.ExitCode = types.Int64Value(int64(*report.ExitCode))
	}
	m.Attempts = types.Int64Value(int64(len(report.Attempts)))
	m.StartedAt, m.FinishedAt = moment(report.StartedAt), moment(report.FinishedAt)
	m.Duration = types.StringNull()
	if report.Status.Ended() && report.Status != agentrun.Lost {
		m.Duration = types.StringValue((time.Duration(report.DurationMS) * time.Millisecond).String())
	}
	m.Commit = types.StringNull()
	if report.Commit != "" {
		m.Commit = types.StringValue(report.Commit)
	}
	m.DiffStat = types.StringNull()
	if report.Diff != nil {
		m.DiffStat = types.StringValue(report.Diff.Stat)
	}
	m.OutputTail = types.StringValue(report.OutputTail)
	text, err := report.JSON()
	if err != nil {
		diags.AddError("Unable to write the report", err.Error())
	}
	m.Report = types.StringValue(text)
}

func moment(t *time.Time) types.String {
	if t == nil {
		return types.StringNull()
	}
	return types.StringValue(t.Format(time.RFC3339))
}

// thing names the run in messages.
func (m *model) thing() string {
	what := "command"
	if !m.Agent.IsNull() {
		what = m.Agent.ValueString()
	} else if !m.Definition.IsNull() {
		what = "agent"
	}
	return what + " in container " + m.ContainerID.ValueString() + " (" + strconv.Quote(m.Name.ValueString()) + ")"
}
