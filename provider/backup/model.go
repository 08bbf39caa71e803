package backup

import (
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

// Model is a sandbox_backup in configuration, plan and state.
type Model struct {
	ID          types.String   `tfsdk:"id"`
	ContainerID types.String   `tfsdk:"container_id"`
	Storage     types.String   `tfsdk:"storage"`
	Mode        types.String   `tfsdk:"mode"`
	Compression types.String   `tfsdk:"compression"`
	Notes       types.String   `tfsdk:"notes"`
	Protected   types.Bool     `tfsdk:"protected"`
	KeepLast    types.Int64    `tfsdk:"keep_last"`
	Triggers    types.Map      `tfsdk:"triggers"`
	VolID       types.String   `tfsdk:"volid"`
	Size        types.Int64    `tfsdk:"size"`
	CreatedAt   types.String   `tfsdk:"created_at"`
	NodeName    types.String   `tfsdk:"node_name"`
	Claim       types.String   `tfsdk:"claim"`
	Timeouts    timeouts.Value `tfsdk:"timeouts"`
}

// thing names the backup for a diagnostic.
func (m *Model) thing() string { return "backup of container " + m.ContainerID.ValueString() }

func (m *Model) vmid() int {
	vmid, _ := strconv.Atoi(m.ContainerID.ValueString())
	return vmid
}

func (m *Model) spec() sandbox.BackupSpec {
	return sandbox.BackupSpec{
		VMID:        m.vmid(),
		Storage:     m.Storage.ValueString(),
		Mode:        m.Mode.ValueString(),
		Compression: m.Compression.ValueString(),
		Notes:       m.Notes.ValueString(),
		Protected:   m.Protected.ValueBool(),
		KeepLast:    int(m.KeepLast.ValueInt64()),
	}
}

// ref is how the domain finds the backup and proves that it is the one.
func (m *Model) ref() sandbox.BackupRef {
	return sandbox.BackupRef{
		VolID:   m.VolID.ValueString(),
		Storage: m.Storage.ValueString(),
		VMID:    m.vmid(),
		Node:    m.NodeName.ValueString(),
		Series:  m.Claim.ValueString(),
	}
}

// track writes down what is needed to find what a creation leaves.
func (m *Model) track(ref sandbox.BackupRef) {
	m.NodeName = types.StringValue(ref.Node)
	m.Claim = types.StringValue(ref.Series)
	m.ID, m.VolID, m.CreatedAt, m.Size = types.StringNull(), types.StringNull(), types.StringNull(), types.Int64Null()
}

// fill writes what the server says into the model: the one way from the server to a state.
func (m *Model) fill(b sandbox.Backup) {
	m.ID = types.StringValue(b.VolID)
	m.ContainerID = types.StringValue(strconv.Itoa(b.VMID))
	m.Storage = types.StringValue(b.Storage)
	m.Notes = types.StringNull()
	if b.Notes != "" {
		m.Notes = types.StringValue(b.Notes)
	}
	m.Protected = types.BoolValue(b.Protected)
	m.VolID = types.StringValue(b.VolID)
	m.Size = types.Int64Value(b.SizeBytes)
	m.CreatedAt = types.StringValue(b.CreatedAt.UTC().Format(time.RFC3339))
	m.NodeName = types.StringValue(b.Node)
	m.Claim = types.StringValue(b.Series)
}

// imported is the model of a backup that no configuration has described yet: what the server can't say is as the
// defaults have it.
func imported(b sandbox.Backup) *Model {
	m := &Model{
		Mode:        types.StringValue(sandbox.BackupSnapshot),
		Compression: types.StringValue(compressionOf(b.VolID)),
		KeepLast:    types.Int64Value(1),
		Triggers:    types.MapNull(types.StringType),
		Timeouts:    base.NullTimeouts(),
	}
	m.fill(b)
	return m
}

// compressionOf reads a file's ending; an archive without one is on a Proxmox Backup Server, which has its own way.
func compressionOf(volid string) string {
	for ending, compression := range map[string]string{
		".tar": sandbox.BackupUncompressed, ".tar.gz": sandbox.BackupGzip, ".tar.lzo": sandbox.BackupLzo,
	} {
		if strings.HasSuffix(volid, ending) {
			return compression
		}
	}
	return sandbox.BackupZstd
}

// needsNew tells whether only a new backup can be what the plan asks for.
func needsNew(plan, state *Model) bool {
	for _, pair := range [][2]attr.Value{
		{plan.Storage, state.Storage}, {plan.Mode, state.Mode}, {plan.Compression, state.Compression}, {plan.Triggers, state.Triggers},
	} {
		if !pair[0].Equal(pair[1]) {
			return true
		}
	}
	return false
}
