package container

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"regexp"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// text is a validator for one string: what it must be, and whether a string is that.
type text struct {
	must string
	is   func(string) bool
}

func (v text) Description(context.Context) string         { return "must be " + v.must }
func (v text) MarkdownDescription(context.Context) string { return "must be " + v.must }

func (v text) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() || v.is(req.ConfigValue.ValueString()) {
		return
	}
	resp.Diagnostics.AddAttributeError(req.Path, "Invalid value",
		fmt.Sprintf("%s must be %s, got %q.", req.Path, v.must, req.ConfigValue.ValueString()))
}

func ipv4Setting() validator.String {
	return text{`"auto", "dhcp", "none" or an IPv4 address in CIDR form such as "10.0.0.5/24"`, func(s string) bool {
		prefix, err := netip.ParsePrefix(s)
		return s == sandbox.AddressAuto || s == sandbox.AddressDHCP || s == sandbox.AddressNone || err == nil && prefix.Addr().Is4()
	}}
}

func ipv6Setting() validator.String {
	return text{`"auto", "dhcp", "none" or an IPv6 address in CIDR form such as "2001:db8::5/64"`, func(s string) bool {
		prefix, err := netip.ParsePrefix(s)
		return s == sandbox.AddressAuto || s == sandbox.AddressDHCP || s == sandbox.AddressNone || err == nil && prefix.Addr().Is6()
	}}
}

func ipv4Address() validator.String {
	return text{`an IPv4 address such as "10.0.0.1"`, func(s string) bool {
		addr, err := netip.ParseAddr(s)
		return err == nil && addr.Is4()
	}}
}

func ipAddress() validator.String {
	return text{`an IP address such as "10.0.0.1"`, func(s string) bool {
		_, err := netip.ParseAddr(s)
		return err == nil
	}}
}

func macAddress() validator.String {
	return text{`a unicast MAC address such as "BC:24:11:00:00:01"`, func(s string) bool {
		mac, err := net.ParseMAC(s)
		return err == nil && len(mac) == 6 && len(s) == 17 && s[2] == ':' && mac[0]&1 == 0
	}}
}

func rfc3339() validator.String {
	return text{`a time in RFC 3339 such as "2026-12-01T18:00:00Z"`, func(s string) bool {
		_, err := time.Parse(time.RFC3339, s)
		return err == nil
	}}
}

func publicKey() validator.String {
	return text{`a public key in authorized_keys format such as "ssh-ed25519 AAAA… name"`, func(s string) bool {
		_, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(s))
		return err == nil && len(rest) == 0
	}}
}

// tagPattern is Proxmox VE's, with the capitals that it lowers.
var tagPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_+.-]*$`)

func tagText() validator.String {
	return stringvalidator.RegexMatches(tagPattern, `must be letters, digits, "_", "+", "." and "-", beginning with a letter, a digit or "_"`)
}

// wholeNumber refuses fractions where the server can report them but takes none.
type wholeNumber struct{}

func (wholeNumber) Description(context.Context) string         { return "must be a whole number" }
func (wholeNumber) MarkdownDescription(context.Context) string { return "must be a whole number" }

func (wholeNumber) ValidateFloat64(_ context.Context, req validator.Float64Request, resp *validator.Float64Response) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if v := req.ConfigValue.ValueFloat64(); v != math.Trunc(v) {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid value", fmt.Sprintf("%s must be a whole number, got %g.", req.Path, v))
	}
}
