package preflight

import (
	"math"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/preflight"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

var texts = types.ListType{ElemType: types.StringType}

var (
	storageTypes = map[string]attr.Type{
		"type": types.StringType, "active": types.BoolType, "shared": types.BoolType, "content": texts, "containers": types.BoolType,
		"snapshots": types.BoolType, "linked_clones": types.BoolType, "templates": types.BoolType, "rollback_newest_only": types.BoolType,
		"size": types.Float64Type, "used": types.Float64Type,
	}
	nodeTypes = map[string]attr.Type{
		"online": types.BoolType, "used": types.BoolType, "bridges": texts, "storages": types.MapType{ElemType: types.ObjectType{AttrTypes: storageTypes}},
	}
	firewallTypes = map[string]attr.Type{
		"enabled": types.BoolType, "policy_in": types.StringType, "policy_out": types.StringType, "would_filter": types.ListType{ElemType: types.Int64Type},
	}
	identityTypes = map[string]attr.Type{
		"user": types.StringType, "name": types.StringType, "root": types.BoolType, "privilege_separation": types.BoolType,
		"expires_at": types.StringType, "may_grant": types.BoolType,
	}
	privilegeTypes = map[string]attr.Type{
		"privilege": types.StringType, "path": types.StringType, "feature": types.StringType, "needed_for": types.StringType, "present": types.BoolType,
	}
	findingTypes = map[string]attr.Type{"severity": types.StringType, "summary": types.StringType, "remedy": types.StringType}
)

// computed are the attributes that come from the server.
func computed() map[string]schema.Attribute {
	text := func(s string) schema.Attribute { return schema.StringAttribute{MarkdownDescription: s, Computed: true} }
	flag := func(s string) schema.Attribute { return schema.BoolAttribute{MarkdownDescription: s, Computed: true} }
	number := func(s string) schema.Attribute {
		return schema.Float64Attribute{MarkdownDescription: s, Computed: true}
	}
	list := func(s string) schema.Attribute {
		return schema.ListAttribute{MarkdownDescription: s, ElementType: types.StringType, Computed: true}
	}
	rows := func(s string) schema.Attribute {
		return schema.ListNestedAttribute{MarkdownDescription: s, Computed: true, NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"privilege":  text("Name of the privilege."),
			"path":       text("Path that it is needed on."),
			"feature":    text("Feature that needs it."),
			"needed_for": text("What needs it."),
			"present":    flag("Whether the token has it there; of a token with privilege separation, whether both it and its user have it."),
		}}}
	}
	return map[string]schema.Attribute{
		"id":               text("Always `preflight`."),
		"ok":               flag("Whether nothing was found that keeps the features from working; warnings don't count."),
		"version":          text("Version of Proxmox VE, such as `9.2.11`."),
		"quorate":          flag("Whether the cluster accepts changes; null where the token may not see it (`Sys.Audit` on `/`)."),
		"clock_difference": number("Seconds by which the clock of the node that answered is ahead of this machine's, to half a second; negative when it is behind."),
		"nodes": schema.MapNestedAttribute{
			MarkdownDescription: "The nodes, by name.", Computed: true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"online":  flag("Whether the node is up."),
				"used":    flag("Whether the provider may place containers there (`nodes` of the provider block)."),
				"bridges": list("Bridges and virtual networks that the token may use or audit."),
				"storages": schema.MapNestedAttribute{
					MarkdownDescription: "Storages that the token may see, by name.", Computed: true,
					NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
						"type":                 text("Type, such as `dir`, `lvmthin`, `zfspool` or `btrfs`."),
						"active":               flag("Whether it can be used now."),
						"shared":               flag("Whether other nodes see the same content."),
						"content":              list("What may be stored there."),
						"containers":           flag("Whether it takes root disks of containers."),
						"snapshots":            flag("Whether containers on it can be snapshotted; null for a type that isn't known."),
						"linked_clones":        flag("Whether a template on it can be cloned without copying; null for a type that isn't known."),
						"templates":            flag("Whether a container on it can be made into a template; null for a type that isn't known."),
						"rollback_newest_only": flag("Whether only the newest snapshot can be rolled back to (ZFS)."),
						"size":                 number("Size in GiB."),
						"used":                 number("Space in use, in GiB."),
					}},
				},
			}},
		},
		"datacenter_firewall": schema.SingleNestedAttribute{
			MarkdownDescription: "The datacenter's firewall: while it is off, no guest is filtered.", Computed: true,
			Attributes: map[string]schema.Attribute{
				"enabled":    flag("Whether it is on; null where the token may not see it (`Sys.Audit` on `/`)."),
				"policy_in":  text("What happens to traffic to the nodes that no rule names."),
				"policy_out": text("What happens to traffic from the nodes that no rule names."),
				"would_filter": schema.ListAttribute{
					MarkdownDescription: "While it is off: ids of the containers that turning it on would begin to filter, because their own firewall is on. Of those that the token may see.",
					ElementType:         types.Int64Type, Computed: true,
				},
			},
		},
		"identity": schema.SingleNestedAttribute{
			MarkdownDescription: "Who the provider is on the server.", Computed: true,
			Attributes: map[string]schema.Attribute{
				"user":                 text("Account, `name@realm`."),
				"name":                 text("Name of the API token; null for a login by password."),
				"root":                 flag("Whether the account is root@pam."),
				"privilege_separation": flag("Whether the token has rights of its own; null for a login, and where the token may not look itself up (`User.Modify`), as a narrow one may not."),
				"expires_at":           text("When the token ends (RFC 3339); null for never or unknown."),
				"may_grant":            flag("Whether it may give rights (`Permissions.Modify` on `/`), and so give itself all."),
			},
		},
		"privileges": rows("Every privilege that the features need."),
		"missing":    rows("Those that are not there."),
		"roles": schema.MapAttribute{
			MarkdownDescription: "The least roles for the features: the privileges of each, by name. One role for each kind of path.",
			ElementType:         texts, Computed: true,
		},
		"commands": list("The `pveum` commands, for root on a node, that make these roles and give them to the token and its user, or to `sandbox@pve` when the provider is root or an administrator now. Roles that are right already are left out."),
		"findings": schema.ListNestedAttribute{
			MarkdownDescription: "What should be seen to.", Computed: true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"severity": text("`error` for what keeps a feature from working, else `warning`."),
				"summary":  text("What was found."),
				"remedy":   text("What to do about it."),
			}},
		},
	}
}

func (m *model) fill(p sandbox.Preflight) {
	m.ID = types.StringValue("preflight")
	m.OK = types.BoolValue(p.OK())
	m.Version = types.StringValue(p.Version)
	m.Quorate = types.BoolPointerValue(p.Quorate)
	m.ClockDifference = types.Float64Value(math.Round(p.ServerAhead.Seconds()*2) / 2)
	m.Nodes = nodesValue(p.Nodes)
	m.Firewall = firewallValue(p.Firewall)
	m.Identity = identityValue(p.Identity)
	m.Privileges = privilegesValue(p.Privileges)
	m.Missing = privilegesValue(preflight.Missing(p.Privileges))
	roles := map[string]attr.Value{}
	for _, r := range p.Plan.Roles {
		roles[r.ID] = value.TextList(r.Privileges)
	}
	m.Roles = types.MapValueMust(texts, roles)
	m.Commands = value.TextList(p.Commands)
	findings := make([]attr.Value, len(p.Findings))
	for i, f := range p.Findings {
		findings[i] = types.ObjectValueMust(findingTypes, map[string]attr.Value{
			"severity": types.StringValue(string(f.Severity)), "summary": types.StringValue(f.Summary), "remedy": types.StringValue(f.Remedy),
		})
	}
	m.Findings = types.ListValueMust(types.ObjectType{AttrTypes: findingTypes}, findings)
}

func nodesValue(nodes []sandbox.PreflightNode) types.Map {
	out := map[string]attr.Value{}
	for _, n := range nodes {
		storages := map[string]attr.Value{}
		for _, s := range n.Storages {
			ability := func(can bool) types.Bool {
				if !s.Known {
					return types.BoolNull()
				}
				return types.BoolValue(can)
			}
			storages[s.Name] = types.ObjectValueMust(storageTypes, map[string]attr.Value{
				"type": types.StringValue(s.Type), "active": types.BoolValue(s.Active), "shared": types.BoolValue(s.Shared),
				"content": value.TextList(s.Content), "containers": types.BoolValue(s.Containers), "snapshots": ability(s.Snapshots),
				"linked_clones": ability(s.LinkedClones), "templates": ability(s.Templates),
				"rollback_newest_only": types.BoolValue(s.RollbackNewestOnly),
				"size":                 types.Float64Value(s.TotalGiB), "used": types.Float64Value(s.UsedGiB),
			})
		}
		out[n.Name] = types.ObjectValueMust(nodeTypes, map[string]attr.Value{
			"online": types.BoolValue(n.Online), "used": types.BoolValue(n.Used), "bridges": value.TextList(n.Bridges),
			"storages": types.MapValueMust(types.ObjectType{AttrTypes: storageTypes}, storages),
		})
	}
	return types.MapValueMust(types.ObjectType{AttrTypes: nodeTypes}, out)
}

func firewallValue(f sandbox.PreflightFirewall) types.Object {
	ids := make([]attr.Value, len(f.WouldFilter))
	for i, id := range f.WouldFilter {
		ids[i] = types.Int64Value(int64(id))
	}
	return types.ObjectValueMust(firewallTypes, map[string]attr.Value{
		"enabled": types.BoolPointerValue(f.Enabled), "policy_in": value.TextOrNull(f.PolicyIn), "policy_out": value.TextOrNull(f.PolicyOut),
		"would_filter": types.ListValueMust(types.Int64Type, ids),
	})
}

func identityValue(id sandbox.PreflightIdentity) types.Object {
	expires := types.StringNull()
	if !id.Expires.IsZero() {
		expires = types.StringValue(id.Expires.Format("2006-01-02T15:04:05Z07:00"))
	}
	return types.ObjectValueMust(identityTypes, map[string]attr.Value{
		"user": types.StringValue(id.User), "name": value.TextOrNull(id.Token), "root": types.BoolValue(id.Root),
		"privilege_separation": types.BoolPointerValue(id.PrivilegeSeparation), "expires_at": expires, "may_grant": types.BoolValue(id.MayGrant),
	})
}

func privilegesValue(rows []preflight.Privilege) types.List {
	out := make([]attr.Value, len(rows))
	for i, r := range rows {
		out[i] = types.ObjectValueMust(privilegeTypes, map[string]attr.Value{
			"privilege": types.StringValue(r.Privilege), "path": types.StringValue(r.Path), "feature": types.StringValue(string(r.Feature)),
			"needed_for": types.StringValue(r.For), "present": types.BoolValue(r.Present),
		})
	}
	return types.ListValueMust(types.ObjectType{AttrTypes: privilegeTypes}, out)
}
