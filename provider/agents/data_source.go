// Package agents is the data source sandbox_agents.
package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/agents"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

var _ datasource.DataSource = (*agentsDataSource)(nil)

type agentsDataSource struct{}

// NewDataSource returns sandbox_agents.
func NewDataSource() datasource.DataSource { return &agentsDataSource{} }

func (d *agentsDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_agents"
}

func (d *agentsDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	text := func(s string) schema.Attribute { return schema.StringAttribute{MarkdownDescription: s, Computed: true} }
	flag := func(s string) schema.Attribute { return schema.BoolAttribute{MarkdownDescription: s, Computed: true} }
	list := func(s string) schema.Attribute {
		return schema.ListAttribute{MarkdownDescription: s, ElementType: types.StringType, Computed: true}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "The coding agents that this provider knows: where each comes from, at which version it is pinned, how it is started without a terminal, which keys it needs and which hosts it talks to. " +
			"`sandbox_agent_run` starts them by `name`, and the Packer provisioner `sandbox-agents` installs them. It asks no server. " +
			"What is in it was read from the packages themselves and from their makers' documentation; no model was called.",
		Attributes: map[string]schema.Attribute{
			"names": schema.ListAttribute{
				MarkdownDescription: "Only these. An unknown name is an error that suggests the nearest.",
				ElementType:         types.StringType, Optional: true,
			},
			"definitions": schema.ListAttribute{
				MarkdownDescription: "Agents of your own, each as a JSON document with the fields of the registry's files (`jsonencode({ name = \"…\", binary = \"…\", source = { kind = \"installed\" }, headless = { arguments = […], prompt_via = \"stdin\" } })`). " +
					"They are checked as the registry's are and added to `agents`; one with a known name takes its place. `sandbox_agent_run` takes the same document in `agent_definition`.",
				ElementType: types.StringType, Optional: true,
			},
			"egress_domains": list("The hosts that all of them together talk to, sorted: for `allow` of a network in mode `allowlist`. Those of a model's provider that isn't the makers' own come on top."),
			"agents": schema.MapNestedAttribute{
				MarkdownDescription: "The agents, by name.",
				Computed:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"title":                text("Its makers' name for it."),
					"homepage":             text("Its makers' page."),
					"source":               text("Where it is installed from: `npm`, `pypi`, `binary`, or `installed` for what a template must bring by itself."),
					"package":              text("Name of its package; null for a binary."),
					"version":              text("Version that it is pinned to; null where there is nothing to pin."),
					"binary":               text("Name of its command."),
					"command":              list("Command line of a run without a terminal that asks for nothing. The prompt isn't in it, or is the path `PROMPT`."),
					"environment":          schema.MapAttribute{MarkdownDescription: "Variables that are set for a run: no updates of itself, no telemetry.", ElementType: types.StringType, Computed: true},
					"prompt_via":           text("How it takes its prompt: `stdin`, `file`, or `argument`, which shows in the guest's list of processes."),
					"keys_any_of":          list("Variables one of which must be there; empty if none is needed."),
					"keys_all_of":          list("Variables each of which must be there."),
					"keys_optional":        list("Variables that it knows and does without."),
					"refuses_root":         flag("Whether it doesn't work as root."),
					"node_version":         text("Lowest version of Node.js; null if it needs none."),
					"python_version":       text("Lowest version of Python; null if it needs none."),
					"python_version_below": text("First version of Python that is too new; null if there is none."),
					"commands":             list("Commands that must be in the guest."),
					"user_namespaces":      flag("Whether it needs `nesting = true`, for a sandbox of its own inside of this one."),
					"state_dirs":           list("What it keeps in the user's home."),
					"egress_domains":       list("Hosts that it talks to."),
					"license":              text("SPDX expression; `LicenseRef-Proprietary` where its makers' terms hold."),
					"redistributable":      flag("Whether a template with it may be handed to others."),
					"size":                 schema.Int64Attribute{MarkdownDescription: "What it takes on disk, roughly, in MiB; null if it wasn't measured.", Computed: true},
					"notes":                text("What else is to know; null if nothing."),
				}},
			},
		},
	}
}

var texts = types.ListType{ElemType: types.StringType}

var agentTypes = map[string]attr.Type{
	"title": types.StringType, "homepage": types.StringType, "source": types.StringType, "package": types.StringType, "version": types.StringType,
	"binary": types.StringType, "command": texts, "environment": types.MapType{ElemType: types.StringType}, "prompt_via": types.StringType,
	"keys_any_of": texts, "keys_all_of": texts, "keys_optional": texts, "refuses_root": types.BoolType,
	"node_version": types.StringType, "python_version": types.StringType, "python_version_below": types.StringType, "commands": texts, "user_namespaces": types.BoolType,
	"state_dirs": texts, "egress_domains": texts, "license": types.StringType, "redistributable": types.BoolType, "size": types.Int64Type, "notes": types.StringType,
}

type model struct {
	Names         types.List `tfsdk:"names"`
	Definitions   types.List `tfsdk:"definitions"`
	EgressDomains types.List `tfsdk:"egress_domains"`
	Agents        types.Map  `tfsdk:"agents"`
}

func (d *agentsDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m model
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	var names, definitions []string
	resp.Diagnostics.Append(m.Names.ElementsAs(ctx, &names, false)...)
	resp.Diagnostics.Append(m.Definitions.ElementsAs(ctx, &definitions, false)...)
	if resp.Diagnostics.HasError() {
		return
	}
	known := map[string]agents.Agent{}
	for _, a := range agents.All() {
		known[a.Name] = a
	}
	for i, text := range definitions {
		a, err := agents.Parse([]byte(text))
		if err != nil {
			resp.Diagnostics.AddAttributeError(path.Root("definitions").AtListIndex(i), "Invalid Agent", fmt.Sprintf("The document at definitions[%d] is no agent:\n%s", i, err))
			continue
		}
		known[a.Name] = a
	}
	for i, name := range names {
		if _, ok := known[name]; !ok {
			_, err := agents.Find(name)
			if err == nil {
				err = errors.New("not found") // can't be: Find knows what All lists
			}
			resp.Diagnostics.AddAttributeError(path.Root("names").AtListIndex(i), "Unknown Agent", fmt.Sprintf("At names[%d]: %s.", i, err))
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	objects, domains := map[string]attr.Value{}, []string{}
	for name, a := range known {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		objects[name] = object(a)
		domains = append(domains, a.EgressDomains...)
	}
	slices.Sort(domains)
	m.EgressDomains = value.TextList(slices.Compact(domains))
	m.Agents = types.MapValueMust(types.ObjectType{AttrTypes: agentTypes}, objects)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func object(a agents.Agent) attr.Value {
	command := a.Command(agents.Invocation{PromptFile: "PROMPT", AutoApprove: true})
	environment := map[string]attr.Value{}
	for name, value := range command.Environment {
		environment[name] = types.StringValue(value)
	}
	size := types.Int64Null()
	if a.SizeMiB > 0 {
		size = types.Int64Value(int64(a.SizeMiB))
	}
	return types.ObjectValueMust(agentTypes, map[string]attr.Value{
		"title": types.StringValue(a.Title), "homepage": types.StringValue(a.Homepage), "source": types.StringValue(string(a.Source.Kind)),
		"package": value.TextOrNull(a.Source.Package), "version": value.TextOrNull(a.Source.Version),
		"binary": types.StringValue(a.Binary), "command": value.TextList(command.Argv), "environment": types.MapValueMust(types.StringType, environment),
		"prompt_via":  types.StringValue(string(a.Headless.PromptVia)),
		"keys_any_of": value.TextList(a.Keys.AnyOf), "keys_all_of": value.TextList(a.Keys.AllOf), "keys_optional": value.TextList(a.Keys.Optional),
		"refuses_root": types.BoolValue(a.RefusesRoot),
		"node_version": value.TextOrNull(a.Needs.Node), "python_version": value.TextOrNull(a.Needs.Python), "python_version_below": value.TextOrNull(a.Needs.PythonBelow),
		"commands": value.TextList(a.Needs.Commands), "user_namespaces": types.BoolValue(a.Needs.UserNamespaces),
		"state_dirs": value.TextList(a.StateDirs), "egress_domains": value.TextList(a.EgressDomains),
		"license": value.TextOrNull(a.Licence.Name), "redistributable": types.BoolValue(a.Licence.Redistributable), "size": size, "notes": value.TextOrNull(a.Notes),
	})
}
