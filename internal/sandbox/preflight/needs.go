package preflight

import "slices"

// Feature is a part of the provider that needs privileges of its own.
type Feature string

// The features, in the public interface's words.
const (
	// Containers is sandbox_container made by cloning a template, and all that lives inside of one.
	Containers Feature = "containers"
	// TemplateFiles is sandbox_container made from a template file.
	TemplateFiles Feature = "template_files"
	// Snapshots is sandbox_snapshot and sandbox_rollback.
	Snapshots Feature = "snapshots"
	// Backups is sandbox_backup.
	Backups Feature = "backups"
	// Migration is a change of node_name.
	Migration Feature = "migration"
	// Cluster is sandbox_cluster.
	Cluster Feature = "cluster"
	// Network is network.mode with the rules in each guest's own firewall.
	Network Feature = "network"
	// FirewallGroups is sandbox_firewall_group.
	FirewallGroups Feature = "firewall_groups"
	// DatacenterFirewall is sandbox_datacenter_firewall.
	DatacenterFirewall Feature = "datacenter_firewall"
	// NodeGuard is sandbox_node_guard.
	NodeGuard Feature = "node_guard"
	// Pools is moving containers into and out of Proxmox pools.
	Pools Feature = "pools"
	// Diagnostics is what sandbox_diagnostics shows beyond a sandbox's own configuration.
	Diagnostics Feature = "diagnostics"
	// Templates is the Packer builder: template files fetched and containers made into templates.
	Templates Feature = "templates"
)

// Features are all of them, in the order of the documentation.
func Features() []Feature {
	return []Feature{
		Containers, TemplateFiles, Snapshots, Backups, Migration, Cluster, Network,
		FirewallGroups, DatacenterFirewall, NodeGuard, Pools, Diagnostics, Templates,
	}
}

// DefaultFeatures are those that are looked at unless others are named: what needs no right to change the datacenter,
// a node or a pool.
func DefaultFeatures() []Feature {
	return []Feature{Containers, Snapshots, Backups, Migration, Cluster, Network}
}

// Place is what a privilege is needed on; [Target] makes paths of it.
type Place string

// The places.
const (
	Guests        Place = "guests"   // the provider's containers, by their pool or all
	Template      Place = "template" // the template that is cloned
	Storage       Place = "storage"  // root disks
	BackupStorage Place = "backups"  // backups
	FileStorage   Place = "files"    // template files
	Bridge        Place = "bridge"   // the containers' bridge, and the template's
	Pool          Place = "pool"     // the Proxmox pool itself
	Root          Place = "cluster"  // "/" alone, not what is below
	Nodes         Place = "node"     // the nodes
)

// Need is one privilege that a feature needs somewhere.
type Need struct {
	Feature   Feature
	Privilege string
	On        Place
	// For says what needs it.
	For string
	// Hides marks a privilege without which the server shows less instead of answering 403.
	Hides bool
}

// needs is the table. All of these privileges exist in Proxmox VE 8 and 9 (Sys.AccessNetwork since 8.2).
var needs = []Need{
	{Feature: Containers, Privilege: "VM.Allocate", On: Guests, For: "create and destroy containers, nesting"},
	{Feature: Containers, Privilege: "VM.Audit", On: Guests, For: "read containers: every refresh"},
	{Feature: Containers, Privilege: "VM.Config.CPU", On: Guests, For: "cores, cpu_limit, cpu_units"},
	{Feature: Containers, Privilege: "VM.Config.Disk", On: Guests, For: "disk, workspaces"},
	{Feature: Containers, Privilege: "VM.Config.Memory", On: Guests, For: "memory, swap"},
	{Feature: Containers, Privilege: "VM.Config.Network", On: Guests, For: "hostname, network, dns, the guest's firewall"},
	{Feature: Containers, Privilege: "VM.Config.Options", On: Guests, For: "the ownership marker, tags, description, on_boot, startup, protection"},
	{Feature: Containers, Privilege: "VM.PowerMgmt", On: Guests, For: "start, stop, restart"},
	{Feature: Containers, Privilege: "VM.Clone", On: Template, For: "clone the template"},
	{Feature: Containers, Privilege: "VM.Audit", On: Template, For: "read the template: checks at plan, template_current"},
	{Feature: Containers, Privilege: "Datastore.AllocateSpace", On: Storage, For: "root disks and workspaces"},
	{Feature: Containers, Privilege: "Datastore.Audit", On: Storage, For: "see the storage and what is on it: checks at plan", Hides: true},
	{Feature: Containers, Privilege: "SDN.Use", On: Bridge, For: "connect containers to the bridge, and clone a template that is on it"},

	{Feature: TemplateFiles, Privilege: "Datastore.Audit", On: FileStorage, For: "create from a template file (template_file_id)"},

	{Feature: Snapshots, Privilege: "VM.Snapshot", On: Guests, For: "take, describe and delete snapshots, and roll back"},

	{Feature: Backups, Privilege: "VM.Backup", On: Guests, For: "make, list and delete backups"},
	{Feature: Backups, Privilege: "Datastore.AllocateSpace", On: BackupStorage, For: "store and delete backups"},

	{Feature: Migration, Privilege: "VM.Migrate", On: Guests, For: "a change of node_name"},

	{Feature: Cluster, Privilege: "Sys.Audit", On: Root, For: "quorum and nodes"},

	{Feature: Network, Privilege: "Sys.Audit", On: Root, For: "see whether the datacenter's firewall is on"},

	{Feature: FirewallGroups, Privilege: "Sys.Audit", On: Root, For: "read security groups"},
	{Feature: FirewallGroups, Privilege: "Sys.Modify", On: Root, For: "write security groups and IP sets"},

	{Feature: DatacenterFirewall, Privilege: "Sys.Audit", On: Root, For: "read the datacenter's firewall"},
	{Feature: DatacenterFirewall, Privilege: "Sys.Modify", On: Root, For: "turn the datacenter's firewall on"},

	{Feature: NodeGuard, Privilege: "Sys.Audit", On: Nodes, For: "read the node's firewall rules"},
	{Feature: NodeGuard, Privilege: "Sys.Modify", On: Nodes, For: "write the node's firewall rules"},

	{Feature: Pools, Privilege: "Pool.Allocate", On: Pool, For: "move containers into and out of the pool"},
	{Feature: Pools, Privilege: "Pool.Audit", On: Pool, For: "read the pool"},

	{Feature: Diagnostics, Privilege: "Sys.Audit", On: Nodes, For: "the node's own firewall, and the tasks of others"},
	{Feature: Diagnostics, Privilege: "VM.Console", On: Guests, For: "the guest's firewall log"},

	{Feature: Templates, Privilege: "Datastore.AllocateTemplate", On: FileStorage, For: "fetch and upload template files"},
	{Feature: Templates, Privilege: "Sys.AccessNetwork", On: Nodes, For: "let the node fetch a template file from a URL"},
}

// Needs lists what the features need, in the table's order.
func Needs(features ...Feature) []Need {
	var out []Need
	for _, n := range needs {
		if slices.Contains(features, n.Feature) {
			out = append(out, n)
		}
	}
	return out
}
