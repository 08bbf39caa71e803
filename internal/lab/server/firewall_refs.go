package server

// refsList lists what a rule's source and dest may name: the datacenter's sets and aliases, then the guest's.
func refsList(c *call, l *fwLevel) (any, error) {
	kind := c.params.str("type")
	dc := c.s.st.Firewall
	refs := fwRefs(kind, "dc", dc.IPSets, dc.Aliases)
	if l.env == "ct" {
		refs = append(refs, fwRefs(kind, "guest", l.ipsets, l.aliases)...)
	}
	return refs, nil
}

func fwRefs(kind, scope string, sets map[string]*fwIPSet, aliases map[string]*fwAlias) []map[string]any {
	refs := []map[string]any{}
	add := func(of, name, ref, comment string) {
		if kind != "" && kind != of {
			return
		}
		entry := map[string]any{"type": of, "name": name, "ref": ref, "scope": scope}
		if comment != "" {
			entry["comment"] = comment
		}
		refs = append(refs, entry)
	}
	for _, name := range sortedKeys(sets) {
		add("ipset", name, "+"+name, sets[name].Comment)
	}
	for _, name := range sortedKeys(aliases) {
		add("alias", name, name, aliases[name].Comment)
	}
	return refs
}

// firewallLog is the firewall's log: none is written as long as no packets are filtered, and the server says so.
func firewallLog(*call) (any, error) {
	return listing{data: []map[string]any{{"n": 1, "t": "unable to open file - No such file or directory"}}, total: 1}, nil
}

// macrosList lists the macros: sets of protocols and ports by name.
func macrosList(*call) (any, error) {
	out := []map[string]any{}
	for _, m := range macros() {
		out = append(out, map[string]any{"macro": m.name, "descr": m.descr})
	}
	return out, nil
}
