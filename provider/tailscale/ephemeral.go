// Package tailscale is the ephemeral resource sandbox_tailscale_key: an auth key of Tailscale's for one container, minted
// for a run of Terraform and revoked at its end.
package tailscale

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"tailscale.com/client/tailscale/v2"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/redact"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var (
	_ ephemeral.EphemeralResourceWithConfigure = (*key)(nil)
	_ ephemeral.EphemeralResourceWithClose     = (*key)(nil)
)

const (
	// longest is how long a key may be valid: it is used within the run that mints it.
	longest = 10 * time.Minute
	// requestTimeout bounds each request to Tailscale.
	requestTimeout = 30 * time.Second
)

// Variables that stand for attributes, as Tailscale's own provider reads them.
const (
	varAPIKey       = "TAILSCALE_API_KEY" //nolint:gosec // a variable's name
	varClientID     = "TAILSCALE_OAUTH_CLIENT_ID"
	varClientSecret = "TAILSCALE_OAUTH_CLIENT_SECRET" //nolint:gosec // a variable's name
	varTailnet      = "TAILSCALE_TAILNET"
	varBaseURL      = "TAILSCALE_BASE_URL"
)

type key struct{ base.EphemeralBase }

// NewEphemeralResource returns ephemeral sandbox_tailscale_key.
func NewEphemeralResource() ephemeral.EphemeralResource { return &key{} }

func (k *key) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_tailscale_key"
}

func (k *key) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	optional := func(description string, validators ...validator.String) schema.StringAttribute {
		return schema.StringAttribute{MarkdownDescription: description, Optional: true, Validators: append([]validator.String{stringvalidator.LengthAtLeast(1)}, validators...)}
	}
	secret := func(a schema.StringAttribute) schema.StringAttribute { a.Sensitive = true; return a }
	resp.Schema = schema.Schema{
		MarkdownDescription: "Mints an auth key of Tailscale's with which one container joins a tailnet (`tailscale.auth_key_wo`): it can be used once, its device is ephemeral and preauthorised, it is valid for 10 minutes at most, and it is revoked when the run of Terraform ends. " +
			"One is minted in each plan and each apply; one that nobody used does nothing. It needs Terraform 1.10 or OpenTofu 1.11.",
		Attributes: map[string]schema.Attribute{
			"api_key": secret(optional("API access token of Tailscale's. This, or `oauth_client_id` and `oauth_client_secret`, is required. Variable `"+varAPIKey+"`.",
				stringvalidator.ConflictsWith(path.MatchRoot("oauth_client_id"), path.MatchRoot("oauth_client_secret")))),
			"oauth_client_id":     optional("Id of an OAuth client with the scope `auth_keys` and the `tags`. Variable `" + varClientID + "`."),
			"oauth_client_secret": secret(optional("Secret of the OAuth client. Variable `" + varClientSecret + "`.")),
			"tailnet":             optional("Name of the tailnet. Default that of the credentials. Variable `" + varTailnet + "`."),
			"base_url":            optional("Address of the API. Default `https://api.tailscale.com`; `http://` is taken for this machine only. Variable `" + varBaseURL + "`."),
			"tags": schema.ListAttribute{
				MarkdownDescription: "Tags that the device gets, such as `tag:sandbox`; an OAuth client needs at least one.",
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.UniqueValues(), listvalidator.ValueStringsAre(stringvalidator.RegexMatches(regexp.MustCompile(`^tag:[a-zA-Z][a-zA-Z0-9-]*$`), "must be a tag such as tag:sandbox"))},
			},
			"description": optional("What Tailscale's list of keys says of it: letters, digits, blanks and `-`, at most 50 characters. Default `sandbox`.",
				stringvalidator.RegexMatches(regexp.MustCompile(`^[A-Za-z0-9 -]{1,50}$`), "must be letters, digits, blanks and -, at most 50 characters")),
			"expiry": optional("How long the key is valid, as a Go duration, at most `10m` (default).", expiryValidator{}),
			"key": schema.StringAttribute{
				MarkdownDescription: "The auth key.",
				Computed:            true,
				Sensitive:           true,
			},
			"id":         schema.StringAttribute{MarkdownDescription: "The key's id, as Tailscale's list of keys has it.", Computed: true},
			"expires_at": schema.StringAttribute{MarkdownDescription: "When it ends at the latest, in RFC 3339.", Computed: true},
		},
	}
}

type model struct {
	APIKey       types.String `tfsdk:"api_key"`
	ClientID     types.String `tfsdk:"oauth_client_id"`
	ClientSecret types.String `tfsdk:"oauth_client_secret"`
	Tailnet      types.String `tfsdk:"tailnet"`
	BaseURL      types.String `tfsdk:"base_url"`
	Tags         types.List   `tfsdk:"tags"`
	Description  types.String `tfsdk:"description"`
	Expiry       types.String `tfsdk:"expiry"`
	Key          types.String `tfsdk:"key"`
	ID           types.String `tfsdk:"id"`
	ExpiresAt    types.String `tfsdk:"expires_at"`
}

func (k *key) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if k.Data == nil {
		resp.Diagnostics.AddError("The provider is not configured", "This is a fault of the provider: please report it.")
		return
	}
	c, err := m.client()
	if err != nil {
		base.AddError(&resp.Diagnostics, "mint", "a Tailscale key", err)
		return
	}
	var request tailscale.CreateKeyRequest
	request.Capabilities.Devices.Create.Ephemeral = true
	request.Capabilities.Devices.Create.Preauthorized = true
	request.Description = or(m.Description, "", "sandbox")
	lifetime := longest
	if !m.Expiry.IsNull() {
		lifetime, _ = time.ParseDuration(m.Expiry.ValueString()) // validated
	}
	request.ExpirySeconds = int64(lifetime / time.Second)
	if !m.Tags.IsNull() {
		resp.Diagnostics.Append(m.Tags.ElementsAs(ctx, &request.Capabilities.Devices.Create.Tags, false)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	minted, err := c.client.Keys().CreateAuthKey(limited, request)
	if err != nil {
		base.AddError(&resp.Diagnostics, "mint", "a Tailscale key", c.explain(err))
		return
	}
	secrets := redact.New(minted.Key)
	// From here on the key exists: whatever happens, Close revokes it.
	resp.Diagnostics.Append(k.Data.Opened.Keep(ctx, resp.Private, func(ctx context.Context) diag.Diagnostics { return c.revoke(ctx, minted, secrets) })...)
	create := minted.Capabilities.Devices.Create
	if minted.Key == "" || minted.ID == "" || create.Reusable {
		resp.Diagnostics.Append(c.revoke(ctx, minted, secrets)...)
		resp.Diagnostics.AddError("Unable to mint a Tailscale key", "Tailscale answered with a key that isn't for one use, or with none. It was revoked.")
		return
	}
	m.Key, m.ID = types.StringValue(minted.Key), types.StringValue(minted.ID)
	m.ExpiresAt = types.StringValue(minted.Expires.UTC().Format(time.RFC3339))
	resp.Diagnostics.Append(resp.Result.Set(ctx, &m)...)
}

func (k *key) Close(ctx context.Context, req ephemeral.CloseRequest, resp *ephemeral.CloseResponse) {
	if k.Data != nil {
		resp.Diagnostics.Append(k.Data.Opened.End(ctx, req.Private)...)
	}
}

// connection is a client with what must not be shown of it.
type connection struct {
	client  *tailscale.Client
	secrets *redact.Redactor
}

// explain writes an error without credentials: those of a library are none of ours to trust.
func (c *connection) explain(err error) error { return fmt.Errorf("%s", c.secrets.Text(err.Error())) }

// revoke removes a key. Its failure is a warning: the key ends by itself within minutes, and can be used once.
func (c *connection) revoke(ctx context.Context, minted *tailscale.Key, secrets *redact.Redactor) diag.Diagnostics {
	if minted.ID == "" {
		return nil
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	err := c.client.Keys().Delete(limited, minted.ID)
	if err == nil || tailscale.IsNotFound(err) {
		return nil
	}
	return diag.Diagnostics{diag.NewWarningDiagnostic("The Tailscale key could not be revoked",
		fmt.Sprintf("Key %s can be used once more until %s, unless it was used: %s. Revoke it in the admin console, under Settings, Keys.",
			minted.ID, minted.Expires.UTC().Format(time.RFC3339), secrets.Known(c.explain(err).Error())))}
}

// client takes attributes over variables, and makes a client.
func (m *model) client() (*connection, error) {
	apiKey, id, secret := or(m.APIKey, varAPIKey, ""), or(m.ClientID, varClientID, ""), or(m.ClientSecret, varClientSecret, "")
	switch { // one in the configuration and another in the environment is one choice and one leftover
	case !m.APIKey.IsNull():
		id, secret = "", ""
	case !m.ClientID.IsNull() || !m.ClientSecret.IsNull():
		apiKey = ""
	}
	c := &tailscale.Client{
		Tailnet: or(m.Tailnet, varTailnet, ""), APIKey: apiKey, UserAgent: "terraform-provider-sandbox",
		HTTP: &http.Client{Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	switch {
	case apiKey != "":
	case id != "" && secret != "":
		c.Auth = &tailscale.OAuth{ClientID: id, ClientSecret: secret, Scopes: []string{"auth_keys"}}
	default:
		return nil, fmt.Errorf("there are no credentials: set api_key (%s), or oauth_client_id and oauth_client_secret (%s, %s)", varAPIKey, varClientID, varClientSecret)
	}
	if text := or(m.BaseURL, varBaseURL, ""); text != "" {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && !(u.Scheme == "http" && isHere(u.Hostname())) {
			return nil, fmt.Errorf("base_url must be https://… without credentials in it")
		}
		c.BaseURL = u
	}
	return &connection{client: c, secrets: redact.New(apiKey, secret)}, nil
}

func isHere(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback() && net.ParseIP(host) != nil
}

// or is the attribute's value, else the variable's, else the default.
func or(attribute types.String, variable, fallback string) string {
	if !attribute.IsNull() {
		return attribute.ValueString()
	}
	if variable != "" {
		if value := os.Getenv(variable); value != "" {
			return value
		}
	}
	return fallback
}

type expiryValidator struct{}

func (expiryValidator) Description(context.Context) string {
	return `must be a duration from "1m" to "10m"`
}

func (v expiryValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v expiryValidator) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if d, err := time.ParseDuration(req.ConfigValue.ValueString()); err != nil || d < time.Minute || d > longest {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid duration", fmt.Sprintf("%s %s, got %q.", req.Path, v.Description(ctx), req.ConfigValue.ValueString()))
	}
}
