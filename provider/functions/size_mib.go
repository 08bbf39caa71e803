package functions

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/function"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

var _ function.Function = sizeMiB{}

type sizeMiB struct{}

// NewSizeMiB returns the function size_mib.
func NewSizeMiB() function.Function { return sizeMiB{} }

func (sizeMiB) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "size_mib"
}

func (sizeMiB) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Convert a size with a unit into MiB",
		MarkdownDescription: "Converts a size such as `\"8G\"`, `\"512MiB\"` or `\"1.5G\"` into a whole number of MiB, the unit of `memory` and `swap`. " +
			"Units are `K`, `M`, `G` and `T`, also spelled `KiB` or `KB` and so on, and always powers of 1024, as Proxmox VE counts; a number " +
			"alone is MiB. A size that isn't a whole number of MiB is an error rather than rounded.",
		Parameters: []function.Parameter{
			function.StringParameter{
				Name:                "size",
				MarkdownDescription: "A number and its unit.",
			},
		},
		Return: function.Int64Return{},
	}
}

func (sizeMiB) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var size string
	resp.Error = req.Arguments.Get(ctx, &size)
	if resp.Error != nil {
		return
	}
	mib, err := sandbox.SizeMiB(size)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, mib)
}
