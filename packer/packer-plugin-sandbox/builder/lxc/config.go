//go:generate packer-sdc mapstructure-to-hcl2 -type Config,RootFS,MountPoint,NetworkAdapter,Features,NodeSSH
//go:generate packer-sdc struct-markdown

package lxc

import (
	"time"

	"github.com/hashicorp/packer-plugin-sdk/common"
	"github.com/hashicorp/packer-plugin-sdk/communicator"
	"github.com/hashicorp/packer-plugin-sdk/template/config"
	"github.com/hashicorp/packer-plugin-sdk/template/interpolate"

	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/access"
)

// Config is a template and how it is built.
type Config struct {
	common.PackerConfig `mapstructure:",squash"`
	// Comm is Packer's communicator; besides "ssh" and "none" there is "pct".
	Comm          communicator.Config `mapstructure:",squash"`
	access.Config `mapstructure:",squash"`

	// The node that builds. Default: the node of a clone's source, or the one with the most free memory that has the storages.
	Node string `mapstructure:"node"`
	// A Proxmox VE pool for the template, and for the clone that proves it.
	Pool string `mapstructure:"pool"`
	// The template's id, from 100 on. Default: a new one for each build, so that running clones keep their base.
	VMID int `mapstructure:"vm_id"`
	// The hostname while it is built. Default: `template_name`.
	VMName string `mapstructure:"vm_name"`
	// The template's name, a DNS name: the same for all of its generations. Default: the source's name in the Packer template.
	TemplateName string `mapstructure:"template_name"`
	// Notes, before the ownership marker that is written below them. At most 7,600 characters.
	TemplateDescription string `mapstructure:"template_description"`
	// Tags, separated by semicolons. The tag `sbx-<owner>` is added.
	Tags string `mapstructure:"tags"`
	// How many generations of the template stay, the new one included. Older ones that carry our marker and that no container
	// was cloned from are removed once the new one is done. Default: all.
	Keep int `mapstructure:"keep"`
	// Leave a stopped container in place of a template. Nothing is proved then. Default: `false`.
	SkipConvertToTemplate bool `mapstructure:"skip_convert_to_template"`

	// A template file on the server: `local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst`. Exactly one of `os_template`,
	// `template_url`, `oci_image`, `clone_vm` and `clone_vm_id` must be set.
	OSTemplate string `mapstructure:"os_template"`
	// Address of a template file that the node fetches into `template_storage_pool`, where it stays.
	TemplateURL string `mapstructure:"template_url"`
	// Its checksum: `sha256:…`, `sha384:…` or `sha512:…`. Required with `template_url`.
	TemplateChecksum string `mapstructure:"template_checksum"`
	// The storage for `template_url` and `oci_image`. Default: the node's first that takes template files.
	TemplateStoragePool string `mapstructure:"template_storage_pool"`
	// An OCI image that the node pulls, `docker.io/library/debian:13` (Proxmox VE 9.1 and later).
	OCIImage string `mapstructure:"oci_image"`
	// The name of a container or container template to clone.
	CloneVM string `mapstructure:"clone_vm"`
	// The id of a container or container template to clone.
	CloneVMID int `mapstructure:"clone_vm_id"`
	// Copy the disk of a template that is cloned, so that the new template doesn't need it. Default: `true`.
	FullClone config.Trilean `mapstructure:"full_clone"`

	// Map the container's root to an ordinary user of the node. `false` makes root inside root outside. Default: `true`.
	Unprivileged config.Trilean `mapstructure:"unprivileged"`
	// What the container may do beyond the ordinary. Default: `nesting = true`.
	Features Features `mapstructure:"features"`
	// `debian`, `ubuntu`, `alpine`, … Default: found out.
	OSType string `mapstructure:"ostype"`
	// `amd64`, `arm64`, … Default: found out.
	Arch string `mapstructure:"arch"`
	// Number of cores. Default: `2`.
	Cores int `mapstructure:"cores"`
	// Limit of CPU time, in cores. Default: none.
	CPULimit float64 `mapstructure:"cpulimit"`
	// Weight of CPU time. Default: the server's.
	CPUUnits int `mapstructure:"cpuunits"`
	// Memory in MiB. Default: `2048`.
	Memory int `mapstructure:"memory"`
	// Swap in MiB. Default: `0`.
	Swap int `mapstructure:"swap"`
	// The root disk.
	RootFS RootFS `mapstructure:"rootfs"`
	// Further volumes. They become part of the template.
	MountPoints []MountPoint `mapstructure:"mount_points"`
	// Network interfaces, `eth0` first. Default for a template file: one on `vmbr0` with DHCP; for a clone: the source's. None at
	// all: `network_adapters_none = true`.
	NetworkAdapters []NetworkAdapter `mapstructure:"network_adapters"`
	// Build without a network; needs `communicator = "pct"`. Default: `false`.
	NoNetwork bool `mapstructure:"network_adapters_none"`
	// Name servers, separated by spaces. Default: the node's.
	Nameserver string `mapstructure:"nameserver"`
	// Search domain. Default: the node's.
	SearchDomain string `mapstructure:"searchdomain"`
	// Time zone, `host` for the node's. Default: the template file's.
	Timezone string `mapstructure:"timezone"`
	// A hook script's volume id. Only a login as root@pam may set it.
	Hookscript string `mapstructure:"hookscript"`
	// Lines of LXC's own, which the API can't write: `["lxc.cgroup2.pids.max: 4096", "lxc.cap.drop: sys_module sys_time"]`. They are
	// written over the node's SSH, inherited by clones and shown by the audit. Only limits (`lxc.cgroup2.*`, `lxc.prlimit.*`) and
	// dropped capabilities (`lxc.cap.drop`) are taken.
	LXCRaw []string `mapstructure:"lxc_raw"`
	// SSH to the node, for `communicator = "pct"` and `lxc_raw`.
	NodeSSH NodeSSH `mapstructure:",squash"`

	// Public keys in the format of authorized_keys that the Terraform provider logs in with. They are root's only keys in the
	// template. Required unless `skip_convert_to_template` is set.
	ProviderPublicKeys []string `mapstructure:"provider_public_keys"`
	// The private half of one of them, to log in to a clone of the new template as the provider will. Else
	// `SANDBOX_GUEST_SSH_PRIVATE_KEY`, `SANDBOX_GUEST_SSH_PRIVATE_KEY_FILE` or `SANDBOX_GUEST_SSH_AGENT`; without any, the clone is
	// looked into over the node's SSH.
	ProviderPrivateKeyFile string `mapstructure:"provider_private_key_file"`
	// Boot no clone of the new template. What a clone would have shown (shared host keys, no login) is then found by the first
	// sandbox. Default: `false`.
	SkipVerify bool `mapstructure:"skip_verify"`
	// The grade that the clone's audit must reach, with its configuration on the server: `A+` to `F`. Below it nothing is left of the
	// build. Default: the audit is shown and keeps nothing back.
	MinimumGrade string `mapstructure:"minimum_grade"`
	// How long the clone may take to boot twice. Default: `10m`.
	VerifyTimeout time.Duration `mapstructure:"verify_timeout"`

	ctx interpolate.Context
	// cloneLater says that clone_vm_id is a data source's, which isn't asked while Packer validates.
	cloneLater bool
}

// RootFS is the root disk.
type RootFS struct {
	// The storage. Required for a template file; for a clone only with `full_clone`. Else `SANDBOX_STORAGE`.
	StoragePool string `mapstructure:"storage_pool"`
	// Size in GiB. Default: `8` for a template file, the source's for a clone.
	DiskSize int `mapstructure:"disk_size"`
}

// MountPoint is a further volume.
type MountPoint struct {
	// The storage.
	StoragePool string `mapstructure:"storage_pool" required:"true"`
	// Size in GiB.
	DiskSize int `mapstructure:"disk_size" required:"true"`
	// Where it is mounted.
	Path string `mapstructure:"path" required:"true"`
}

// NetworkAdapter is a network interface.
type NetworkAdapter struct {
	// The interface's name inside. Default: `eth0`, `eth1`, …
	Name string `mapstructure:"name"`
	// The bridge. Else `SANDBOX_BRIDGE`. Default: `vmbr0`.
	Bridge string `mapstructure:"bridge"`
	// VLAN tag.
	VLANTag int `mapstructure:"vlan_tag"`
	// Use Proxmox VE's firewall on it. Default: `true`.
	Firewall config.Trilean `mapstructure:"firewall"`
	// Hardware address. Default: the server makes one; clones always get their own.
	MACAddress string `mapstructure:"mac_address"`
	// MTU. Default: the bridge's.
	MTU int `mapstructure:"mtu"`
	// `dhcp`, `manual` or an address with prefix length, `10.0.0.9/24`. Default: `dhcp`.
	IP string `mapstructure:"ip"`
	// Gateway.
	Gateway string `mapstructure:"gateway"`
	// `auto`, `dhcp`, `manual` or an address with prefix length. Default: none.
	IP6 string `mapstructure:"ip6"`
	// IPv6 gateway.
	Gateway6 string `mapstructure:"gateway6"`
	// Limit in MB/s.
	Rate float64 `mapstructure:"rate"`
}

// Features are what a container may do beyond the ordinary. A token may set nesting, and only on an unprivileged container;
// everything else needs a login as root@pam with its password.
type Features struct {
	// Let the container make containers and namespaces of its own: systemd's sandboxing of services and the agents' own
	// sandboxes need it. Default: `true`.
	Nesting config.Trilean `mapstructure:"nesting"`
	// Allow the keyctl system call: Docker in an unprivileged container needs it. Default: `false`.
	Keyctl bool `mapstructure:"keyctl"`
	// Allow FUSE file systems. Default: `false`.
	Fuse bool `mapstructure:"fuse"`
	// Allow mknod for some devices. Default: `false`.
	Mknod bool `mapstructure:"mknod"`
	// File systems that may be mounted, separated by semicolons. Default: none.
	Mount string `mapstructure:"mount"`
}

// NodeSSH is a login on the node that builds.
type NodeSSH struct {
	// The node's address. Else `SANDBOX_NODE_SSH_HOST`. Default: the host of `proxmox_url`.
	NodeSSHHost string `mapstructure:"node_ssh_host"`
	// Its SSH port. Else `SANDBOX_NODE_SSH_PORT`. Default: `22`.
	NodeSSHPort int `mapstructure:"node_ssh_port"`
	// The user, who must be allowed to run pct. Else `SANDBOX_NODE_SSH_USERNAME`. Default: `root`.
	NodeSSHUsername string `mapstructure:"node_ssh_username"`
	// The private key's file. Else `SANDBOX_NODE_SSH_PRIVATE_KEY_FILE` or `SANDBOX_NODE_SSH_PRIVATE_KEY`.
	NodeSSHPrivateKeyFile string `mapstructure:"node_ssh_private_key_file"`
	// Use the agent that SSH_AUTH_SOCK names. Else `SANDBOX_NODE_SSH_AGENT`. Default: `false`.
	NodeSSHAgentAuth bool `mapstructure:"node_ssh_agent_auth"`
	// The node's host key, a line of authorized_keys or known_hosts without the host. Else `SANDBOX_NODE_SSH_HOST_KEY`. Without it
	// the key of the first contact is believed, with a warning.
	NodeSSHHostKey string `mapstructure:"node_ssh_host_key"`
}
