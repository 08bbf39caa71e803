package acctest

import (
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

// Feature is something that not every supported command line has.
type Feature string

// Features, named as Terraform's documentation does.
const (
	ResourceIdentity Feature = "resource identity"
	ListResources    Feature = "list resources"
	Actions          Feature = "actions"
)

// since is the first version of each product that has a feature; a product that isn't listed has none. The versions
// of the products are unrelated numbers, so terraform-plugin-testing's tfversion checks can't tell.
var since = map[Feature]map[tfcli.Product]string{
	ResourceIdentity: {tfcli.Terraform: "1.12.0", tfcli.OpenTofu: "1.12.0"},
	ListResources:    {tfcli.Terraform: "1.14.0"},
	Actions:          {tfcli.Terraform: "1.14.0"},
}

// Has says whether the command line of the tests has the feature.
func Has(t testing.TB, feature Feature) bool {
	t.Helper()
	cli := CommandLine(t)
	oldest, ok := since[feature][cli.Product]
	return ok && cli.AtLeast(cli.Product, oldest)
}

// SkipUnless skips the test where the command line lacks the feature.
func SkipUnless(t testing.TB, feature Feature) {
	t.Helper()
	if !Has(t, feature) {
		t.Skipf("%s has no %s", CommandLine(t).Name(), feature)
	}
}

// NeedsLab skips the test on a real server. The reason says what only a lab can do, "injects a 596 at each request".
func NeedsLab(t testing.TB, reason string) {
	t.Helper()
	if onRealServer() {
		t.Skipf("needs the lab: %s", reason)
	}
}

// NeedsNodes skips the test where the environment has fewer nodes; on a lab, Nodes(n) makes as many.
func NeedsNodes(t testing.TB, env *Environment, n int) {
	t.Helper()
	if len(env.Nodes) < n {
		t.Skipf("needs %d nodes, %sNODE names %d", n, prefix, len(env.Nodes))
	}
}
