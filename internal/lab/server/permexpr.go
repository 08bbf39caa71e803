package server

import (
	"encoding/json"
	"fmt"
)

// permExpr is a permission expression of the API, written there as ["perm", "/vms/{vmid}", ["VM.Clone"]] or
// ["and", expression, …].
type permExpr struct {
	op    string     // and, or, perm, perm-modify, userid-param, userid-group
	parts []permExpr // of and, or
	// path is perm's and perm-modify's template, or userid-param's argument.
	path  string
	privs []string
	// oneOf: one of the privileges is enough. needs: a parameter that must be there. groups: create or update, when the
	// groups are those that the request gives.
	oneOf  bool
	needs  string
	groups string
}

// perm is the expression that demands privileges on a path.
func perm(path string, privs ...string) *permExpr {
	return &permExpr{op: "perm", path: path, privs: privs}
}

// UnmarshalJSON reads the API's notation.
func (p *permExpr) UnmarshalJSON(raw []byte) error {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return err
	}
	if len(items) < 2 {
		return fmt.Errorf("permission expression %s", raw)
	}
	if err := json.Unmarshal(items[0], &p.op); err != nil {
		return err
	}
	switch rest := items[1:]; p.op {
	case "and", "or":
		p.parts = make([]permExpr, len(rest))
		for i := range rest {
			if err := json.Unmarshal(rest[i], &p.parts[i]); err != nil {
				return err
			}
		}
		return nil
	case "perm":
		if err := json.Unmarshal(rest[0], &p.path); err != nil {
			return err
		}
		if err := json.Unmarshal(rest[1], &p.privs); err != nil {
			return err
		}
		return p.options(rest[2:])
	case "userid-group":
		if err := json.Unmarshal(rest[0], &p.privs); err != nil {
			return err
		}
		return p.options(rest[1:])
	case "perm-modify", "userid-param":
		return json.Unmarshal(rest[0], &p.path)
	}
	return fmt.Errorf("permission expression of kind %q", p.op)
}

// options reads what follows in pairs of a name and a value.
func (p *permExpr) options(rest []json.RawMessage) error {
	for i := 0; i+1 < len(rest); i += 2 {
		var name string
		var value any
		if err := json.Unmarshal(rest[i], &name); err != nil {
			return err
		}
		if err := json.Unmarshal(rest[i+1], &value); err != nil {
			return err
		}
		switch text := fmt.Sprint(value); name {
		case "any":
			p.oneOf = text == "1"
		case "require_param":
			p.needs = text
		case "groups_param":
			p.groups = text
		}
	}
	return nil
}
