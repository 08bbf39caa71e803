package container

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// waits holds the attributes whose values the configuration doesn't know yet, by their first name.
type waits map[string]bool

// entangled attributes are judged together: while one is unknown, nothing can be said about the others.
var entangled = [][]string{
	{"template_id", "template_file_id", "restore_from", "full_clone", "storage", "disk", "node_name", "vmid"},
	{"claim_from_pool_id", "on_empty", "template_id", "pool_id"},
	{"network", "vmid", "wait_for", "started", "template_id", "template_file_id", "restore_from"},
}

// waiting finds them.
func waiting(config *Model) waits {
	out := waits{}
	for name, v := range map[string]attr.Value{
		"hostname": config.Hostname, "template_id": config.TemplateID, "template_file_id": config.TemplateFileID,
		"restore_from": config.RestoreFrom,
		"full_clone":   config.FullClone, "storage": config.Storage, "node_name": config.NodeName, "vmid": config.VMID,
		"pool_id": config.PoolID, "cores": config.Cores, "cpu_limit": config.CPULimit, "cpu_units": config.CPUUnits,
		"memory": config.Memory, "swap": config.Swap, "disk": config.Disk, "nesting": config.Nesting,
		"tags": config.Tags, "description": config.Description, "protection": config.Protection, "on_boot": config.OnBoot,
		"startup": config.Startup, "started": config.Started, "network": config.Network, "dns": config.DNS,
		"authorized_keys": config.AuthorizedKeys, "authorized_keys_wo": config.AuthorizedKeysWO, "wait_for": config.WaitFor,
		"restart_when_needed": config.RestartWhenNeeded, "snapshot_before_update": config.SnapshotBeforeUpdate, "workspace": config.Workspace,
		"lease": config.Lease, "claim_from_pool_id": config.ClaimFromPoolID, "on_empty": config.OnEmpty,
	} {
		if holdsUnknown(v) {
			out[name] = true
		}
	}
	direct := make([]string, 0, len(out))
	for name := range out {
		direct = append(direct, name)
	}
	for _, group := range entangled {
		for _, name := range direct {
			if contains(group, name) {
				for _, other := range group {
					out[other] = true
				}
			}
		}
	}
	return out
}

func contains(group []string, name string) bool {
	for _, member := range group {
		if member == name {
			return true
		}
	}
	return false
}

// holdsUnknown tells whether a value or anything in it is unknown.
func holdsUnknown(v attr.Value) bool {
	if v.IsUnknown() {
		return true
	}
	var inner []attr.Value
	switch v := v.(type) {
	case types.Object:
		for _, a := range v.Attributes() {
			inner = append(inner, a)
		}
	case interface{ Elements() []attr.Value }:
		inner = v.Elements()
	}
	for _, v := range inner {
		if holdsUnknown(v) {
			return true
		}
	}
	return false
}

func (w waits) any() bool { return len(w) > 0 }

// decided leaves the problems out that an unknown value may still solve.
func (w waits) decided(problems []sandbox.Problem) []sandbox.Problem {
	var out []sandbox.Problem
	for _, p := range problems {
		first, _, _ := strings.Cut(p.Attribute, ".")
		first, _, _ = strings.Cut(first, "[")
		if !w[first] {
			out = append(out, p)
		}
	}
	return out
}

// sandbox is what the state remembers of the container, for checks of a change.
func (m *Model) sandbox(ctx context.Context, diags *diag.Diagnostics) *sandbox.Sandbox {
	spec := m.spec(ctx, diags)
	s := &sandbox.Sandbox{
		Ref:        m.ref(),
		Hostname:   spec.Hostname,
		Source:     spec.Source,
		Storage:    m.Storage.ValueString(),
		PoolID:     spec.PoolID,
		Cores:      spec.Cores,
		MemoryMiB:  int(m.Memory.ValueInt64()),
		SwapMiB:    int(m.Swap.ValueInt64()),
		CPULimit:   m.CPULimit.ValueFloat64(),
		CPUUnits:   int(m.CPUUnits.ValueInt64()),
		DiskGiB:    m.Disk.ValueFloat64(),
		Nesting:    m.Nesting.ValueBool(),
		Tags:       spec.Tags,
		Protection: spec.Protection,
		OnBoot:     spec.OnBoot,
		Status:     sandbox.Status(m.Status.ValueString()),
		Network: sandbox.NetworkState{
			Present:      true,
			Bridge:       spec.Network.Bridge,
			VLANID:       spec.Network.VLANID,
			MTU:          spec.Network.MTU,
			RateLimitMBs: spec.Network.RateLimitMBs,
			MACAddress:   spec.Network.MACAddress,
			IPv4:         spec.Network.IPv4,
			Gateway:      spec.Network.Gateway,
			IPv6:         spec.Network.IPv6,
		},
	}
	s.Workspaces = m.attached(ctx, diags)
	s.Posture, _ = postureOf(m.Posture)
	return s
}
