package provider

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

const maxPort = 65535

// providerSchema is the provider block. Values that must be there are not Required: a variable may stand for each.
func providerSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Throw-away, isolated LXC sandboxes for coding agents on Proxmox VE. Every attribute can also be given by the " +
			"variable that its description names; the configuration counts more than a variable, and a variable more than the default. " +
			"`HTTPS_PROXY` and `NO_PROXY` are honoured.",
		Attributes: map[string]schema.Attribute{
			"endpoint": text("endpoint", "Address of a Proxmox VE server, such as `https://pve.example.org:8006`, with or without `/api2/json`. Required."),
			"api_token": secret("api_token", "API token in the form `user@realm!name=uuid`. A token or a `username` with its `password` is required, not both.",
				stringvalidator.ConflictsWith(path.MatchRoot("username"), path.MatchRoot("password"), path.MatchRoot("otp"))),
			"username": text("username", "User in the form `user@realm`, such as `root@pam`, for a login with a password. Only a few calls need that; a token is the better choice."),
			"password": secret("password", "Password of `username`."),
			"otp":      secret("otp", "Code of the second factor of `username`, used for the first login only: a time-based code such as `123456`, or another kind with its prefix (`recovery:…`)."),
			"ca_file": text("ca_file", "PEM file with the certificate authorities that the server's certificate is checked with, instead of the system's. On a Proxmox VE node it is `/etc/pve/pve-root-ca.pem`.",
				stringvalidator.ConflictsWith(path.MatchRoot("ca_pem"), path.MatchRoot("insecure"))),
			"ca_pem": text("ca_pem", "The same as `ca_file`, as PEM text.",
				stringvalidator.ConflictsWith(path.MatchRoot("insecure"))),
			"fingerprint": text("fingerprint", "SHA-256 fingerprint of the server's certificate, 32 bytes in hexadecimal, colons optional, as the web interface shows it. It pins the certificate; alone, it replaces the check of chain and name.",
				stringvalidator.ConflictsWith(path.MatchRoot("insecure"))),
			"insecure": flag("insecure", "Accept any certificate. Whoever sits between can then read and change everything, the credentials included, so each run warns. Prefer `fingerprint`. Default `false`."),
			"owner":    text("owner", "Name of whoever owns the sandboxes of this configuration: a user, a team, a runner. It stands in the ownership marker of every container, and the provider changes and destroys only what carries it. Letters, digits, `.`, `_`, `:`, `/`, `+`, `-`. Required for anything but reading."),
			"vmid_range": nested(fmt.Sprintf("Ids that sandboxes are given. Two configurations that share a server should have ranges of their own. Default %d to %d.", sandbox.DefaultFirstVMID, sandbox.DefaultLastVMID), map[string]schema.Attribute{
				"first": number("vmid_range.first", fmt.Sprintf("First id of the range, at least %d. Required with `last`.", sandbox.MinVMID), sandbox.MinVMID, sandbox.MaxVMID),
				"last":  number("vmid_range.last", fmt.Sprintf("Last id of the range, at most %d. Required with `first`.", sandbox.MaxVMID), sandbox.MinVMID, sandbox.MaxVMID),
			}),
			"address_range": nested("Addresses for `network.ipv4 = \"auto\"`. A container's address is `first` + (its vmid - `vmid_range.first`), so it is known at once, needs no DHCP server and is unique because the vmid is. Without it, `auto` is refused.", map[string]schema.Attribute{
				"cidr":    text("address_range.cidr", "The bridge's IPv4 network, such as `10.10.0.0/16`."),
				"first":   text("address_range.first", "Address of the container with the first vmid, such as `10.10.1.0`. There must be as many addresses from here to the network's end as there are ids in `vmid_range`."),
				"gateway": text("address_range.gateway", "Default gateway of the containers, such as `10.10.0.1`. Default none."),
			}),
			"adopt": flag("adopt", "Let `terraform import` write our ownership marker on a container that has none. Such a container can be destroyed by this configuration from then on. Default `false`."),
			"nodes": schema.ListAttribute{
				MarkdownDescription: describe("nodes", "Nodes that sandboxes may be placed on. Default all that are online. In the variable, separated by commas."),
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.UniqueValues()},
			},
			"template_id": number("template_id", "Template to clone where a container names none: the vmid of a container template.", sandbox.MinVMID, sandbox.MaxVMID),
			"pool_id":     text("pool_id", "Proxmox pool for containers that name none. Default none."),
			"storage":     text("storage", "Storage for root disks where a container names none: of full clones and of creates from a template file. A linked clone is always on its template's storage. Default the template's storage."),
			"bridge":      text("bridge", "Bridge for containers that name none, such as `vmbr1`. Default the template's bridge."),
			"management_cidrs": schema.ListAttribute{
				MarkdownDescription: describe("management_cidrs", "Networks or addresses that may reach the sandboxes over SSH in every managed `network.mode`; nothing else gets in. It must hold the address that the containers see this provider come from: where `guest_ssh.proxy_jump` is set, the jump host's address on the containers' bridge, such as `10.10.0.1/32`. "+
					"Without a jump host, this machine's own address towards the container is added. In the variable, separated by commas."),
				ElementType: types.StringType,
				Optional:    true,
				Validators:  []validator.List{listvalidator.UniqueValues()},
			},
			"firewall_settle": text("firewall_settle", "How long after a write the server's firewall rules are trusted to bite, as a duration such as `15s`. Proxmox VE compiles them every 10 seconds; until then a new container's interface is held down. Default `11s`."),
			"guest_ssh": nested("How containers are reached over SSH.", loginAttributes("guest_ssh", login{
				who: "the containers", username: "User to log in as. Default `root`; other users can't set authorized keys or files of others.",
				key: "The template must carry its public key.", timeout: "How long a started container may take until a login succeeds",
				jump: "SSH host that the containers are reached through, when they can't be reached directly: a node with their bridge, for example. The host only forwards TCP connections.",
			})),
			"node_ssh":   nested("How nodes are reached over SSH, for what the API can't do: port exposures.", nodeAttributes()),
			"max_clones": number("max_clones", fmt.Sprintf("Clones under way at once per storage. Per template it is always one, because the server locks the source of a clone. Default %d.", sandbox.DefaultMaxClones), 1, 1000),
		},
	}
}

// login is what differs between the descriptions of guest_ssh and node_ssh.
type login struct{ who, username, key, timeout, jump string }

func loginAttributes(parent string, l login) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"username": text(parent+".username", l.username),
		"private_key": secret(parent+".private_key", "Private key in OpenSSH or PEM form, not encrypted. "+l.key,
			stringvalidator.ConflictsWith(path.MatchRelative().AtParent().AtName("private_key_file"))),
		"private_key_file": text(parent+".private_key_file", "File that holds the private key; a leading `~/` is the home folder. A file that others can read warns."),
		"agent":            flag(parent+".agent", "Use the keys of the agent at `SSH_AUTH_SOCK`. Default `false`."),
		"port":             number(parent+".port", fmt.Sprintf("Port of the SSH server of %s. Default %d.", l.who, guest.DefaultPort), 1, maxPort),
		"timeout":          text(parent+".timeout", fmt.Sprintf("%s, as a Go duration such as `\"90s\"`. Default `%s`. The resource's own timeouts bound it too.", l.timeout, base.ShortDuration(guest.DefaultTimeout)), base.Duration()),
		"proxy_jump": nested(l.jump, map[string]schema.Attribute{
			"host":     text(parent+".proxy_jump.host", "Name or address of the jump host. Required for a jump."),
			"port":     number(parent+".proxy_jump.port", fmt.Sprintf("Port of its SSH server. Default %d.", guest.DefaultPort), 1, maxPort),
			"username": text(parent+".proxy_jump.username", fmt.Sprintf("User to log in as there. Default `%s.username`.", parent)),
			"host_key": text(parent+".proxy_jump.host_key", "Public key of the jump host, as in `known_hosts` without the name: `ssh-ed25519 AAAA…`. Without it the host is believed at the first contact of every run, which warns."),
			"private_key": secret(parent+".proxy_jump.private_key", "Private key for the jump host. Default the key for "+l.who+".",
				stringvalidator.ConflictsWith(path.MatchRelative().AtParent().AtName("private_key_file"))),
			"private_key_file": text(parent+".proxy_jump.private_key_file", "File that holds the private key for the jump host."),
		}),
	}
}

func nodeAttributes() map[string]schema.Attribute {
	attributes := loginAttributes("node_ssh", login{
		who: "the nodes", username: "User to log in as: `root` (default), or the restricted login that `examples/bootstrap` makes, `sandbox-node`, which can do nothing but port exposures.",
		key: "The node must have its public key.", timeout: "How long a node may take until a login succeeds",
		jump: "SSH host that the nodes are reached through, when they can't be reached directly.",
	})
	attributes["hosts"] = schema.MapAttribute{
		MarkdownDescription: describe("node_ssh.hosts", "Addresses of the nodes by their names, as `host` or `host:port`. Default, on a cluster of one node: the host of `endpoint`. In the variable as `pve1=192.0.2.10,pve2=192.0.2.11`."),
		ElementType:         types.StringType,
		Optional:            true,
	}
	attributes["host_keys"] = schema.MapAttribute{
		MarkdownDescription: describe("node_ssh.host_keys", "Public SSH host keys of the nodes by their names: `ssh-ed25519 AAAA…`. Without them a node is believed at the first contact of every run, which warns. In the variable as `pve1=ssh-ed25519 AAAA…,pve2=…`."),
		ElementType:         types.StringType,
		Optional:            true,
	}
	return attributes
}

// describe ends a description with the attribute's variables.
func describe(attribute, text string) string {
	names := variablesOf(attribute)
	for i, name := range names {
		names[i] = "`" + name + "`"
	}
	return text + " Variable " + strings.Join(names, " or ") + "."
}

func text(attribute, description string, validators ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: describe(attribute, description),
		Optional:            true,
		Validators:          append([]validator.String{stringvalidator.LengthAtLeast(1)}, validators...),
	}
}

func secret(attribute, description string, validators ...validator.String) schema.StringAttribute {
	a := text(attribute, description, validators...)
	a.Sensitive = true
	return a
}

func number(attribute, description string, lowest, highest int64) schema.Int64Attribute {
	return schema.Int64Attribute{
		MarkdownDescription: describe(attribute, description),
		Optional:            true,
		Validators:          []validator.Int64{int64validator.Between(lowest, highest)},
	}
}

func flag(attribute, description string) schema.BoolAttribute {
	return schema.BoolAttribute{MarkdownDescription: describe(attribute, description), Optional: true}
}

func nested(description string, attributes map[string]schema.Attribute) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{MarkdownDescription: description, Optional: true, Attributes: attributes}
}
