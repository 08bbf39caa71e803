package provider

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

// variablePrefix begins the variable of every provider attribute: SANDBOX_GUEST_SSH_PORT for guest_ssh.port.
const variablePrefix = "SANDBOX_"

// sharedVariables are the names that users of other Proxmox providers have set already. Ours come first.
var sharedVariables = map[string]string{
	"endpoint":  "PROXMOX_VE_ENDPOINT",
	"api_token": "PROXMOX_VE_API_TOKEN",
	"username":  "PROXMOX_VE_USERNAME",
	"password":  "PROXMOX_VE_PASSWORD",
	"insecure":  "PROXMOX_VE_INSECURE",
}

// variablesOf lists the variables of an attribute, given by its dotted name, in the order in which they count.
func variablesOf(attribute string) []string {
	names := []string{variablePrefix + strings.ToUpper(strings.ReplaceAll(attribute, ".", "_"))}
	if shared, ok := sharedVariables[attribute]; ok {
		names = append(names, shared)
	}
	return names
}

// settler finds the value of each attribute: configuration over environment over the default (the zero value). It
// remembers which attributes aren't known yet.
type settler struct {
	getenv  func(string) string
	diags   *diag.Diagnostics
	unknown []string
}

// fromEnvironment returns the first variable of the attribute that is set, and its name.
func (s *settler) fromEnvironment(attribute string) (value, name string, ok bool) {
	for _, name := range variablesOf(attribute) {
		if value := s.getenv(name); value != "" {
			return value, name, true
		}
	}
	return "", "", false
}

// configured tells whether the configuration says the attribute, and notes an unknown one.
func (s *settler) configured(attribute string, v attr.Value) bool {
	if v.IsUnknown() {
		s.unknown = append(s.unknown, attribute)
		return true
	}
	return !v.IsNull()
}

func (s *settler) text(attribute string, v types.String) string {
	if s.configured(attribute, v) {
		return v.ValueString()
	}
	value, _, _ := s.fromEnvironment(attribute)
	return value
}

func (s *settler) number(attribute string, v types.Int64) int {
	if s.configured(attribute, v) {
		return int(v.ValueInt64())
	}
	value, name, ok := s.fromEnvironment(attribute)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil {
		s.refuse(attribute, name, value, "a whole number")
	}
	return n
}

func (s *settler) truth(attribute string, v types.Bool) bool {
	if s.configured(attribute, v) {
		return v.ValueBool()
	}
	value, name, ok := s.fromEnvironment(attribute)
	if !ok {
		return false
	}
	b, err := strconv.ParseBool(strings.TrimSpace(value))
	if err != nil {
		s.refuse(attribute, name, value, "true or false")
	}
	return b
}

// list reads a comma-separated variable.
func (s *settler) list(attribute string, v types.List) []string {
	if s.configured(attribute, v) {
		var out []string
		for _, element := range v.Elements() {
			text, ok := element.(types.String)
			if !ok || text.IsUnknown() {
				s.unknown = append(s.unknown, attribute)
				return nil
			}
			out = append(out, text.ValueString())
		}
		return out
	}
	value, _, ok := s.fromEnvironment(attribute)
	if !ok {
		return nil
	}
	var out []string
	for _, item := range strings.Split(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// pairs reads a variable of the form "name=value,name=value".
func (s *settler) pairs(attribute string, v types.Map) map[string]string {
	if s.configured(attribute, v) {
		out := map[string]string{}
		for name, element := range v.Elements() {
			text, ok := element.(types.String)
			if !ok || text.IsUnknown() {
				s.unknown = append(s.unknown, attribute)
				return nil
			}
			out[name] = text.ValueString()
		}
		return out
	}
	value, variable, ok := s.fromEnvironment(attribute)
	if !ok {
		return nil
	}
	out := map[string]string{}
	for _, item := range strings.Split(value, ",") {
		name, text, found := strings.Cut(strings.TrimSpace(item), "=")
		if !found || name == "" || text == "" {
			s.refuse(attribute, variable, value, "of the form name=value,name=value")
			return nil
		}
		out[name] = text
	}
	return out
}

// refuse reports a variable of the wrong form. The value is shown: no secret has a form to be of.
func (s *settler) refuse(attribute, variable, value, want string) {
	s.diags.AddAttributeError(base.AttributePath(attribute), "Invalid environment variable",
		fmt.Sprintf("%s must be %s, got %q. It stands for the provider's attribute %s.", variable, want, value, attribute))
}
