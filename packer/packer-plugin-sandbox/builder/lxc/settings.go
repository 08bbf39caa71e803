package lxc

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/hashicorp/packer-plugin-sdk/template/config"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

func validPrefix(s string) bool {
	_, err := netip.ParsePrefix(s)
	return err == nil
}

// spec is what the domain builds. keys let the builder in.
func (c *Config) spec(keys []string) sandbox.TemplateSpec {
	return sandbox.TemplateSpec{
		Name: c.TemplateName, BuildName: c.VMName, Description: c.TemplateDescription, VMID: c.VMID, Node: c.Node, PoolID: c.Pool,
		Tags: strings.FieldsFunc(c.Tags, func(r rune) bool { return r == ';' || r == ',' || r == ' ' }),
		Source: sandbox.TemplateSource{
			File: c.OSTemplate, URL: c.TemplateURL, Checksum: c.TemplateChecksum, Image: c.OCIImage, FileStorage: c.TemplateStoragePool,
			CloneID: c.CloneVMID, CloneName: c.CloneVM, Full: c.clones() && !c.FullClone.False(),
		},
		Storage: c.RootFS.StoragePool, DiskGiB: c.RootFS.DiskSize, Privileged: c.Unprivileged.False(),
		Config: c.settings(), AuthorizedKeys: keys, Replace: c.PackerForce, Keep: c.Keep,
	}
}

// settings are the container's settings by the API's keys.
func (c *Config) settings() map[string]string {
	set := map[string]string{}
	text := func(key, value string) {
		if value != "" {
			set[key] = value
		}
	}
	number := func(key string, value int) {
		if value != 0 {
			set[key] = strconv.Itoa(value)
		}
	}
	number("cores", c.Cores)
	number("cpuunits", c.CPUUnits)
	number("memory", c.Memory)
	if c.CPULimit > 0 {
		set["cpulimit"] = strconv.FormatFloat(c.CPULimit, 'f', -1, 64)
	}
	if c.Swap != 0 || !c.clones() {
		set["swap"] = strconv.Itoa(c.Swap)
	}
	text("ostype", c.OSType)
	text("arch", c.Arch)
	text("nameserver", c.Nameserver)
	text("searchdomain", c.SearchDomain)
	text("timezone", c.Timezone)
	text("hookscript", c.Hookscript)
	text("features", c.features())
	for i, a := range c.NetworkAdapters {
		set[fmt.Sprintf("net%d", i)] = a.String()
	}
	for i, m := range c.MountPoints {
		set[fmt.Sprintf("mp%d", i)] = fmt.Sprintf("%s:%d,mp=%s,backup=1", m.StoragePool, m.DiskSize, m.Path)
	}
	return set
}

// features is the setting's text; empty leaves a clone what its source has.
func (c *Config) features() string {
	f := c.Features
	p := pve.ParseProperties("")
	switch {
	case f.Nesting == config.TriTrue, f.Nesting == config.TriUnset && !c.clones() && !c.Unprivileged.False():
		p = p.With("nesting", "1")
	}
	for _, o := range []struct {
		name string
		on   bool
	}{{"keyctl", f.Keyctl}, {"fuse", f.Fuse}, {"mknod", f.Mknod}} {
		if o.on {
			p = p.With(o.name, "1")
		}
	}
	if f.Mount != "" {
		p = p.With("mount", f.Mount)
	}
	return p.String()
}

// String is a netN of the API.
func (a NetworkAdapter) String() string {
	p := pve.ParseProperties("").With("name", a.Name).With("bridge", a.Bridge)
	text := func(key, value string) {
		if value != "" {
			p = p.With(key, value)
		}
	}
	if !a.Firewall.False() {
		text("firewall", "1")
	}
	text("hwaddr", a.MACAddress)
	text("ip", cmp.Or(a.IP, "dhcp"))
	text("gw", a.Gateway)
	text("ip6", a.IP6)
	text("gw6", a.Gateway6)
	if a.VLANTag != 0 {
		text("tag", strconv.Itoa(a.VLANTag))
	}
	if a.MTU != 0 {
		text("mtu", strconv.Itoa(a.MTU))
	}
	if a.Rate > 0 {
		text("rate", strconv.FormatFloat(a.Rate, 'f', -1, 64))
	}
	return p.With("type", "veth").String()
}
