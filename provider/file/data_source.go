package file

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var _ datasource.DataSourceWithConfigure = (*fileDataSource)(nil)

const (
	defaultMaxBytes = 1 << 20
	maxMaxBytes     = 16 << 20
)

type fileDataSource struct{ base.DataSourceBase }

// NewDataSource returns sandbox_file, the data source.
func NewDataSource() datasource.DataSource { return &fileDataSource{} }

func (d *fileDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_file"
}

func (d *fileDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	text := func(s string) schema.Attribute { return schema.StringAttribute{MarkdownDescription: s, Computed: true} }
	resp.Schema = schema.Schema{
		MarkdownDescription: "A file inside a running sandbox, read at every refresh. Its content stands in the state: not for secrets.",
		Attributes: map[string]schema.Attribute{
			"container_id": schema.StringAttribute{MarkdownDescription: base.ContainerIDDescription, Required: true, Validators: base.ContainerIDValidators()},
			"host_key":     schema.StringAttribute{MarkdownDescription: base.HostKeyDescription, Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)}},
			"path":         schema.StringAttribute{MarkdownDescription: "Absolute path of the file.", Required: true, Validators: pathValidators()},
			"max_bytes": schema.Int64Attribute{
				MarkdownDescription: fmt.Sprintf("Largest size that is read, in bytes, 1 to %d. Default %d. A larger file is an error, not cut.", maxMaxBytes, defaultMaxBytes),
				Optional:            true,
				Validators:          []validator.Int64{int64validator.Between(1, maxMaxBytes)},
			},
			"id":             text("`container_id` followed by `path`."),
			"content":        text("Content as text; null if it isn't UTF-8."),
			"content_base64": text("Content in base64."),
			"sha256":         text("SHA-256 of the content, in hexadecimal."),
			"size":           schema.Int64Attribute{MarkdownDescription: "Size in bytes.", Computed: true},
			"owner":          text("Owner and group, `user:group`."),
			"mode":           text("Permission bits, octal, such as `0644`."),
		},
	}
}

type dataModel struct {
	ContainerID   types.String `tfsdk:"container_id"`
	HostKey       types.String `tfsdk:"host_key"`
	Path          types.String `tfsdk:"path"`
	MaxBytes      types.Int64  `tfsdk:"max_bytes"`
	ID            types.String `tfsdk:"id"`
	Content       types.String `tfsdk:"content"`
	ContentBase64 types.String `tfsdk:"content_base64"`
	SHA256        types.String `tfsdk:"sha256"`
	Size          types.Int64  `tfsdk:"size"`
	Owner         types.String `tfsdk:"owner"`
	Mode          types.String `tfsdk:"mode"`
}

func (d *fileDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m dataModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	manager, ok := d.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	inside, err := base.Inside(m.ContainerID, m.HostKey)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("container_id"), "Invalid container", err.Error())
		return
	}
	limit := int64(defaultMaxBytes)
	if !m.MaxBytes.IsNull() {
		limit = m.MaxBytes.ValueInt64()
	}
	thing := fmt.Sprintf("file %s in container %s", m.Path.ValueString(), m.ContainerID.ValueString())
	info, err := manager.StatFile(ctx, inside, m.Path.ValueString(), false)
	if err != nil {
		base.AddError(&resp.Diagnostics, "read", thing, err)
		return
	}
	content, err := manager.ReadFile(ctx, inside, m.Path.ValueString(), limit)
	if err != nil {
		base.AddError(&resp.Diagnostics, "read", thing, err)
		return
	}
	// The hash is of what was read here: the file may have changed since it was looked at.
	sum := sha256.Sum256(content)
	m.ID = types.StringValue(fileID(m.ContainerID.ValueString(), m.Path.ValueString()))
	m.Content = types.StringNull()
	if utf8.Valid(content) {
		m.Content = types.StringValue(string(content))
	}
	m.ContentBase64 = types.StringValue(base64.StdEncoding.EncodeToString(content))
	m.SHA256 = types.StringValue(hex.EncodeToString(sum[:]))
	m.Size = types.Int64Value(int64(len(content)))
	m.Owner = types.StringValue(info.Owner + ":" + info.Group)
	m.Mode = types.StringValue(fmt.Sprintf("%04o", octal(permissions(info.Mode))))
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
