// Package version is the plugin's version.
package version

import "github.com/hashicorp/packer-plugin-sdk/version"

// Version and VersionPrerelease are set when a release is built.
var (
	Version           = "0.1.0"
	VersionPrerelease = "dev"
	VersionMetadata   = ""
)

// PluginVersion is what the plugin says of itself.
var PluginVersion *version.PluginVersion

func init() {
	PluginVersion = version.NewPluginVersion(Version, VersionPrerelease, VersionMetadata)
}
