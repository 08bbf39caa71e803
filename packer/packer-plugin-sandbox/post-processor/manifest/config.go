//go:generate packer-sdc mapstructure-to-hcl2 -type Config
//go:generate packer-sdc struct-markdown

package manifest

import (
	"github.com/hashicorp/packer-plugin-sdk/common"
	"github.com/hashicorp/packer-plugin-sdk/template/interpolate"
)

// Config says what is written where.
type Config struct {
	common.PackerConfig `mapstructure:",squash"`

	// The template's manifest, the file /etc/sandbox/template.json in it. Default: `<template name>.template.json`.
	Output string `mapstructure:"output"`
	// The software bill of materials, CycloneDX 1.6 as JSON: agents, runtimes, packages, source, build and audit. Default:
	// `<template name>.cdx.json`.
	SBOM string `mapstructure:"sbom"`

	ctx interpolate.Context
}
