package server

import "strconv"

// firewallOptions are the options of a level by name: the parameters of its PUT.
func firewallOptions(path string) map[string]paramFact {
	known := map[string]paramFact{}
	for name, fact := range loadFacts()["PUT "+path].Params {
		switch name {
		case "node", "vmid", "delete", "digest":
		default:
			known[name] = fact
		}
	}
	return known
}

// optionsView are a level's options as the API shows them: numbers and switches as numbers, defaults not at all.
func (l *fwLevel) optionsView(known map[string]paramFact) map[string]any {
	view := map[string]any{}
	for name, value := range l.options {
		view[name] = value
		if kind := known[name].Type; kind == "boolean" || kind == "integer" {
			if n, err := strconv.Atoi(value); err == nil {
				view[name] = n
			}
		}
	}
	return view
}

func optionsGet(known map[string]paramFact) func(*call, *fwLevel) (any, error) {
	return func(_ *call, l *fwLevel) (any, error) {
		view := l.optionsView(known)
		view["digest"] = fwDigest(view)
		return view, nil
	}
}

// optionsPut merges options: what isn't named stays, "delete" puts back defaults.
func optionsPut(known map[string]paramFact) func(*call, *fwLevel) error {
	return func(c *call, l *fwLevel) error {
		if err := checkDigest(c.params.str("digest"), fwDigest(l.optionsView(known))); err != nil {
			return err
		}
		for _, name := range c.params.list("delete") {
			if _, ok := known[name]; !ok {
				return paramError("delete", "no such option '%s'", name)
			}
		}
		for _, name := range c.params.list("delete") {
			delete(l.options, name)
		}
		for name := range known {
			if value, ok := c.params[name]; ok {
				l.options[name] = value
			}
		}
		if l.env == "cluster" && c.params.num("enable") > 1 { // the datacenter's switch keeps the time of being turned on
			l.options["enable"] = strconv.FormatInt(c.s.now().Unix(), 10)
		}
		return nil
	}
}
