package preflight

import (
	"context"
	"fmt"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// Privilege is a row of the table: a privilege on a path, and whether the identity has it.
type Privilege struct {
	Need
	Path    string
	Present bool
}

// Permissions says what the client's identity may do on a path; [pve.Client.Permissions] does. A token with privilege
// separation is answered with what both it and its user have.
type Permissions func(ctx context.Context, path string) (pve.Permissions, error)

// Check looks up every need of the features, one request per path.
func Check(ctx context.Context, ask Permissions, target Target, features []Feature) ([]Privilege, error) {
	known := map[string]pve.Permissions{}
	has := func(path, privilege string) (bool, error) {
		if _, asked := known[path]; !asked {
			p, err := ask(ctx, path)
			if err != nil {
				return false, fmt.Errorf("ask for the privileges on %s: %w", path, err)
			}
			known[path] = p
		}
		return known[path].Has(path, privilege), nil
	}
	var rows []Privilege
	for _, need := range Needs(features...) {
		for _, path := range target.paths(need.On) {
			present, err := has(path, need.Privilege)
			if other := target.alternative(need.On); err == nil && !present && other != "" {
				present, err = has(other, need.Privilege)
			}
			if err != nil {
				return nil, err
			}
			rows = append(rows, Privilege{Need: need, Path: path, Present: present})
		}
	}
	return rows, nil
}

// Missing are the rows that aren't there.
func Missing(rows []Privilege) []Privilege {
	var out []Privilege
	for _, r := range rows {
		if !r.Present {
			out = append(out, r)
		}
	}
	return out
}
