package egress

import (
	"context"
	"crypto/sha1" //nolint:gosec // the server's digests are SHA-1
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// List is a scope's rules with the digest that proves that they are still so.
type List struct {
	Rules  []Rule
	Digest string
	// fields are the rules as the server counts them for its digest.
	fields []map[string]string
}

// ReadRules reads the rules of a scope.
func ReadRules(ctx context.Context, api API, scope pve.FirewallScope) (List, error) {
	rules, err := api.FirewallRules(ctx, scope)
	if err != nil {
		return List{}, err
	}
	l := List{}
	for _, r := range rules {
		l.Rules = append(l.Rules, fromServer(r))
		l.fields = append(l.fields, serverFields(r))
		l.Digest = r.Digest
	}
	if len(rules) == 0 {
		l.Digest = l.predicted()
	}
	return l, nil
}

// Believed is a list that was read earlier, such as in a state: its digest keeps
// it from being overwritten when it has changed since.
func Believed(rules []Rule, digest string) *List {
	l := &List{Rules: normal(rules), Digest: digest}
	for _, r := range l.Rules {
		l.fields = append(l.fields, expectedFields(r))
	}
	return l
}

// predicted is the digest that the server has for the list: SHA-1 over "key:value"
// lines of each rule's fields, sorted by their names. Its position isn't among
// them, so equal content has equal digests (all digests of the recorded exchanges
// are so). To know it before a write saves reading between two writes; a server
// that counts otherwise refuses the write, and then each digest is read.
func (l List) predicted() string {
	h := sha1.New() //nolint:gosec // as above
	for _, rule := range l.fields {
		for _, key := range slices.Sorted(maps.Keys(rule)) {
			_, _ = h.Write([]byte(key + ":" + rule[key] + "\n"))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// serverFields are the fields of a rule that the server sent.
func serverFields(r pve.FirewallRule) map[string]string {
	f := plainFields(fromServer(r))
	for key, raw := range r.Extra {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			f[key] = text
			continue
		}
		var number json.Number
		if json.Unmarshal(raw, &number) == nil {
			f[key] = number.String()
		} // an object (the errors of a rule) doesn't count
	}
	return f
}

// expectedFields are those that the server will make of a rule that is written.
func expectedFields(r Rule) map[string]string {
	f := plainFields(r)
	if v := r.version(); v != 0 && r.Type != Group {
		f["ipversion"] = strconv.Itoa(v)
	}
	return f
}

func plainFields(r Rule) map[string]string {
	f := map[string]string{"type": r.Type, "action": r.Action, "enable": pve.Bool(r.Enabled)}
	for key, value := range map[string]string{
		"macro": r.Macro, "proto": r.Proto, "source": r.Source, "dest": r.Dest, "sport": r.SPort, "dport": r.DPort,
		"icmp-type": r.ICMPType, "iface": r.Iface, "log": r.Log, "comment": r.Comment,
	} {
		if value != "" {
			f[key] = value
		}
	}
	return f
}

func normal(rules []Rule) []Rule {
	out := make([]Rule, 0, len(rules))
	for _, r := range rules {
		out = append(out, r.Normal())
	}
	return out
}
