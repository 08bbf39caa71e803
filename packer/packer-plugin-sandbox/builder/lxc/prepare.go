package lxc

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	packersdk "github.com/hashicorp/packer-plugin-sdk/packer"
	"github.com/hashicorp/packer-plugin-sdk/template/config"
	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// BuilderID is the artifact's kind.
const BuilderID = "agentsandbox.sandbox.lxc"

// pct is the communicator that goes through the node.
const pct = "pct"

// prepare decodes the configuration, fills in defaults and the environment, and returns everything that is wrong with
// it. It sends no request.
func (c *Config) prepare(raws ...any) (warnings []string, err error) {
	err = config.Decode(c, &config.DecodeOpts{
		PluginType: "sandbox-lxc", Interpolate: true, InterpolateContext: &c.ctx,
	}, raws...)
	if err != nil {
		return nil, err
	}
	c.cloneLater = givenAsZero(raws, "clone_vm_id")
	var errs *packersdk.MultiError
	add := func(more ...error) {
		for _, e := range more {
			errs = packersdk.MultiErrorAppend(errs, e)
		}
	}
	w, problems := c.Config.Prepare() //nolint:staticcheck // whose is meant
	warnings = append(warnings, w...)
	add(problems...)
	c.defaults()
	w, problems = c.prepareCommunicator()
	warnings = append(warnings, w...)
	add(problems...)
	add(c.checkGuest()...)
	w, problems = c.checkKeys()
	warnings = append(warnings, w...)
	add(problems...)
	if _, err := parseRaw(c.LXCRaw); err != nil {
		add(err)
	}
	w, problems = c.checkNodeSSH()
	warnings = append(warnings, w...)
	add(problems...)
	spec := c.spec(nil)
	if c.cloneLater && spec.Source.CloneName == "" {
		spec.Source.CloneID = sandbox.MaxVMID // stands for the one that the data source will name
	}
	for _, p := range sandbox.CheckTemplate(spec) {
		if p.Warning {
			warnings = append(warnings, p.String())
		} else {
			add(errors.New(p.String()))
		}
	}
	if errs != nil && len(errs.Errors) > 0 {
		return warnings, errs
	}
	return warnings, nil
}

// givenAsZero says whether a number was given and is 0: what Packer hands over while it validates for a value that only
// a data source will tell.
func givenAsZero(raws []any, key string) bool {
	for _, raw := range raws {
		if m, ok := raw.(map[string]any); ok {
			if n, ok := m[key].(float64); ok && n == 0 {
				return true
			}
		}
	}
	return false
}

func (c *Config) defaults() {
	if c.TemplateName == "" {
		c.TemplateName = strings.ReplaceAll(c.PackerBuildName, "_", "-")
	}
	if c.RootFS.StoragePool == "" && !c.clones() {
		c.RootFS.StoragePool = os.Getenv("SANDBOX_STORAGE")
	}
	if !c.clones() {
		if c.Cores == 0 {
			c.Cores = 2
		}
		if c.Memory == 0 {
			c.Memory = 2048
		}
		if len(c.NetworkAdapters) == 0 && !c.NoNetwork {
			c.NetworkAdapters = []NetworkAdapter{{}}
		}
	}
	for i := range c.NetworkAdapters {
		a := &c.NetworkAdapters[i]
		if a.Name == "" {
			a.Name = fmt.Sprintf("eth%d", i)
		}
		if a.Bridge == "" {
			if a.Bridge = os.Getenv("SANDBOX_BRIDGE"); a.Bridge == "" {
				a.Bridge = "vmbr0"
			}
		}
		if a.IP == "" {
			a.IP = "dhcp"
		}
	}
	if c.VerifyTimeout == 0 {
		c.VerifyTimeout = 10 * time.Minute
	}
	c.NodeSSH.defaults(c.ProxmoxURL)
}

func (c *Config) clones() bool { return c.CloneVM != "" || c.CloneVMID != 0 || c.cloneLater }

// prepareCommunicator prepares Packer's communicator. A key of the build's own goes in with the container and out with
// the seal; a clone can be given none.
func (c *Config) prepareCommunicator() (warnings []string, errs []error) {
	if c.Comm.Type == "" {
		c.Comm.Type = "ssh"
		if c.NoNetwork {
			c.Comm.Type = pct
		}
	}
	if c.Comm.SSHUsername == "" {
		c.Comm.SSHUsername = "root"
	}
	if c.Comm.SSHFileTransferMethod == "" {
		c.Comm.SSHFileTransferMethod = "sftp" // what OpenSSH's own scp uses
	}
	if c.Comm.SSHTemporaryKeyPairType == "" {
		c.Comm.SSHTemporaryKeyPairType = "ed25519"
	}
	kind := c.Comm.Type
	switch kind {
	case pct:
		c.Comm.Type = "none" // the SDK knows no other; restored below
	case "ssh", "none":
	default:
		return nil, []error{fmt.Errorf("communicator: %q can't reach a container; it may be ssh, pct or none", kind)}
	}
	errs = c.Comm.Prepare(&c.ctx)
	c.Comm.Type = kind
	if kind == "none" && !c.SkipConvertToTemplate {
		errs = append(errs, errors.New("communicator: with none nothing can be sealed, so the template would hold host keys and a machine id that all clones share: use ssh or pct, or set skip_convert_to_template"))
	}
	if kind == "ssh" {
		if c.NoNetwork {
			errs = append(errs, errors.New("communicator: ssh needs a network; with network_adapters_none use pct, which goes through the node"))
		}
		if c.clones() && c.Comm.SSHPrivateKeyFile == "" && !c.Comm.SSHAgentAuth && c.Comm.SSHPassword == "" {
			errs = append(errs, errors.New("communicator: a clone can't be given a key, so ssh needs one that its source knows (ssh_private_key_file, ssh_agent_auth or ssh_password); or use communicator = \"pct\", which goes through the node"))
		}
	}
	if c.Comm.SSHPty {
		warnings = append(warnings, "ssh_pty: a terminal mixes standard output and error and changes line ends; the build needs none")
	}
	return warnings, errs
}

func (c *Config) checkGuest() (errs []error) {
	add := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	for _, n := range []struct {
		name  string
		value int
		low   int
	}{{"cores", c.Cores, 0}, {"memory", c.Memory, 0}, {"swap", c.Swap, 0}, {"cpuunits", c.CPUUnits, 0}} {
		if n.value < n.low {
			add("%s is negative", n.name)
		}
	}
	if c.Memory != 0 && c.Memory < sandbox.MinMemoryMiB {
		add("memory: %d MiB is less than the %d MiB that Proxmox VE asks for", c.Memory, sandbox.MinMemoryMiB)
	}
	if c.CPULimit < 0 {
		add("cpulimit is negative")
	}
	if !c.clones() && c.RootFS.StoragePool == "" {
		add("rootfs.storage_pool is missing: the storage of the root disk (or SANDBOX_STORAGE)")
	}
	if c.NoNetwork && len(c.NetworkAdapters) > 0 {
		add("network_adapters_none contradicts network_adapters")
	}
	names := map[string]bool{}
	for i, a := range c.NetworkAdapters {
		if names[a.Name] {
			add("network_adapters[%d].name: %q is the name of another one", i, a.Name)
		}
		names[a.Name] = true
		if a.Gateway != "" && !strings.Contains(a.IP, "/") {
			add("network_adapters[%d].gateway goes with an address (ip = \"10.0.0.9/24\"), not with %q", i, a.IP)
		}
		if strings.Contains(a.IP, "/") && !validPrefix(a.IP) {
			add("network_adapters[%d].ip: %q is no address with prefix length, like 10.0.0.9/24", i, a.IP)
		}
		if a.IP != "dhcp" && a.IP != "manual" && !strings.Contains(a.IP, "/") {
			add("network_adapters[%d].ip: %q is neither dhcp nor manual nor an address with prefix length", i, a.IP)
		}
		if a.VLANTag < 0 || a.VLANTag > sandbox.MaxVLANID {
			add("network_adapters[%d].vlan_tag: %d is none; they are from 1 to %d", i, a.VLANTag, sandbox.MaxVLANID)
		}
	}
	for i, m := range c.MountPoints {
		if m.StoragePool == "" || m.DiskSize <= 0 || !strings.HasPrefix(m.Path, "/") {
			add("mount_points[%d] needs storage_pool, disk_size (GiB) and an absolute path; folders of the node (bind mounts) are never part of a template", i)
		}
	}
	if c.MinimumGrade != "" {
		if _, ok := audit.ParseGrade(c.MinimumGrade); !ok {
			add("minimum_grade: there is no grade %q; there are %v", c.MinimumGrade, audit.Grades())
		}
		if c.SkipVerify || c.SkipConvertToTemplate {
			add("minimum_grade: nothing is graded with skip_verify or skip_convert_to_template")
		}
	}
	if !c.SkipConvertToTemplate && len(c.ProviderPublicKeys) == 0 {
		add("provider_public_keys is missing: the public key of the provider's guest_ssh, so that it can log in to clones (ssh-keygen -y -f KEY prints it)")
	}
	return errs
}

// checkKeys reads the provider's public keys.
func (c *Config) checkKeys() (warnings []string, errs []error) {
	for i, line := range c.ProviderPublicKeys {
		if line == "<unknown>" { // a data source's, which isn't asked while Packer validates
			continue
		}
		key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
		switch {
		case strings.Contains(line, "PRIVATE KEY"):
			errs = append(errs, fmt.Errorf("provider_public_keys[%d] is a private key: give its public half (ssh-keygen -y -f KEY)", i))
		case err != nil:
			errs = append(errs, fmt.Errorf("provider_public_keys[%d] is no public key in the format of authorized_keys: %w", i, err))
		case len(strings.TrimSpace(string(rest))) > 0 || strings.ContainsAny(strings.TrimSpace(line), "\n\r"):
			errs = append(errs, fmt.Errorf("provider_public_keys[%d] has several lines: give each key on its own", i))
		case key.Type() == ssh.KeyAlgoDSA: //nolint:staticcheck // named to be refused
			errs = append(errs, fmt.Errorf("provider_public_keys[%d] is a DSA key, which OpenSSH refuses", i))
		case slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, "command=") }):
			warnings = append(warnings, fmt.Sprintf("provider_public_keys[%d] has a forced command: the provider runs commands of its own", i))
		}
	}
	return warnings, errs
}
