package server

import "strings"

// aliasView is an alias as the API shows it.
func (a *fwAlias) view() map[string]any {
	view := map[string]any{"name": a.Name, "cidr": a.CIDR}
	if _, version := parseIPOrCIDR(a.CIDR); version != 0 {
		view["ipversion"] = version
	}
	if a.Comment != "" {
		view["comment"] = a.Comment
	}
	return view
}

func (l *fwLevel) aliasViews() ([]map[string]any, string) {
	views := []map[string]any{}
	for _, key := range sortedKeys(l.aliases) {
		views = append(views, l.aliases[key].view())
	}
	digest := fwDigest(views...)
	return withDigest(views), digest
}

func aliasList(_ *call, l *fwLevel) (any, error) {
	views, _ := l.aliasViews()
	return views, nil
}

// newAlias is the alias of a request. A network of one address loses its prefix length, as in the file.
func newAlias(c *call, name string) *fwAlias {
	cidr, _ := parseIPOrCIDR(c.params.str("cidr"))
	return &fwAlias{Name: name, CIDR: cidr, Comment: fwComment(c.params.str("comment"))}
}

// aliasPost makes an alias. Names that differ in case only are one.
func aliasPost(c *call, l *fwLevel) error {
	name := c.params.str("name")
	key := strings.ToLower(name)
	if l.aliases[key] != nil {
		return paramError("name", "alias '%s' already exists", name)
	}
	l.aliases[key] = newAlias(c, name)
	return nil
}

func aliasGet(c *call, l *fwLevel) (any, error) {
	alias := l.aliases[strings.ToLower(c.params.str("name"))]
	if alias == nil {
		return nil, paramError("name", "no such alias")
	}
	return alias.view(), nil
}

// aliasPut replaces an alias whole, comment too, and takes the spelling of the name from the path.
func aliasPut(c *call, l *fwLevel) error {
	if err := l.checkAliasDigest(c); err != nil {
		return err
	}
	name, renamed := c.params.str("name"), c.params.str("rename")
	key, newKey := strings.ToLower(name), strings.ToLower(renamed)
	if l.aliases[key] == nil {
		return paramError("name", "no such alias")
	}
	if newKey != "" && newKey != key {
		if l.aliases[newKey] != nil {
			return paramError("name", "alias '%s' already exists", renamed)
		}
		delete(l.aliases, key)
		name, key = renamed, newKey
	}
	l.aliases[key] = newAlias(c, name)
	return nil
}

// aliasDelete removes an alias; one that isn't there is removed too.
func aliasDelete(c *call, l *fwLevel) error {
	if err := l.checkAliasDigest(c); err != nil {
		return err
	}
	delete(l.aliases, strings.ToLower(c.params.str("name")))
	return nil
}

func (l *fwLevel) checkAliasDigest(c *call) error {
	_, digest := l.aliasViews()
	return checkDigest(c.params.str("digest"), digest)
}
