package snapshot

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// Model is a sandbox_snapshot in configuration, plan and state.
type Model struct {
	ID                types.String   `tfsdk:"id"`
	ContainerID       types.String   `tfsdk:"container_id"`
	Name              types.String   `tfsdk:"name"`
	Description       value.String   `tfsdk:"description"`
	IncludeWorkspaces types.Bool     `tfsdk:"include_workspaces"`
	CreatedAt         types.String   `tfsdk:"created_at"`
	Parent            types.String   `tfsdk:"parent"`
	Timeouts          timeouts.Value `tfsdk:"timeouts"`
}

func (m *Model) spec() sandbox.SnapshotSpec {
	return sandbox.SnapshotSpec{
		Name:              m.Name.ValueString(),
		Description:       value.Unix(m.Description.ValueString()),
		IncludeWorkspaces: m.IncludeWorkspaces.ValueBool(),
	}
}

// thing names the snapshot in messages.
func (m *Model) thing() string {
	return "snapshot " + m.Name.ValueString() + " of container " + m.ContainerID.ValueString()
}

// fill writes what the server says into the model, and keeps the spelling of what means the same.
func (m *Model) fill(s sandbox.Snapshot) {
	m.ID = types.StringValue(m.ContainerID.ValueString() + "/" + s.Name)
	m.CreatedAt = timeOrNull(s.Created)
	m.Parent = value.TextOrNull(s.Parent)
	said := value.DescriptionType.Known(s.Description)
	switch {
	case s.Description == "" && value.Unix(m.Description.ValueString()) == "" && !m.Description.IsUnknown():
		// null and "" are the configuration's
	case s.Description == "":
		m.Description = value.DescriptionType.Null()
	case m.Description.IsNull() || !m.Description.Same(said):
		m.Description = said
	}
}

// timeOrNull is a time in RFC 3339; null for none, which is what a snapshot has that nobody has seen done.
func timeOrNull(at time.Time) types.String {
	if at.IsZero() {
		return types.StringNull()
	}
	return types.StringValue(at.UTC().Format(time.RFC3339))
}
