//go:generate packer-sdc mapstructure-to-hcl2 -type Config
//go:generate packer-sdc struct-markdown

package vztmpl

import (
	"github.com/hashicorp/packer-plugin-sdk/common"
	"github.com/hashicorp/packer-plugin-sdk/template/interpolate"

	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/access"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/builder/lxc"
)

// Config says where the template file goes.
type Config struct {
	common.PackerConfig `mapstructure:",squash"`
	access.Config       `mapstructure:",squash"`
	lxc.NodeSSH         `mapstructure:",squash"`

	// The storage that the archive is made on; it must be one of files (dir, NFS, CIFS), take backups, and have room for the template.
	// Default: `local`.
	BackupStoragePool string `mapstructure:"backup_storage_pool"`
	// The storage of the template file, of files too. Default: `backup_storage_pool`.
	TemplateStoragePool string `mapstructure:"template_storage_pool"`
	// The file's name, ending in `.tar.zst`. Default: `<template name>-<build id>.tar.zst`.
	Filename string `mapstructure:"filename"`

	ctx interpolate.Context
}
