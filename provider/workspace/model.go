package workspace

import (
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// statusHolderMissing is this package's own: the domain reads no workspace whose holder is gone.
const statusHolderMissing = "holder_missing"

// Model is a sandbox_workspace in configuration, plan and state.
type Model struct {
	ID          types.String   `tfsdk:"id"`
	Claim       types.String   `tfsdk:"claim"`
	Name        types.String   `tfsdk:"name"`
	Size        types.Int64    `tfsdk:"size"`
	Storage     types.String   `tfsdk:"storage"`
	NodeName    types.String   `tfsdk:"node_name"`
	ForkOf      types.String   `tfsdk:"fork_of"`
	Status      types.String   `tfsdk:"status"`
	ContainerID types.String   `tfsdk:"container_id"`
	Path        types.String   `tfsdk:"path"`
	Timeouts    timeouts.Value `tfsdk:"timeouts"`
}

// number reads an id that a validator has seen; 0 for none.
func number(v types.String) int {
	n, _ := strconv.Atoi(v.ValueString())
	return n
}

func (m *Model) thing() string { return "workspace " + m.Name.ValueString() }

// ref is how the domain finds the holder and proves that it is the one.
func (m *Model) ref() sandbox.Ref {
	return sandbox.Ref{VMID: number(m.ID), Node: m.NodeName.ValueString(), Claim: m.Claim.ValueString()}
}

// spec is what the model asks for; unknown values read as "left out".
func (m *Model) spec() sandbox.WorkspaceSpec {
	return sandbox.WorkspaceSpec{
		Name:     m.Name.ValueString(),
		SizeGiB:  int(m.Size.ValueInt64()),
		Storage:  m.Storage.ValueString(),
		NodeName: m.NodeName.ValueString(),
		ForkOf:   number(m.ForkOf),
	}
}

// fill writes what the server says into the model: the one way from the server to a state.
func (m *Model) fill(w sandbox.Workspace) {
	m.track(w.Ref)
	m.Name = types.StringValue(w.Name)
	m.NodeName = types.StringValue(w.Node)
	m.Status = types.StringValue(string(w.Status))
	m.ContainerID, m.Path = types.StringNull(), types.StringNull()
	if w.Attached != nil {
		m.ContainerID = types.StringValue(strconv.Itoa(w.Attached.VMID))
		m.Path = value.TextOrNull(w.Attached.Path)
	}
	// Of a volume that isn't found, or lies unused where no size stands, what was known stays.
	if w.SizeGiB > 0 {
		m.Size = types.Int64Value(int64(w.SizeGiB))
	}
	if w.Storage != "" {
		m.Storage = types.StringValue(w.Storage)
	}
	m.settle()
}

// track writes down what is needed to find the holder again.
func (m *Model) track(ref sandbox.Ref) {
	m.ID = types.StringValue(strconv.Itoa(ref.VMID))
	m.Claim = value.TextOrNull(ref.Claim)
	if ref.Node != "" && !value.Known(m.NodeName) {
		m.NodeName = types.StringValue(ref.Node)
	}
}

// settle replaces what is still unknown by null: a state can't hold unknown values.
func (m *Model) settle() {
	for _, v := range []*types.String{&m.ID, &m.Claim, &m.Storage, &m.NodeName, &m.Status, &m.ContainerID, &m.Path} {
		if v.IsUnknown() {
			*v = types.StringNull()
		}
	}
	if m.Size.IsUnknown() {
		m.Size = types.Int64Null()
	}
}
