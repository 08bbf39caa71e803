package egress

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// ReadSet reads a set. One that doesn't exist is an error that means NoSuchObject.
func ReadSet(ctx context.Context, api API, scope pve.FirewallScope, name string) (Set, error) {
	entries, err := api.FirewallIPSet(ctx, scope, name)
	if err != nil {
		return Set{}, err
	}
	s := Set{Name: name, Entries: []netip.Prefix{}}
	for _, e := range entries {
		n, err := parseNetwork(e.CIDR)
		switch {
		case e.NoMatch:
			s.Foreign = append(s.Foreign, "!"+e.CIDR)
		case err != nil:
			s.Foreign = append(s.Foreign, e.CIDR)
		default:
			s.Entries = append(s.Entries, n)
		}
	}
	s.Entries = canonical(s.Entries)
	return s, nil
}

// diffSet is what has to be added to a set and what removed from it.
func diffSet(want, have Set) (add, remove []netip.Prefix) {
	w, h := canonical(want.Entries), canonical(have.Entries)
	held := map[netip.Prefix]bool{}
	for _, p := range h {
		held[p] = true
	}
	for _, p := range w {
		if !held[p] {
			add = append(add, p)
		}
		delete(held, p)
	}
	for _, p := range h {
		if held[p] {
			remove = append(remove, p)
		}
	}
	return add, remove
}

// Filling is a set that holds all that is wanted, and perhaps more: between Fill
// and Trim the rules that name it are written.
type Filling struct {
	api     API
	scope   pve.FirewallScope
	want    Set
	remove  []netip.Prefix
	written int
}

// Fill adds what a set lacks, and makes the set where there is none. have is what
// it is believed to hold; nil reads it. Members are named by their network, so two
// writers don't disturb each other and no digest is needed.
func Fill(ctx context.Context, api API, scope pve.FirewallScope, have *Set, want Set) (*Filling, error) {
	f := &Filling{api: api, scope: scope, want: want}
	if have == nil {
		s, err := ReadSet(ctx, api, scope, want.Name)
		switch {
		case err == nil:
			have = &s
		case pve.Means(err, pve.NoSuchObject):
			if err := f.create(ctx); err != nil {
				return f, err
			}
			have = &Set{Name: want.Name}
		default:
			return f, err
		}
	}
	for _, e := range have.Foreign { // an exception of one of ours would close it
		if err := f.delete(ctx, e); err != nil {
			return f, err
		}
	}
	add, remove := diffSet(want, *have)
	for _, p := range add {
		err := api.AddFirewallIPSetEntry(ctx, scope, want.Name, pve.FirewallIPSetEntry{CIDR: text(p)})
		if err != nil && !pve.Means(err, pve.AlreadyExists) {
			return f, fmt.Errorf("add %s to the IP set %s: %w", p, want.Name, err)
		}
		f.written++
	}
	f.remove = remove
	return f, nil
}

// create makes the set. One that exists by now is taken: its members are compared
// when it is read back.
func (f *Filling) create(ctx context.Context) error {
	err := f.api.CreateFirewallIPSet(ctx, f.scope, f.want.Name, f.want.Comment)
	if err != nil && !pve.Means(err, pve.AlreadyExists) {
		return fmt.Errorf("create the IP set %s: %w", f.want.Name, err)
	}
	f.written++
	return nil
}

func (f *Filling) delete(ctx context.Context, entry string) error {
	cidr := entry
	if entry != "" && entry[0] == '!' {
		cidr = entry[1:]
	}
	if err := f.api.DeleteFirewallIPSetEntry(ctx, f.scope, f.want.Name, cidr, ""); err != nil {
		return fmt.Errorf("remove %s from the IP set %s: %w", cidr, f.want.Name, err)
	}
	f.written++
	return nil
}

// Trim removes what a set has too many, and reads it back if anything was written.
// It returns what the set holds.
func (f *Filling) Trim(ctx context.Context) (Set, error) {
	for _, p := range f.remove {
		if err := f.delete(ctx, text(p)); err != nil {
			return Set{}, err
		}
	}
	if f.written == 0 {
		return f.want, nil
	}
	got, err := ReadSet(ctx, f.api, f.scope, f.want.Name)
	if err != nil {
		return Set{}, err
	}
	if len(got.Foreign) > 0 || !slices.Equal(got.Entries, canonical(f.want.Entries)) {
		add, remove := diffSet(f.want, got)
		return got, fmt.Errorf("the IP set %s of %s isn't what was written: somebody else writes it too (missing %v, too many %v)", f.want.Name, f.scope, add, append(texts(remove), got.Foreign...))
	}
	return got, nil
}

// SyncSet brings a set to want in place, additions first, and reads it back.
func SyncSet(ctx context.Context, api API, scope pve.FirewallScope, have *Set, want Set) (Set, error) {
	f, err := Fill(ctx, api, scope, have, want)
	if err != nil {
		return Set{}, err
	}
	return f.Trim(ctx)
}

func texts(list []netip.Prefix) []string {
	out := make([]string, 0, len(list))
	for _, p := range list {
		out = append(out, text(p))
	}
	return out
}
