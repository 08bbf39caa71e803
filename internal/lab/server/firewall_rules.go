package server

import (
	"slices"
)

// ruleFields are the fields of a rule that a request may set, in the order of a rule's line.
var ruleFields = []string{
	"type", "action", "enable", "macro", "iface", "source", "dest", "proto", "dport", "sport", "log", "icmp-type", "comment",
}

// groupRuleFields are those that a rule which refers to a security group keeps.
var groupRuleFields = []string{"type", "action", "enable", "iface", "comment"}

func ruleList(_ *call, l *fwLevel) (any, error) {
	views, _ := l.ruleViews()
	for pos, view := range views {
		view["pos"] = pos
	}
	return views, nil
}

// ruleViews are a level's rules as the API shows them, with their digest, which doesn't count positions.
func (l *fwLevel) ruleViews() ([]map[string]any, string) {
	views := []map[string]any{}
	for _, r := range *l.rules {
		views = append(views, l.ruleView(r))
	}
	digest := fwDigest(views...)
	return withDigest(views), digest
}

// ruleView is a rule as a list has it: with the IP version that its addresses imply, and what is wrong with it by now.
func (l *fwLevel) ruleView(r fwRule) map[string]any {
	view := map[string]any{}
	for key, value := range r.Options {
		view[key] = value
	}
	view["enable"] = boolInt(r.Options["enable"] != "0")
	check := l.verify(r.Options)
	if check.version != 0 {
		view["ipversion"] = check.version
	}
	if len(check.errs) > 0 {
		view["errors"] = check.errs
	}
	return view
}

func ruleGet(c *call, l *fwLevel) (any, error) {
	if err := l.checkPos(c.params.num("pos")); err != nil {
		return nil, err
	}
	views, _ := l.ruleViews()
	view := views[c.params.num("pos")]
	view["pos"] = c.params.str("pos") // a string, as it stands in the path
	return view, nil
}

func (l *fwLevel) checkPos(pos int) error {
	if pos >= len(*l.rules) {
		return failf("no rule at position %d", pos)
	}
	return nil
}

// checkRulesDigest compares the digest that a request gives with the rules'.
func (l *fwLevel) checkRulesDigest(c *call) error {
	_, digest := l.ruleViews()
	return checkDigest(c.params.str("digest"), digest)
}

// rulePost puts a new rule on top of the list, wherever the request wants it: pos counts for nothing. Without enable it is
// off. A digest isn't looked at either.
func rulePost(c *call, l *fwLevel) error {
	fields := map[string]string{}
	copyRuleFields(fields, c.params)
	if err := l.verify(fields).err(); err != nil {
		return err
	}
	if !c.params.has("enable") {
		fields["enable"] = "0"
	}
	*l.rules = slices.Insert(*l.rules, 0, fwRule{Options: settleRule(fields)})
	return nil
}

// rulePut moves a rule, or else merges fields into it: what the request doesn't name stays.
func rulePut(c *call, l *fwLevel) error {
	if err := l.checkRulesDigest(c); err != nil {
		return err
	}
	pos := c.params.num("pos")
	if err := l.checkPos(pos); err != nil {
		return err
	}
	if to := c.params.num("moveto"); c.params.has("moveto") && to != pos {
		l.moveRule(pos, to)
		return nil
	}
	fields := map[string]string{}
	for key, value := range (*l.rules)[pos].Options {
		fields[key] = value
	}
	copyRuleFields(fields, c.params)
	if err := deleteRuleFields(fields, c.params.list("delete")); err != nil {
		return err
	}
	if err := l.verify(fields).err(); err != nil {
		return err
	}
	(*l.rules)[pos] = fwRule{Options: settleRule(fields)}
	return nil
}

// moveRule moves a rule before the one that is at a position now; beyond the end is the end. Other fields of the request
// are lost.
func (l *fwLevel) moveRule(pos, to int) {
	var moved []fwRule
	for i, r := range *l.rules {
		if i == to {
			moved = append(moved, (*l.rules)[pos])
		}
		if i != pos {
			moved = append(moved, r)
		}
	}
	if to >= len(*l.rules) {
		moved = append(moved, (*l.rules)[pos])
	}
	*l.rules = moved
}

func ruleDelete(c *call, l *fwLevel) error {
	if err := l.checkRulesDigest(c); err != nil {
		return err
	}
	pos := c.params.num("pos")
	if err := l.checkPos(pos); err != nil {
		return err
	}
	*l.rules = slices.Delete(*l.rules, pos, pos+1)
	return nil
}

// copyRuleFields merges a request's fields; an empty value and "-" unset one.
func copyRuleFields(fields map[string]string, given params) {
	for _, name := range ruleFields {
		value, ok := given[name]
		switch {
		case !ok:
		case value == "" || value == "-":
			delete(fields, name)
		default:
			fields[name] = value
		}
	}
}

func deleteRuleFields(fields map[string]string, names []string) error {
	for _, name := range names {
		switch {
		case name == "type" || name == "action":
			return paramError("delete", "unable to delete required property '%s'", name)
		case !slices.Contains(ruleFields, name) && name != "pos" && name != "digest":
			return paramError("delete", "no such property ('%s')", name)
		}
		delete(fields, name)
	}
	return nil
}

// settleRule is a rule as it comes back from its line in the file: enable is 0 or 1, and 1 without; the macro's name is in
// its own spelling; a reference to a group has nothing to match but the interface.
func settleRule(fields map[string]string) map[string]string {
	kept := ruleFields
	if fields["type"] == "group" {
		kept = groupRuleFields
	}
	out := map[string]string{"enable": "1"}
	for _, name := range kept {
		value := fields[name]
		switch name {
		case "enable":
			if number, ok := fields[name]; ok && isZero(number) {
				out[name] = "0"
			}
			continue
		case "macro":
			if m := findMacro(value); m != nil {
				value = m.name
			}
		case "comment":
			value = fwComment(value)
		}
		if value != "" {
			out[name] = value
		}
	}
	return out
}
