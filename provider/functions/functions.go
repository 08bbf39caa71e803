// Package functions holds the provider-defined functions: pure, offline, and the same in every plan.
package functions

import "github.com/hashicorp/terraform-plugin-framework/function"

// All lists the constructors of every function that the provider serves.
func All() []func() function.Function {
	return []func() function.Function{
		NewSnapshotName,
		NewParseContainerID,
		NewSizeMiB,
		NewRepoSlug,
		NewEgressRules,
		NewExposureName,
		NewExposureURL,
		NewProxyConfig,
		NewDevelopmentPorts,
		NewMergeProfiles,
		NewLeaderboard,
	}
}
