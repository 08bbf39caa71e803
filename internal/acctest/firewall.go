package acctest

import (
	"context"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// Firewalled says whether containers with a managed network mode can be made here: the datacenter's firewall is on, and
// it is known where guests see us come from. A lab is made so; on a real server it is read, never changed.
func (env *Environment) Firewalled(t testing.TB) bool {
	t.Helper()
	if env.Lab != nil {
		return true
	}
	if len(env.Management) == 0 && env.SSH.ProxyJump != nil {
		return false
	}
	client, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	options, err := client.FirewallOptions(ctx, pve.ClusterFirewall())
	if err != nil {
		t.Logf("whether the datacenter's firewall is on can't be seen, so containers are unmanaged: %v", err)
		return false
	}
	return options.Enable != nil && *options.Enable
}

// Network is the attribute network of a container whose firewall isn't what a test is about: nothing where the default
// mode can be had, else the mode that needs no firewall. attributes are added, "ipv4 = \"auto\"".
func (env *Environment) Network(t testing.TB, attributes ...string) string {
	t.Helper()
	if !env.Firewalled(t) {
		attributes = append(attributes, `mode = "unmanaged"`)
	}
	if len(attributes) == 0 {
		return ""
	}
	text := "network = {\n"
	for _, a := range attributes {
		text += "    " + a + "\n"
	}
	return text + "  }"
}

// NeedsFirewall skips the test on a server where managed network modes can't be had.
func NeedsFirewall(t testing.TB, env *Environment) {
	t.Helper()
	if !env.Firewalled(t) {
		t.Skipf("needs the datacenter's firewall to be on, and %s where there is a jump host", prefix+varManagement)
	}
}
