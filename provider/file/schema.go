package file

import (
	"context"
	"regexp"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var (
	absolutePath = regexp.MustCompile(`^/([^/\x00]+/)*[^/\x00]+$`)
	octalMode    = regexp.MustCompile(`^[0-7]{3,4}$`)
	ownerText    = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*)?(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?$`)
)

const (
	defaultMode       = "0644"
	defaultSecretMode = "0600"
)

var limits = base.Timeouts{
	Create: 5 * time.Minute,
	Read:   2 * time.Minute,
	Update: 5 * time.Minute,
	Delete: 2 * time.Minute,
}

const live = " A change is applied in place, at once."

func pathValidators() []validator.String {
	return []validator.String{stringvalidator.RegexMatches(absolutePath, "must be an absolute path of a file, without a slash at its end")}
}

func (r *fileResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	sources := stringvalidator.ExactlyOneOf(path.MatchRoot("content"), path.MatchRoot("content_wo"), path.MatchRoot("source"))
	resp.Schema = schema.Schema{
		MarkdownDescription: "A file inside a sandbox. It is written so that a reader sees the old content or the new, never a part. A file that is there already is overwritten; missing folders above it are made (mode 0755). " +
			"A refresh compares the content's SHA-256, owner and mode, and the next apply writes them again where they differ. While the container doesn't run, files can't be seen, and a refresh leaves the state as it is.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "`container_id` followed by `path`, such as `100012/etc/motd`; the import id.",
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"container_id": schema.StringAttribute{
				MarkdownDescription: base.ContainerIDDescription + " A change replaces the file: it is removed there and written here.",
				Required:            true,
				Validators:          base.ContainerIDValidators(),
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"host_key": schema.StringAttribute{
				MarkdownDescription: base.HostKeyDescription + " A change touches nothing.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"path": schema.StringAttribute{
				MarkdownDescription: "Absolute path of the file. A change replaces the file.",
				Required:            true,
				Validators:          pathValidators(),
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"content": schema.StringAttribute{
				MarkdownDescription: "Content, as text; it stands in the state. This, `content_wo` or `source` is required." + live,
				Optional:            true,
				Validators:          []validator.String{sources},
			},
			"content_wo": schema.StringAttribute{
				MarkdownDescription: "Content that stands in no plan and no state, for secrets. Needs Terraform 1.11 or later. It is only written onto a file system in memory (tmpfs), such as below `/run`, so that it never reaches a disk; " +
					"it is gone when the container stops, and the next apply writes it again. A change is only seen when `content_wo_version` changes too. Drift is seen by presence, size and time of the last write.",
				Optional:   true,
				WriteOnly:  true,
				Validators: []validator.String{stringvalidator.AlsoRequires(path.MatchRoot("content_wo_version"))},
			},
			"content_wo_version": schema.Int64Attribute{
				MarkdownDescription: "Version of `content_wo`, any number. A change writes the file in place, at once.",
				Optional:            true,
				Validators:          []validator.Int64{int64validator.AlsoRequires(path.MatchRoot("content_wo"))},
			},
			"source": schema.StringAttribute{
				MarkdownDescription: "File on this machine to copy, of any content. What counts is its SHA-256 at plan time." + live,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"owner": schema.StringAttribute{
				MarkdownDescription: "Owner: `user`, `user:group` or `:group`, by name or number. A user alone brings its primary group. Default the login user. Another owner needs a login as root." + live,
				Optional:            true,
				Computed:            true,
				Validators: []validator.String{
					stringvalidator.LengthAtLeast(1),
					stringvalidator.RegexMatches(ownerText, `must be "user", "user:group" or ":group"`),
				},
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"mode": schema.StringAttribute{
				MarkdownDescription: "Permission bits, octal, such as `0755`. Default `0644`, with `content_wo` `0600`." + live,
				Optional:            true,
				Computed:            true,
				Validators:          []validator.String{stringvalidator.RegexMatches(octalMode, `must be an octal mode such as "0644"`)},
			},
			"sha256": schema.StringAttribute{
				MarkdownDescription: "SHA-256 of the content, in hexadecimal; null with `content_wo`.",
				Computed:            true,
			},
			"size":     schema.Int64Attribute{MarkdownDescription: "Size in bytes.", Computed: true},
			"timeouts": limits.Attribute(),
		},
	}
}
