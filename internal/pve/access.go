package pve

import (
	"context"
	"encoding/json"
	"fmt"
)

// Permissions are the privileges of an identity by path: true where they also
// count below the path.
type Permissions map[string]map[string]bool

// Has reports whether the identity has the privilege on exactly that path. The
// server resolves what comes from above, so ask for the path that is meant.
func (p Permissions) Has(path, privilege string) bool {
	_, ok := p[path][privilege]
	return ok
}

// Missing returns those of the privileges that the identity lacks on path, in
// the order given.
func (p Permissions) Missing(path string, privileges ...string) []string {
	var missing []string
	for _, privilege := range privileges {
		if !p.Has(path, privilege) {
			missing = append(missing, privilege)
		}
	}
	return missing
}

// Permissions returns the effective privileges of the client's own identity on
// path ("/vms/105"), or on every path that has some when path is empty. A token
// with privilege separation and no ACL of its own has none, whoever its user is.
func (c *Client) Permissions(ctx context.Context, path string) (Permissions, error) {
	const call = "/access/permissions"
	p := params{}
	p.setText("path", path)
	raw, err := c.get(ctx, call, p)
	if err != nil {
		return nil, err
	}
	var wire map[string]map[string]json.RawMessage
	if err := json.Unmarshal(raw, &wire); err != nil {
		return nil, &AnswerError{Method: "GET", Path: call, Err: err}
	}
	out := make(Permissions, len(wire))
	for where, privileges := range wire {
		out[where] = make(map[string]bool, len(privileges))
		for name, value := range privileges {
			text, err := scalarText(value)
			if err != nil {
				return nil, &AnswerError{Method: "GET", Path: call, Err: fmt.Errorf("%s %s: %w", where, name, err)}
			}
			propagate, err := parseFlag(text)
			out[where][name] = err == nil && propagate
		}
	}
	return out, nil
}
