package server

import (
	"cmp"
	"slices"
	"strings"
)

// ipsetViews are the names of a level's sets.
func (l *fwLevel) ipsetViews() ([]map[string]any, string) {
	views := []map[string]any{}
	for _, name := range sortedKeys(l.ipsets) {
		view := map[string]any{"name": name}
		if comment := l.ipsets[name].Comment; comment != "" {
			view["comment"] = comment
		}
		views = append(views, view)
	}
	digest := fwDigest(views...)
	return withDigest(views), digest
}

func ipsetList(_ *call, l *fwLevel) (any, error) {
	views, _ := l.ipsetViews()
	return views, nil
}

// ipsetPost makes a set, or renames one as groupPost does a group. Rules that name it aren't renamed.
func ipsetPost(c *call, l *fwLevel) error {
	name, old := c.params.str("name"), c.params.str("rename")
	if old == "" {
		if l.ipsets[name] != nil {
			return paramError("name", "IPSet '%s' already exists", name)
		}
		l.ipsets[name] = &fwIPSet{Comment: fwComment(c.params.str("comment"))}
		return nil
	}
	_, digest := l.ipsetViews()
	if err := checkDigest(c.params.str("digest"), digest); err != nil {
		return err
	}
	set := l.ipsets[old]
	if set == nil {
		return paramError("name", "IPSet '%s' does not exist", old)
	}
	if l.ipsets[name] != nil && name != old {
		return paramError("name", "IPSet '%s' does already exist", name)
	}
	if c.params.has("comment") {
		set.Comment = fwComment(c.params.str("comment"))
	}
	delete(l.ipsets, old)
	l.ipsets[name] = set
	return nil
}

// ipset is the set of the path.
func (l *fwLevel) ipset(c *call) (*fwIPSet, error) {
	if set := l.ipsets[c.params.str("name")]; set != nil {
		return set, nil
	}
	return nil, failf("no such IPSet '%s'", c.params.str("name"))
}

// views are a set's entries, with their digest.
func (set *fwIPSet) views() ([]map[string]any, string) {
	views := []map[string]any{}
	for _, e := range set.Entries {
		view := map[string]any{"cidr": e.CIDR}
		if e.NoMatch {
			view["nomatch"] = 1
		}
		if e.Comment != "" {
			view["comment"] = e.Comment
		}
		views = append(views, view)
	}
	digest := fwDigest(views...)
	return withDigest(views), digest
}

func ipsetGet(c *call, l *fwLevel) (any, error) {
	set, err := l.ipset(c)
	if err != nil {
		return nil, err
	}
	views, _ := set.views()
	return views, nil
}

// ipsetDelete removes a set, one with entries only by force. Whether rules name it doesn't matter.
func ipsetDelete(c *call, l *fwLevel) error {
	set, err := l.ipset(c)
	if err != nil {
		return err
	}
	if len(set.Entries) > 0 && !c.params.flag("force") {
		return failf("IPSet '%s' is not empty", c.params.str("name"))
	}
	delete(l.ipsets, c.params.str("name"))
	return nil
}

// ipsetAdd adds an entry. Bits beyond a network's prefix are cleared; an alias must exist.
func ipsetAdd(c *call, l *fwLevel) error {
	set, err := l.ipset(c)
	if err != nil {
		return err
	}
	cidr := c.params.str("cidr")
	if scope, name, ok := splitAlias(cidr); ok {
		if l.findAlias(scope, strings.ToLower(name)) == nil {
			return failf("no such alias '%s'", cidr)
		}
	} else {
		cidr = cleanCIDR(cidr)
		if _, length, ok := strings.Cut(cidr, "/"); ok && isZero(length) {
			return paramError("cidr", "a zero prefix is not allowed in ipset entries")
		}
	}
	if set.find(cidr) >= 0 {
		return paramError("cidr", "address '%s' already exists", cidr)
	}
	set.Entries = append(set.Entries, fwSetItem{CIDR: cidr, NoMatch: c.params.flag("nomatch"), Comment: fwComment(c.params.str("comment"))})
	slices.SortFunc(set.Entries, func(a, b fwSetItem) int { return cmp.Compare(a.CIDR, b.CIDR) })
	return nil
}

// find is the index of an entry, -1 if it isn't there.
func (set *fwIPSet) find(cidr string) int {
	return slices.IndexFunc(set.Entries, func(e fwSetItem) bool { return e.CIDR == cidr })
}

func entryGet(c *call, l *fwLevel) (any, error) {
	set, err := l.ipset(c)
	if err != nil {
		return nil, err
	}
	views, _ := set.views()
	if i := set.find(c.params.str("cidr")); i >= 0 {
		return views[i], nil
	}
	return nil, paramError("cidr", "no such IP/Network")
}

// entryPut replaces an entry's flag and comment: what isn't given is unset.
func entryPut(c *call, l *fwLevel) error {
	set, err := l.changedIPSet(c)
	if err != nil {
		return err
	}
	i := set.find(c.params.str("cidr"))
	if i < 0 {
		return paramError("cidr", "no such IP/Network")
	}
	set.Entries[i].NoMatch, set.Entries[i].Comment = c.params.flag("nomatch"), fwComment(c.params.str("comment"))
	return nil
}

// entryDelete removes an entry; one that isn't there is removed too.
func entryDelete(c *call, l *fwLevel) error {
	set, err := l.changedIPSet(c)
	if err != nil {
		return err
	}
	if i := set.find(c.params.str("cidr")); i >= 0 {
		set.Entries = slices.Delete(set.Entries, i, i+1)
	}
	return nil
}

// changedIPSet is the set of the path, of which the request may know the digest.
func (l *fwLevel) changedIPSet(c *call) (*fwIPSet, error) {
	set, err := l.ipset(c)
	if err != nil {
		return nil, err
	}
	_, digest := set.views()
	return set, checkDigest(c.params.str("digest"), digest)
}
