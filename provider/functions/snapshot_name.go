package functions

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/function"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

var _ function.Function = snapshotName{}

type snapshotName struct{}

// NewSnapshotName returns the function snapshot_name.
func NewSnapshotName() function.Function { return snapshotName{} }

func (snapshotName) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "snapshot_name"
}

func (snapshotName) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Turn any text into a snapshot name that Proxmox VE accepts",
		MarkdownDescription: "Returns a snapshot name that Proxmox VE accepts: 2 to 40 characters, a letter first, then letters, digits, `_` and `-`. " +
			"A text that is such a name already is returned unchanged. Otherwise every run of other characters becomes one `-`, and a name that " +
			"doesn't begin with a letter gets `s-` in front. A name that had to be cut, and the reserved names `current` and `vzdump`, end in " +
			"8 hexadecimal digits of the text's SHA-256, so that long texts with the same beginning stay different.",
		Parameters: []function.Parameter{
			function.StringParameter{
				Name:                "text",
				MarkdownDescription: "The text to turn into a name; not empty.",
			},
		},
		Return: function.StringReturn{},
	}
}

func (snapshotName) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var text string
	resp.Error = req.Arguments.Get(ctx, &text)
	if resp.Error != nil {
		return
	}
	name, err := sandbox.SnapshotName(text)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, name)
}
