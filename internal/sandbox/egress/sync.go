package egress

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// ConflictError says that a list can't be brought to what it should be, because
// somebody else writes it too.
type ConflictError struct {
	Scope      pve.FirewallScope
	Want, Have []Rule
	// Err is what was refused, if anything was.
	Err error
}

func (e *ConflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the rules of %s are being changed by somebody else: they were read again and written again, and are not what they should be", e.Scope)
	if e.Err != nil {
		fmt.Fprintf(&b, " (%v)", e.Err)
	}
	fmt.Fprintf(&b, "\nwanted:\n%sthere are:\n%s", numbered(e.Want), numbered(e.Have))
	return b.String()
}

func (e *ConflictError) Unwrap() error { return e.Err }

func numbered(rules []Rule) string {
	if len(rules) == 0 {
		return "  (none)\n"
	}
	var b strings.Builder
	for i, r := range rules {
		fmt.Fprintf(&b, "  %d: %s\n", i, r)
	}
	return b.String()
}

// SyncRules brings the rules of a scope to want, in this order, with the fewest
// calls, and reads them back. have is what they are believed to be; nil reads
// them first.
//
// Each call carries the digest of the list that it is meant for. When it is
// refused, or when the list read back isn't want, the list is read again once and
// brought to want; the second time the error is a *ConflictError that shows both
// lists. An answer that got lost is no conflict: the list says what was done.
func SyncRules(ctx context.Context, api API, scope pve.FirewallScope, have *List, want []Rule) (List, error) {
	want = normal(want)
	return SyncPart(ctx, api, scope, have, func([]Rule) []Rule { return want })
}

// SyncPart is SyncRules for a list of which only a part is ours: want is asked,
// each time that the list was read, what becomes of it. Rules that it hands back as
// they are aren't touched.
func SyncPart(ctx context.Context, api API, scope pve.FirewallScope, have *List, want func(have []Rule) []Rule) (List, error) {
	w := &writer{api: api, scope: scope, wanted: want}
	if have != nil {
		w.list, w.want = *have, want(have.Rules)
	} else if err := w.read(ctx); err != nil {
		return List{}, err
	}
	conflicts, lost := 0, 0
	for {
		changed, err := w.write(ctx)
		expected := w.list
		if err == nil && !changed && have == nil {
			return w.list, nil // as it was read a moment ago
		}
		if err != nil && !passing(err) {
			return w.list, err
		}
		if readErr := w.read(ctx); readErr != nil {
			return w.list, errors.Join(err, readErr)
		}
		have = nil
		if slices.Equal(w.list.Rules, w.want) {
			return w.list, nil
		}
		switch {
		case err != nil && pve.Means(err, pve.DigestMismatch) && slices.Equal(w.list.Rules, expected.Rules) && !w.careful:
			w.careful = true // nobody else wrote: this server counts digests in another way
		case err != nil && !pve.Means(err, pve.DigestMismatch, pve.NoSuchObject) && lost < 3:
			lost++
		case conflicts == 0:
			conflicts++
		default:
			return w.list, &ConflictError{Scope: scope, Want: w.want, Have: w.list.Rules, Err: err}
		}
	}
}

// passing says whether the list has to be looked at before err means anything: it
// was changed meanwhile, or the answer got lost, or its lock wasn't free in the
// time that the server waits for one.
func passing(err error) bool {
	return pve.LostAnswer(err) || pve.Means(err, pve.DigestMismatch, pve.LockTimeout) ||
		pve.Means(err, pve.NoSuchObject) && strings.Contains(err.Error(), "no rule at position")
}

// writer changes one list.
type writer struct {
	api   API
	scope pve.FirewallScope
	// wanted says what a list becomes, want what the one that was read last does.
	wanted func([]Rule) []Rule
	want   []Rule
	// list is what the server is believed to hold.
	list List
	// careful reads the digest before every call.
	careful bool
}

func (w *writer) read(ctx context.Context) error {
	l, err := ReadRules(ctx, w.api, w.scope)
	if err == nil {
		w.list, w.want = l, w.wanted(l.Rules)
	}
	return err
}

// write makes the calls. list is kept in step with what was answered for.
func (w *writer) write(ctx context.Context) (changed bool, err error) {
	for i, s := range steps(w.list.Rules, w.want) {
		if w.careful && i > 0 {
			before := w.list.Rules
			if err := w.read(ctx); err != nil {
				return changed, err
			}
			if !slices.Equal(before, w.list.Rules) {
				return changed, nil // the next round begins with what is there
			}
		}
		if err := w.call(ctx, s); err != nil {
			return changed, err
		}
		changed = true
		w.list = w.list.after(s)
	}
	return changed, nil
}

func (w *writer) call(ctx context.Context, s step) error {
	digest := w.list.Digest
	switch s.kind {
	case insertTop:
		return w.api.CreateFirewallRule(ctx, w.scope, s.rule.toServer(), digest)
	case moveRule:
		return w.api.MoveFirewallRule(ctx, w.scope, s.pos, s.before, digest)
	case replaceRule:
		return w.api.ReplaceFirewallRule(ctx, w.scope, s.pos, s.rule.toServer(), digest)
	case deleteRule:
		return w.api.DeleteFirewallRule(ctx, w.scope, s.pos, digest)
	}
	return fmt.Errorf("egress: unknown step %d", s.kind)
}

// after is the list as a step leaves it, with the digest that it has then.
func (l List) after(s step) List {
	rules, fields := slices.Clone(l.Rules), slices.Clone(l.fields)
	switch s.kind {
	case insertTop:
		rules, fields = slices.Insert(rules, 0, s.rule), slices.Insert(fields, 0, expectedFields(s.rule))
	case moveRule:
		rules, fields = moved(rules, s.pos, s.before), moved(fields, s.pos, s.before)
	case replaceRule:
		rules[s.pos], fields[s.pos] = s.rule, expectedFields(s.rule)
	case deleteRule:
		rules, fields = slices.Delete(rules, s.pos, s.pos+1), slices.Delete(fields, s.pos, s.pos+1)
	}
	out := List{Rules: rules, fields: fields}
	out.Digest = out.predicted()
	return out
}
