package acctest

import (
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/target"
)

// Environment is a Proxmox VE that a test may use, and the part of it that is this test's own: the owner and the vmid
// range are no other test's. ProviderConfig and Variables write it down for the provider.
type Environment struct {
	target.Target

	// Lab is the lab behind all this, nil on a real server. Tests that use it call NeedsLab first.
	Lab *Lab
}

// New prepares an Environment for one test and cleans up after it. Options shape the lab and have no effect on a real
// server, so a test that depends on one says so by NeedsLab or NeedsNodes.
func New(t testing.TB, options ...Option) *Environment {
	t.Helper()
	prepareCommandLine(t)
	var env *Environment
	if onRealServer() {
		env = fromVariables(t)
		takeRange(t, env)
	} else {
		env = startLab(t, options)
	}
	env.Owner = newOwner()
	t.Cleanup(func() { sweep(t, env) })
	return env
}
