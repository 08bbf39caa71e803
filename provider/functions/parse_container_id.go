package functions

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

var _ function.Function = parseContainerID{}

type parseContainerID struct{}

// NewParseContainerID returns the function parse_container_id.
func NewParseContainerID() function.Function { return parseContainerID{} }

var containerIDAttributes = map[string]attr.Type{
	"vmid":      types.Int64Type,
	"node_name": types.StringType,
}

func (parseContainerID) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "parse_container_id"
}

func (parseContainerID) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Split a container's import id into its node and its vmid",
		MarkdownDescription: "Splits `\"100012\"` or `\"pve1/100012\"`, the two forms that `terraform import` takes, into an object with `vmid` (number) and " +
			"`node_name` (string, null when the id names no node).",
		Parameters: []function.Parameter{
			function.StringParameter{
				Name:                "id",
				MarkdownDescription: "`vmid` or `node/vmid`.",
			},
		},
		Return: function.ObjectReturn{AttributeTypes: containerIDAttributes},
	}
}

func (parseContainerID) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var id string
	resp.Error = req.Arguments.Get(ctx, &id)
	if resp.Error != nil {
		return
	}
	nodeName, vmid, err := sandbox.ParseContainerID(id)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	node := types.StringNull()
	if nodeName != "" {
		node = types.StringValue(nodeName)
	}
	object, diags := types.ObjectValue(containerIDAttributes, map[string]attr.Value{
		"vmid":      types.Int64Value(int64(vmid)),
		"node_name": node,
	})
	if resp.Error = function.FuncErrorFromDiags(ctx, diags); resp.Error != nil {
		return
	}
	resp.Error = resp.Result.Set(ctx, object)
}
