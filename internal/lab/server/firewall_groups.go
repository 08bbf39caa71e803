package server

// groupViews are the security groups with their digest, by name.
func (s *Server) groupViews() ([]map[string]any, string) {
	views := []map[string]any{}
	for _, name := range sortedKeys(s.st.Firewall.Groups) {
		view := map[string]any{"group": name}
		if comment := s.st.Firewall.Groups[name].Comment; comment != "" {
			view["comment"] = comment
		}
		views = append(views, view)
	}
	digest := fwDigest(views...)
	return withDigest(views), digest
}

func (s *Server) securityGroups(*call) (any, error) {
	views, _ := s.groupViews()
	return views, nil
}

// groupPost makes a group; with rename it renames one, and with rename to the same name it sets the comment.
func groupPost(c *call, _ *fwLevel) error {
	groups := made(&c.s.st.Firewall.Groups)
	name, old := c.params.str("group"), c.params.str("rename")
	if old != "" {
		return c.renameGroup(old, name)
	}
	if groups[name] != nil {
		return paramError("group", "Security group '%s' already exists", name)
	}
	groups[name] = &fwRuleSet{Comment: fwComment(c.params.str("comment"))}
	return nil
}

func (c *call) renameGroup(old, name string) error {
	_, digest := c.s.groupViews()
	if err := checkDigest(c.params.str("digest"), digest); err != nil {
		return err
	}
	groups := c.s.st.Firewall.Groups
	group := groups[old]
	if group == nil {
		return paramError("group", "Security group '%s' does not exist", old)
	}
	if groups[name] != nil && name != old {
		return paramError("group", "Security group '%s' does already exist", name)
	}
	if c.params.has("comment") {
		group.Comment = fwComment(c.params.str("comment"))
	}
	if name != old {
		delete(groups, old)
		groups[name] = group
		c.s.renameReferences(old, name)
	}
	return nil
}

// renameReferences makes the rules that refer to a group refer to its new name, wherever they are.
func (s *Server) renameReferences(old, name string) {
	rename := func(file string, rules []fwRule) {
		found := false
		for _, r := range rules {
			if r.Options["type"] == "group" && r.Options["action"] == old {
				r.Options["action"], found = name, true
			}
		}
		if found {
			s.firewallWritten(file)
		}
	}
	rename("cluster", s.st.Firewall.Rules)
	for _, n := range s.st.Nodes {
		if n.Firewall != nil {
			rename("host-"+n.Name, n.Firewall.Rules)
		}
	}
	for vmid, f := range s.guestFirewalls() {
		rename(guestFile(vmid), f.Rules)
	}
}

// guestFirewalls are all guests' files by number, strays too.
func (s *Server) guestFirewalls() map[int]*guestFirewall {
	out := map[int]*guestFirewall{}
	for vmid, f := range s.st.Firewall.Strays {
		out[vmid] = f
	}
	for vmid := range s.st.Guests {
		if f := s.guestFirewallOf(vmid); f != nil {
			out[vmid] = f
		}
	}
	return out
}

// groupDelete removes an empty group. Whether rules refer to it doesn't matter: they dangle from then on.
func groupDelete(c *call, l *fwLevel) error {
	name := c.params.str("group")
	if len(*l.rules) > 0 {
		return failf("Security group '%s' is not empty", name)
	}
	delete(c.s.st.Firewall.Groups, name)
	return nil
}
