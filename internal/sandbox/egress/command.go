package egress

import (
	"fmt"
	"net/netip"
	"strings"
)

// Command is the line that makes the rule by hand, on a node as root; it goes on
// top of the list at path.
func (r Rule) Command(path string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "pvesh create %s --type %s --action %s --enable %s", path, r.Type, r.Action, map[bool]string{true: "1", false: "0"}[r.Enabled])
	for _, option := range []struct{ name, value string }{
		{"macro", r.Macro}, {"proto", r.Proto}, {"iface", r.Iface}, {"source", r.Source}, {"sport", r.SPort}, {"dest", r.Dest}, {"dport", r.DPort},
		{"icmp-type", r.ICMPType}, {"log", r.Log}, {"comment", r.Comment},
	} {
		if option.value != "" {
			fmt.Fprintf(&b, " --%s %s", option.name, shellWord(option.value))
		}
	}
	return b.String()
}

// shellWord quotes what a shell would read otherwise.
func shellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:/_+-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// AddressLists are addresses as the values of rules: one list per IP version, and
// more where one would be too long for the server.
func AddressLists(addresses []netip.Addr) []string { return addressLists(single(addresses)) }
