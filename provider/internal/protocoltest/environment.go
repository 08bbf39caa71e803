package protocoltest

import (
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
)

// NoEnvironment is an environment without variables, so that those of the machine don't reach a test.
func NoEnvironment(string) string { return "" }

// For starts a configured server for an acceptance environment. The environment's values come in as variables, so
// that config holds only what the test is about.
func For(t testing.TB, env *acctest.Environment, config Values) *Server {
	t.Helper()
	return ForWith(t, env, config, provider.Options{})
}

// ForWith is For with other options of the provider; version and environment are set here.
func ForWith(t testing.TB, env *acctest.Environment, config Values, options provider.Options) *Server {
	t.Helper()
	variables := env.Variables()
	options.Version = "test"
	options.Getenv = func(name string) string { return variables[name] }
	s := New(t, provider.NewWith(options), config)
	s.unfiltered = !env.Firewalled(t)
	return s
}
