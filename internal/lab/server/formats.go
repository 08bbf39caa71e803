package server

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// formatCheck is a named format of the API: nil, or the text after "invalid format - ".
type formatCheck func(value string) error

var (
	configID    = regexp.MustCompile(`\A(?i:[a-z][a-z0-9_-]+)\z`)
	storageID   = regexp.MustCompile(`\A(?i:[a-z][a-z0-9\-_.]*[a-z0-9])\z`)
	nodeName    = regexp.MustCompile(`\A[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?\z`)
	dnsName     = regexp.MustCompile(`\A([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?\.)*([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)\z`)
	macAddress  = regexp.MustCompile(`\A(?i:[a-f0-9][02468ace](:[a-f0-9]{2}){5})\z`)
	tagForm     = regexp.MustCompile(`\A(?i:[a-z0-9_][a-z0-9_\-+.]*)\z`)
	startupForm = regexp.MustCompile(`\A(order=)?\d+\z|\A(up|down)=\d+\z`)
	diskSize    = regexp.MustCompile(`\A\d+(\.\d+)?[KMGT]?\z`)
	volumeID    = regexp.MustCompile(`\A(?i:[a-z][a-z0-9\-_.]*[a-z0-9]):(.+)\z`)
	poolForm    = regexp.MustCompile(`\A[A-Za-z0-9.\-_]+(/[A-Za-z0-9.\-_]+){0,2}\z`)
	realmForm   = regexp.MustCompile(`\A[A-Za-z][A-Za-z0-9.\-_]+\z`)
	ifaceForm   = regexp.MustCompile(`\A(?i:[a-z][a-z0-9_]{1,20}([:.]\d+)?)\z`)
	portNumber  = regexp.MustCompile(`\A\d+\z`)
)

func byPattern(re *regexp.Regexp, text string) formatCheck {
	return func(value string) error {
		if re.MatchString(value) {
			return nil
		}
		return fmt.Errorf("%s", strings.ReplaceAll(text, "%v", value))
	}
}

// formats are the named formats. One that isn't here accepts everything.
var formats = map[string]formatCheck{
	"pve-vmid":                checkVMID,
	"pve-node":                byPattern(nodeName, "value does not look like a valid node name"),
	"pve-configid":            byPattern(configID, "invalid configuration ID '%v'"),
	"pve-storage-id":          byPattern(storageID, "storage ID '%v' contains illegal characters"),
	"dns-name":                byPattern(dnsName, "value does not look like a valid DNS name"),
	"mac-addr":                byPattern(macAddress, "value does not look like a valid unicast MAC address"),
	"pve-tag":                 byPattern(tagForm, "invalid characters in tag"),
	"disk-size":               byPattern(diskSize, "value does not look like a valid disk size: %v"),
	"pve-volume-id":           byPattern(volumeID, "unable to parse volume ID '%v'"),
	"pve-poolid":              byPattern(poolForm, "value '%v' contains invalid characters"),
	"pve-realm":               byPattern(realmForm, "value does not look like a valid realm"),
	"pve-iface":               byPattern(ifaceForm, "invalid network interface name '%v'"),
	"pve-groupid":             byPattern(regexp.MustCompile(`\A[A-Za-z0-9.\-_]+\z`), "group name '%v' contains invalid characters"),
	"pve-roleid":              byPattern(regexp.MustCompile(`\A[A-Za-z0-9.\-_]+\z`), "role name '%v' contains invalid characters"),
	"pve-priv":                checkPrivilege,
	"email-opt":               byPattern(regexp.MustCompile(`\A(\S+@\S+|)\z`), "value does not look like a valid email address"),
	"ip":                      checkIP,
	"lxc-ip-with-ll-iface":    checkIP,
	"ipv4":                    checkIPv4,
	"ipv6":                    checkIPv6,
	"pve-ipv4-config":         checkIPv4Config,
	"pve-ipv6-config":         checkIPv6Config,
	"pve-startup-order":       checkStartup,
	"pve-lxc-mp-string":       checkMountPoint,
	"pve-lxc-dev-string":      byPattern(regexp.MustCompile(`\A/dev/`), "%v is not a valid device path"),
	"pve-ct-timezone":         byPattern(regexp.MustCompile(`\A(host|[A-Za-z0-9_+/-]+)\z`), "invalid time zone '%v'"),
	"pve-task-status-type":    byPattern(regexp.MustCompile(`\A(?i:ok|error|warning|unknown)\z`), "invalid status filter '%v'"),
	"pve-storage-content":     byPattern(regexp.MustCompile(`\A(images|rootdir|vztmpl|iso|backup|snippets|import|none)\z`), "invalid content type '%v'"),
	"pve-userid":              nil,
	"pve-vlan-id-or-range":    byPattern(regexp.MustCompile(`\A\d{1,4}(-\d{1,4})?\z`), "invalid VLAN ID or range '%v'"),
	"CIDR":                    checkCIDR,
	"pve-fw-dport-spec":       checkDestPorts,
	"pve-fw-sport-spec":       checkSourcePorts,
	"pve-fw-addr-spec":        checkAddressSpec,
	"pve-fw-protocol-spec":    checkProtocol,
	"pve-fw-icmp-type-spec":   checkICMPType,
	"pve-fw-conntrack-helper": checkConntrackHelpers,
	"IPorCIDR":                checkIPOrCIDR,
	"IPorCIDRorAlias":         checkIPOrCIDROrAlias,
	"bridge-pair":             nil,
}

// checkFormat applies a named format; a name that ends in -list applies it to each item.
func checkFormat(name, value string) error {
	if check, ok := formats[name]; ok {
		if check == nil {
			return nil
		}
		return check(value)
	}
	if item, ok := strings.CutSuffix(name, "-list"); ok {
		if check := formats[item]; check != nil {
			for _, part := range splitList(value) {
				if err := check(part); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func checkVMID(value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 100 || n > 999999999 || value[0] == '0' {
		return fmt.Errorf("value does not look like a valid VM ID")
	}
	return nil
}

func checkIP(value string) error {
	addr, zone, _ := strings.Cut(value, "%")
	if _, err := netip.ParseAddr(addr); err != nil || strings.Contains(zone, "%") {
		return fmt.Errorf("value does not look like a valid IP address")
	}
	return nil
}

func checkIPv4(value string) error {
	if addr, err := netip.ParseAddr(value); err != nil || !addr.Is4() {
		return fmt.Errorf("value does not look like a valid ipv4 address")
	}
	return nil
}

func checkIPv6(value string) error {
	if addr, err := netip.ParseAddr(value); err != nil || !addr.Is6() {
		return fmt.Errorf("value does not look like a valid ipv6 address")
	}
	return nil
}

func checkCIDR(value string) error {
	if _, err := netip.ParsePrefix(value); err != nil {
		return fmt.Errorf("value does not look like a valid CIDR network")
	}
	return nil
}

func checkIPv4Config(value string) error {
	if value == "dhcp" || value == "manual" {
		return nil
	}
	if p, err := netip.ParsePrefix(value); err != nil || !p.Addr().Is4() || p.Bits() < 8 {
		return fmt.Errorf("value does not look like a valid ipv4 network configuration")
	}
	return nil
}

func checkIPv6Config(value string) error {
	if value == "dhcp" || value == "manual" || value == "auto" {
		return nil
	}
	if p, err := netip.ParsePrefix(value); err != nil || !p.Addr().Is6() || p.Bits() < 8 {
		return fmt.Errorf("value does not look like a valid ipv6 network configuration")
	}
	return nil
}

func checkStartup(value string) error {
	for _, part := range strings.Split(value, ",") {
		if !startupForm.MatchString(part) {
			return fmt.Errorf("unable to parse startup options")
		}
	}
	return nil
}

func checkMountPoint(value string) error {
	if strings.Contains(value, "/../") || strings.Contains(value, "/./") || strings.HasSuffix(value, "/..") {
		return fmt.Errorf("invalid mount point path '%s'", value)
	}
	return nil
}

func checkPrivilege(value string) error {
	if !knownPrivileges()[value] {
		return fmt.Errorf("invalid privilege '%s'", value)
	}
	return nil
}
