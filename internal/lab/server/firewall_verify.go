package server

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ruleCheck is what looking at a rule found: the IP version that it implies, 0 for both, and what is wrong by field.
type ruleCheck struct {
	version int
	errs    map[string]string
	first   string
}

// add notes the first thing that is wrong with a field.
func (k *ruleCheck) add(field, format string, args ...any) {
	if k.errs == nil {
		k.errs, k.first = map[string]string{}, field
	}
	if _, known := k.errs[field]; !known {
		k.errs[field] = fmt.Sprintf(format, args...)
	}
}

// err is the refusal of a request: the server stops at the first thing that is wrong.
func (k *ruleCheck) err() error {
	if k.first == "" {
		return nil
	}
	return paramErrors(map[string]string{k.first: k.errs[k.first]})
}

// setVersion notes that a field implies an IP version.
func (k *ruleCheck) setVersion(field string, version int) {
	switch {
	case version == 0:
	case k.version != 0 && k.version != version:
		k.add(field, "detected mixed ipv4/ipv6 addresses in rule")
	default:
		k.version = version
	}
}

// ruleTypes are the kinds of rules that may be at a place.
var ruleTypes = map[string][]string{
	"cluster": {"in", "out", "forward", "group"},
	"host":    {"in", "out", "forward", "group"},
	"ct":      {"in", "out", "group"},
	"group":   {"in", "out", "forward"},
}

var (
	ruleAction = regexp.MustCompile(`\A(ACCEPT|DROP|REJECT)\z`)
	guestNIC   = regexp.MustCompile(`\Anet\d+\z`)
)

// verify looks at a rule the way the server does when one is written, and again at each look at a list: what a rule
// names may be gone by then. The order is the server's, since only the first error of a request is told.
func (l *fwLevel) verify(rule map[string]string) *ruleCheck {
	k := &ruleCheck{}
	l.verifyTarget(k, rule)
	l.verifyIface(k, rule["iface"])
	macro := findMacro(rule["macro"])
	if rule["macro"] != "" && macro == nil {
		k.add("macro", "unknown macro '%s'", rule["macro"])
	}
	verifyProtocol(k, rule)
	for _, field := range []string{"source", "dest"} {
		l.verifyAddress(k, field, rule[field])
	}
	if macro != nil && k.first == "" {
		macro.verify(k, rule)
	}
	return k
}

// verifyTarget: which kind of rule, and what it does. A group needn't exist.
func (l *fwLevel) verifyTarget(k *ruleCheck, rule map[string]string) {
	kind, action := rule["type"], rule["action"]
	switch {
	case kind == "":
		k.add("type", "missing property")
	case !slices.Contains(ruleTypes[l.env], kind):
		k.add("type", "invalid rule type '%s' for rule_env '%s'", kind, l.env)
	case kind != "group" && action != "" && !ruleAction.MatchString(action):
		k.add("action", "unknown action '%s'", action)
	}
	if action == "" {
		k.add("action", "missing property")
	}
}

func (l *fwLevel) verifyIface(k *ruleCheck, iface string) {
	switch {
	case iface == "":
	case l.env == "group":
		k.add("type", "parameter -i not allowed for this rule type")
	case l.env == "ct" && !guestNIC.MatchString(iface):
		k.add("iface", `value does not match the regex pattern 'net\d+'`)
	}
}

func verifyProtocol(k *ruleCheck, rule map[string]string) {
	proto := rule["proto"]
	icmp := icmpVersion(proto)
	if proto != "" {
		if err := checkProtocol(proto); err != nil {
			k.add("proto", "%v", err)
		}
		k.setVersion("proto", icmp)
	}
	for _, field := range []string{"dport", "sport"} {
		if rule[field] == "" {
			continue
		}
		if err := checkPortSpec(rule[field], field == "dport"); err != nil {
			k.add(field, "%v", err)
		}
		switch {
		case proto == "":
			k.add("proto", "missing property - '%s' requires this property", field)
		case !hasPorts(proto) && (icmp == 0 || field == "sport"):
			k.add(field, "protocol '%s' does not support ports", proto)
		}
	}
	verifyICMPType(k, rule, icmp)
}

func verifyICMPType(k *ruleCheck, rule map[string]string, icmp int) {
	kind := rule["icmp-type"]
	switch {
	case kind == "":
	case icmp == 0:
		k.add("proto", "missing property - 'icmp-type' requires this property")
	case rule["dport"] != "":
		k.add("icmp-type", "cannot be specified together with dport")
	case !icmpTypeNumber.MatchString(kind) && !slices.Contains(icmpTypes[icmp], kind):
		k.add("icmp-type", "invalid icmp-type '%s' for proto '%s'", kind, rule["proto"])
	}
}

// verifyAddress: the form of a source or dest, and that the set or alias which it names exists.
func (l *fwLevel) verifyAddress(k *ruleCheck, field, value string) {
	if value == "" {
		return
	}
	version, err := parseAddressList(value)
	if err != nil {
		k.add(field, "%v", err)
		return
	}
	k.setVersion(field, version)
	if strings.HasPrefix(value, "+") {
		m := ipsetForm.FindStringSubmatch(value)
		switch {
		case m == nil:
			k.add(field, "invalid ipset name '%s'", value)
		case l.findIPSet(m[1], m[2]) == nil:
			k.add(field, "no such ipset '%s'", m[2])
		}
		return
	}
	scope, name, ok := splitAlias(value)
	if !ok {
		return
	}
	alias := l.findAlias(scope, strings.ToLower(name))
	if alias == nil {
		k.add(field, "no such alias '%s'", value)
		return
	}
	_, version = parseIPOrCIDR(alias.CIDR)
	k.setVersion(field, version)
}
