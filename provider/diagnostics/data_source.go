// Package diagnostics is the data source sandbox_diagnostics.
package diagnostics

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// maxTasks and maxJournalLines bound what a bundle holds.
const maxTasks, maxJournalLines = 500, 5000

var _ datasource.DataSourceWithConfigure = (*diagnosticsDataSource)(nil)

type diagnosticsDataSource struct{ base.DataSourceBase }

// NewDataSource returns sandbox_diagnostics.
func NewDataSource() datasource.DataSource { return &diagnosticsDataSource{} }

func (d *diagnosticsDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_diagnostics"
}

func (d *diagnosticsDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	text := func(s string) schema.Attribute { return schema.StringAttribute{MarkdownDescription: s, Computed: true} }
	flag := func(s string) schema.Attribute { return schema.BoolAttribute{MarkdownDescription: s, Computed: true} }
	list := func(s string) schema.Attribute {
		return schema.ListAttribute{MarkdownDescription: s, ElementType: types.StringType, Computed: true}
	}
	dict := func(s string) schema.Attribute {
		return schema.MapAttribute{MarkdownDescription: s, ElementType: types.StringType, Computed: true}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "What is to know about one sandbox when something is wrong with it: configuration, tasks with the logs of failed ones, what filters it, and the guest's log. " +
			"Secrets are taken out: those that the provider holds, and what looks like one; look at it all the same before you pass it on. What can't be had is in `unavailable` with why, and the rest is there. " +
			"It is read at every refresh and changes each time.",
		Attributes: map[string]schema.Attribute{
			"container_id": schema.StringAttribute{
				MarkdownDescription: "Container, by its `id` (the vmid). It must carry this provider's ownership marker; it need not run.",
				Required:            true, Validators: base.ContainerIDValidators(),
			},
			"host_key": schema.StringAttribute{MarkdownDescription: base.HostKeyDescription, Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)}},
			"task_count": schema.Int64Attribute{
				MarkdownDescription: fmt.Sprintf("How many of the newest tasks, 1 to %d. Default %d.", maxTasks, sandbox.DefaultDiagnosticsTasks),
				Optional:            true, Validators: []validator.Int64{int64validator.Between(1, maxTasks)},
			},
			"journal_lines": schema.Int64Attribute{
				MarkdownDescription: fmt.Sprintf("How many of the newest lines of the guest's log, 1 to %d. Default %d.", maxJournalLines, sandbox.DefaultJournalLines),
				Optional:            true, Validators: []validator.Int64{int64validator.Between(1, maxJournalLines)},
			},
			"id":        text("The container's id."),
			"node_name": text("Node that it is on."),
			"status":    text("`running` or `stopped`."),
			"phase":     text("`creating` for a creation that has not ended, or was cut; else `ready`."),
			"config":    dict("Configuration as the server has it, by key."),
			"pending":   list("Settings that wait for a restart."),
			"tasks": schema.ListNestedAttribute{
				MarkdownDescription: "Tasks about the container, the newest first. Those of others only where the token has `Sys.Audit` on the node.", Computed: true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"upid":       text("Id of the task."),
					"type":       text("Kind, such as `vzstart`."),
					"user":       text("Who began it."),
					"status":     text("`OK`, `WARNINGS: n`, the error, or `running`."),
					"started_at": text("When it began (RFC 3339)."),
					"ended_at":   text("When it ended; null while it runs."),
					"log":        list("End of the log, of the newest tasks that failed."),
				}},
			},
			"firewall": schema.SingleNestedAttribute{
				MarkdownDescription: "What filters the container. It is filtered only while `datacenter`, `guest` and `interface` are all on.", Computed: true,
				Attributes: map[string]schema.Attribute{
					"datacenter": flag("Whether the datacenter's firewall is on; null where it may not be seen."),
					"node":       flag("Whether the node's own is on; null where it may not be seen."),
					"guest":      flag("Whether the container's is on."),
					"interface":  flag("Whether its interface has `firewall=1`."),
					"policy_in":  text("What happens to incoming traffic that no rule names."),
					"policy_out": text("What happens to outgoing traffic that no rule names."),
					"rules":      list("The container's own rules in order, as its firewall file has them; a leading `|` marks a disabled one."),
					"node_rules": list("The node's own rules in order."),
				},
			},
			"journal":     list("Newest lines of the guest's log: of systemd's journal, else of syslog."),
			"unavailable": dict("Parts that couldn't be had, with why: `pending`, `tasks`, `firewall`, `datacenter_firewall`, `node_firewall`, `journal`."),
			"bundle":      text("All of it as one JSON document (`version` 1), for a file or an issue."),
		},
	}
}

var texts = types.ListType{ElemType: types.StringType}

var taskTypes = map[string]attr.Type{
	"upid": types.StringType, "type": types.StringType, "user": types.StringType, "status": types.StringType,
	"started_at": types.StringType, "ended_at": types.StringType, "log": texts,
}

var firewallTypes = map[string]attr.Type{
	"datacenter": types.BoolType, "node": types.BoolType, "guest": types.BoolType, "interface": types.BoolType,
	"policy_in": types.StringType, "policy_out": types.StringType, "rules": texts, "node_rules": texts,
}

type model struct {
	ContainerID  types.String `tfsdk:"container_id"`
	HostKey      types.String `tfsdk:"host_key"`
	TaskCount    types.Int64  `tfsdk:"task_count"`
	JournalLines types.Int64  `tfsdk:"journal_lines"`
	ID           types.String `tfsdk:"id"`
	NodeName     types.String `tfsdk:"node_name"`
	Status       types.String `tfsdk:"status"`
	Phase        types.String `tfsdk:"phase"`
	Config       types.Map    `tfsdk:"config"`
	Pending      types.List   `tfsdk:"pending"`
	Tasks        types.List   `tfsdk:"tasks"`
	Firewall     types.Object `tfsdk:"firewall"`
	Journal      types.List   `tfsdk:"journal"`
	Unavailable  types.Map    `tfsdk:"unavailable"`
	Bundle       types.String `tfsdk:"bundle"`
}

func (d *diagnosticsDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	manager, ok := d.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	inside, err := base.Inside(m.ContainerID, m.HostKey)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("container_id"), "Invalid container", err.Error())
		return
	}
	seen, err := manager.Diagnose(ctx, inside, sandbox.DiagnosticsSpec{
		Tasks: int(m.TaskCount.ValueInt64()), JournalLines: int(m.JournalLines.ValueInt64()),
	})
	if err != nil {
		base.AddError(&resp.Diagnostics, "diagnose", "container "+m.ContainerID.ValueString(), err)
		return
	}
	bundle, err := bundleOf(seen)
	if err != nil {
		base.AddError(&resp.Diagnostics, "write down", "the bundle", err)
		return
	}
	m.fill(seen, bundle)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (m *model) fill(d sandbox.Diagnostics, bundle string) {
	m.ID = types.StringValue(fmt.Sprint(d.VMID))
	m.NodeName = types.StringValue(d.Node)
	m.Status = types.StringValue(string(d.Status))
	m.Phase = value.TextOrNull(string(d.Phase))
	m.Config = textMap(d.Config)
	m.Pending = value.TextList(d.Pending)
	tasks := make([]attr.Value, len(d.Tasks))
	for i, t := range d.Tasks {
		tasks[i] = types.ObjectValueMust(taskTypes, map[string]attr.Value{
			"upid": types.StringValue(t.UPID), "type": types.StringValue(t.Type), "user": types.StringValue(t.User), "status": types.StringValue(t.Status),
			"started_at": value.TextOrNull(stamp(t.Started)), "ended_at": value.TextOrNull(stamp(t.Ended)), "log": value.TextList(t.Log),
		})
	}
	m.Tasks = types.ListValueMust(types.ObjectType{AttrTypes: taskTypes}, tasks)
	f := d.Firewall
	m.Firewall = types.ObjectValueMust(firewallTypes, map[string]attr.Value{
		"datacenter": types.BoolPointerValue(f.Datacenter), "node": types.BoolPointerValue(f.Node), "guest": types.BoolPointerValue(f.Guest),
		"interface": types.BoolValue(f.Interface), "policy_in": value.TextOrNull(f.PolicyIn), "policy_out": value.TextOrNull(f.PolicyOut),
		"rules": value.TextList(f.Rules), "node_rules": value.TextList(f.NodeRules),
	})
	m.Journal = value.TextList(d.Journal)
	m.Unavailable = textMap(d.Unavailable)
	m.Bundle = types.StringValue(bundle)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

func textMap(values map[string]string) types.Map {
	out := make(map[string]attr.Value, len(values))
	for key, value := range values {
		out[key] = types.StringValue(value)
	}
	return types.MapValueMust(types.StringType, out)
}
