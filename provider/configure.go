package provider

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

// Configure reads the provider block and the environment. It sends no request: a server that is away must not keep
// `terraform validate` or an unrelated plan from working.
func (p *sandboxProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	s := &settler{getenv: p.getenv, diags: &resp.Diagnostics}
	connection := settleConnection(s, m)
	settings := settleSettings(ctx, s, m)
	settings.Node = settleNode(ctx, s, m, connection.Endpoint)
	if resp.Diagnostics.HasError() {
		return
	}
	if len(s.unknown) > 0 {
		p.configureUnknown(s.unknown, req, resp)
		return
	}
	checkSettings(settings, connection, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}

	log := base.NewLogger(secretsOf(connection, settings)...)
	connection.UserAgent = "terraform-provider-sandbox/" + p.version()
	connection.Logger = log
	if p.options.Connection != nil {
		p.options.Connection(&connection)
	}
	client, err := pve.New(connection)
	if err != nil {
		addConnectionErrors(&resp.Diagnostics, err)
		return
	}
	domain := p.options.Domain
	domain.Logger = log
	manager, err := sandbox.NewManager(client, settings, domain)
	if err != nil {
		base.AddError(&resp.Diagnostics, "configure", "the provider", err)
		return
	}
	hand(resp, &base.Data{Manager: manager, Runs: agentrun.New(manager, domain.Clock, log), Settings: settings, Now: p.now})
}

// configureUnknown leaves the provider without a server: plans are made without asking it, and whatever needs it says
// which attributes are missing.
func (p *sandboxProvider) configureUnknown(unknown []string, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	slices.Sort(unknown)
	unknown = slices.Compact(unknown)
	if req.ClientCapabilities.DeferralAllowed {
		resp.Deferred = &provider.Deferred{Reason: provider.DeferredReasonProviderConfigUnknown}
	} else {
		resp.Diagnostics.AddWarning("The provider's configuration is not known yet",
			fmt.Sprintf("%s will be known only after apply. Until then nothing is checked against the server, and whatever must be read from it fails.",
				strings.Join(unknown, ", ")))
	}
	hand(resp, &base.Data{Unknown: unknown})
}

// hand gives the data to everything that the provider serves.
func hand(resp *provider.ConfigureResponse, data *base.Data) {
	resp.ResourceData = data
	resp.DataSourceData = data
	resp.EphemeralResourceData = data
	resp.ActionData = data
	resp.ListResourceData = data
}

func settleConnection(s *settler, m model) pve.Config {
	connection := pve.Config{
		Endpoint: s.text("endpoint", m.Endpoint),
		Token:    s.text("api_token", m.APIToken),
		Username: s.text("username", m.Username),
		Password: s.text("password", m.Password),
		OTP:      s.text("otp", m.OTP),
		TLS: pve.TLSConfig{
			CAFile:      s.text("ca_file", m.CAFile),
			CAPEM:       s.text("ca_pem", m.CAPEM),
			Fingerprint: s.text("fingerprint", m.Fingerprint),
			Insecure:    s.truth("insecure", m.Insecure),
		},
	}
	// A token in the configuration and a login in the environment (or the other way round) is one choice and one
	// leftover, not a contradiction: what stands in the configuration counts.
	switch {
	case !m.APIToken.IsNull():
		connection.Username, connection.Password, connection.OTP = "", "", ""
	case !m.Username.IsNull() || !m.Password.IsNull():
		connection.Token = ""
	}
	return connection
}

func settleSettings(ctx context.Context, s *settler, m model) sandbox.Settings {
	settings := sandbox.Settings{
		Owner:      s.text("owner", m.Owner),
		Adopt:      s.truth("adopt", m.Adopt),
		Nodes:      s.list("nodes", m.Nodes),
		TemplateID: s.number("template_id", m.TemplateID),
		PoolID:     s.text("pool_id", m.PoolID),
		Storage:    s.text("storage", m.Storage),
		Bridge:     s.text("bridge", m.Bridge),
		MaxClones:  s.number("max_clones", m.MaxClones),
	}
	settings.Management = settleManagement(s, m)
	settings.FirewallSettle = settleTimeout(s, "firewall_settle", s.text("firewall_settle", m.FirewallSettle))
	ids := open[vmidRangeModel](ctx, s, "vmid_range", m.VMIDRange)
	settings.VMIDs = sandbox.VMIDRange{
		First: s.number("vmid_range.first", ids.First),
		Last:  s.number("vmid_range.last", ids.Last),
	}
	settings.Addresses = settleAddresses(ctx, s, m)
	settings.Guest = settleGuest(ctx, s, m)
	return settings
}

// settleManagement reads networks; an address alone is a network of one.
func settleManagement(s *settler, m model) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range s.list("management_cidrs", m.ManagementCIDRs) {
		prefix, err := netip.ParsePrefix(text)
		if addr, addrErr := netip.ParseAddr(text); addrErr == nil {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			addSettingError(s.diags, "management_cidrs", "must hold networks such as 10.10.0.0/24 or addresses, got "+quoteOrMissing(text))
			continue
		}
		out = append(out, prefix.Masked())
	}
	return out
}

func settleAddresses(ctx context.Context, s *settler, m model) *sandbox.AddressRange {
	a := open[addressRangeModel](ctx, s, "address_range", m.AddressRange)
	cidr := s.text("address_range.cidr", a.CIDR)
	first := s.text("address_range.first", a.First)
	gateway := s.text("address_range.gateway", a.Gateway)
	if len(s.unknown) > 0 || cidr == "" && first == "" && gateway == "" {
		return nil
	}
	var out sandbox.AddressRange
	var err error
	if out.CIDR, err = netip.ParsePrefix(cidr); err != nil {
		addSettingError(s.diags, "address_range.cidr", "must be an IPv4 network such as 10.10.0.0/16, got "+quoteOrMissing(cidr))
	}
	if out.First, err = netip.ParseAddr(first); err != nil {
		addSettingError(s.diags, "address_range.first", "must be an IPv4 address such as 10.10.1.0, got "+quoteOrMissing(first))
	}
	if gateway != "" {
		if out.Gateway, err = netip.ParseAddr(gateway); err != nil {
			addSettingError(s.diags, "address_range.gateway", "must be an IPv4 address such as 10.10.0.1, got "+quoteOrMissing(gateway))
		}
	}
	return &out
}

func quoteOrMissing(value string) string {
	if value == "" {
		return "nothing"
	}
	return fmt.Sprintf("%q", value)
}

func addSettingError(diags *diag.Diagnostics, attribute, problem string) {
	diags.AddAttributeError(base.AttributePath(attribute), "Invalid provider configuration",
		fmt.Sprintf("%s %s. It is set in the provider block or by %s.", attribute, problem, strings.Join(variablesOf(attribute), ", ")))
}

// checkSettings reports what is wrong with the provider block itself, at its attributes.
func checkSettings(settings sandbox.Settings, connection pve.Config, diags *diag.Diagnostics) {
	if (settings.VMIDs.First == 0) != (settings.VMIDs.Last == 0) {
		missing := "vmid_range.last"
		if settings.VMIDs.First == 0 {
			missing = "vmid_range.first"
		}
		addSettingError(diags, missing, "is missing: a range needs both ends")
		return
	}
	for _, problem := range settings.Check() {
		problem.Attribute = strings.TrimPrefix(problem.Attribute, base.ProviderPrefix)
		base.AddProblems(diags, []sandbox.Problem{problem})
	}
	if connection.TLS.Insecure {
		diags.AddAttributeWarning(path.Root("insecure"), "The server's certificate is not checked",
			"insecure is set: whoever sits between this machine and the server can read and change everything, the credentials included. "+
				"Set fingerprint (the web interface shows it under Node, Certificates) or ca_file instead.")
	}
}

// connectionAttributes are the provider's attributes behind the fields that the access layer refuses.
var connectionAttributes = map[string]string{
	"Endpoint":        "endpoint",
	"Token":           "api_token",
	"Username":        "username",
	"Password":        "password",
	"OTP":             "otp",
	"TLS":             "insecure",
	"TLS.CAFile":      "ca_file",
	"TLS.CAPEM":       "ca_pem",
	"TLS.Fingerprint": "fingerprint",
	"TLS.Insecure":    "insecure",
}

func addConnectionErrors(diags *diag.Diagnostics, err error) {
	var many interface{ Unwrap() []error }
	errs := []error{err}
	if errors.As(err, &many) {
		errs = many.Unwrap()
	}
	for _, err := range errs {
		var field *pve.ConfigError
		if errors.As(err, &field) && connectionAttributes[field.Field] != "" {
			addSettingError(diags, connectionAttributes[field.Field], field.Problem)
			continue
		}
		base.AddError(diags, "configure", "the provider", err)
	}
}

func secretsOf(connection pve.Config, settings sandbox.Settings) []string {
	// Of a token, the part behind the "=" is the secret; alone it must be masked too.
	_, uuid, _ := strings.Cut(connection.Token, "=")
	secrets := []string{connection.Token, uuid, connection.Password, connection.OTP}
	logins := []guest.Config{settings.Guest}
	if settings.Node != nil {
		logins = append(logins, settings.Node.SSH)
	}
	for _, login := range logins {
		secrets = append(secrets, login.Auth.PrivateKey)
		if jump := login.ProxyJump; jump != nil {
			secrets = append(secrets, jump.Auth.PrivateKey)
		}
	}
	return secrets
}

func (p *sandboxProvider) getenv(name string) string {
	if p.options.Getenv == nil {
		return systemGetenv(name)
	}
	return p.options.Getenv(name)
}

func (p *sandboxProvider) now() time.Time {
	if p.options.Domain.Clock == nil {
		return time.Now()
	}
	return p.options.Domain.Clock.Now()
}

func (p *sandboxProvider) version() string {
	if p.options.Version == "" {
		return "dev"
	}
	return p.options.Version
}

func settleTimeout(s *settler, attribute, value string) time.Duration {
	if value == "" {
		return 0
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		addSettingError(s.diags, attribute, fmt.Sprintf(`must be a positive duration such as "90s", got %q`, value))
	}
	return d
}
