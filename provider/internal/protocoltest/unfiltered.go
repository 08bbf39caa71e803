package protocoltest

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// A container without a network mode gets a filtered one, which a server whose firewall is off can't give. There, what
// a test leaves out becomes "unmanaged", so that tests about something else run on any server; those about modes say
// acctest.NeedsFirewall.

// needsMode are the attributes of network that go with a managed mode only.
var needsMode = []string{"mode", "allow", "canaries", "proof", "firewall_group"}

// placed is config as it can be had on the server, and whether that is another than the test's.
func (s *Server) placed(typeName string, config Values) (Values, bool) {
	if !s.unfiltered || config == nil {
		return config, false
	}
	switch typeName {
	case "sandbox_container":
		return placedContainer(config)
	case "sandbox_pool":
		member, ok := asMap(config["member"])
		if !ok {
			return config, false
		}
		shape, changed := placedContainer(member)
		out := maps.Clone(config)
		out["member"] = map[string]any(shape)
		return out, changed
	}
	return config, false
}

func placedContainer(config Values) (Values, bool) {
	network := map[string]any{}
	if given := config["network"]; given != nil {
		var ok bool
		if network, ok = asMap(given); !ok {
			return config, false // unknown
		}
	}
	for _, name := range needsMode {
		if _, ok := network[name]; ok {
			return config, false
		}
	}
	network = maps.Clone(network)
	network["mode"] = "unmanaged"
	out := maps.Clone(config)
	out["network"] = network
	return out, true
}

// withoutModeWarning leaves out what the provider says about a mode that the test didn't choose.
func withoutModeWarning(diags []*tfprotov6.Diagnostic) []*tfprotov6.Diagnostic {
	return slices.DeleteFunc(diags, func(d *tfprotov6.Diagnostic) bool {
		return d.Summary == "The container has no managed firewall" || d.Summary == "The members have no managed firewall"
	})
}
