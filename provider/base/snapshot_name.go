package base

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// SnapshotName returns a validator for names of snapshots. Its message offers what the function snapshot_name would make
// of a name that Proxmox VE doesn't take.
func SnapshotName() validator.String { return snapshotName{} }

type snapshotName struct{}

func (snapshotName) Description(context.Context) string {
	return fmt.Sprintf("must have 2 to %d characters: a letter first, then letters, digits, - and _; not current or vzdump", sandbox.MaxSnapshotName)
}

func (v snapshotName) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (snapshotName) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	for _, p := range sandbox.CheckSnapshotName("", req.ConfigValue.ValueString()) {
		resp.Diagnostics.AddAttributeError(req.Path, p.Summary, p.Detail)
	}
}
