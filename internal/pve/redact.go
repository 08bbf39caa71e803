package pve

import (
	"context"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"sync"
)

const redacted = "[redacted]"

// shortestSecret is the length below which a value isn't looked for in texts: it
// would take away half of every sentence. The server refuses passwords below 5.
const shortestSecret = 4

// redactor takes the client's secrets out of texts: the token's value, the
// password and OTP, and the tickets that came of them.
type redactor struct {
	mu     sync.RWMutex
	values []string
}

func newRedactor(cfg Config) *redactor {
	r := &redactor{}
	if _, secret, ok := strings.Cut(cfg.Token, "="); ok {
		r.add(secret)
	}
	r.add(cfg.Password)
	r.add(cfg.OTP)
	if _, code, ok := strings.Cut(cfg.OTP, ":"); ok {
		r.add(code)
	}
	return r
}

// add makes a value a secret from now on.
func (r *redactor) add(secret string) {
	forms := secretForms(secret)
	if len(forms) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, form := range forms {
		if !slices.Contains(r.values, form) {
			r.values = append(r.values, form)
		}
	}
	// The longest first: one may be a part of another.
	slices.SortFunc(r.values, func(a, b string) int { return len(b) - len(a) })
}

// secretForms are the ways in which a secret may stand in a text: itself, each
// of its lines, and percent or base64 encoded.
func secretForms(secret string) []string {
	var forms []string
	for _, plain := range append([]string{secret}, strings.Split(secret, "\n")...) {
		plain = strings.TrimSpace(plain)
		if len(plain) < shortestSecret {
			continue
		}
		forms = append(forms, plain, url.QueryEscape(plain), url.PathEscape(plain),
			base64.StdEncoding.EncodeToString([]byte(plain)), base64.RawURLEncoding.EncodeToString([]byte(plain)))
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// clean returns text without any secret.
func (r *redactor) clean(text string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return removeAll(text, r.values)
}

func removeAll(text string, values []string) string {
	for _, v := range values {
		text = strings.ReplaceAll(text, v, redacted)
	}
	return text
}

// sensitive reports whether a parameter's value must not be shown.
func sensitive(key string) bool {
	key = strings.ToLower(key)
	switch key {
	case "tokenid":
		return false
	case "value", "key", "env", "keys":
		return true
	}
	for _, part := range []string{
		"password", "passwd", "otp", "secret", "token", "ticket", "challenge", "ssh", "private", "-key", "_key",
	} {
		if strings.Contains(key, part) {
			return true
		}
	}
	return false
}

type callSecretsKey struct{}

// withCallSecrets remembers the secrets among the parameters of one call, for
// the texts that it leads to.
func withCallSecrets(ctx context.Context, p params) context.Context {
	var values []string
	for key, value := range p {
		if sensitive(key) {
			values = append(values, secretForms(value)...)
		}
	}
	if len(values) == 0 {
		return ctx
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	return context.WithValue(ctx, callSecretsKey{}, values)
}

// cleaner cleans the texts of one call.
type cleaner struct {
	client *redactor
	call   []string
}

func (r *redactor) forCall(ctx context.Context) cleaner {
	values, _ := ctx.Value(callSecretsKey{}).([]string)
	return cleaner{client: r, call: values}
}

func (c cleaner) clean(text string) string { return c.client.clean(removeAll(text, c.call)) }

// showForm writes parameters for a log: sensitive ones by name only.
func (c cleaner) showForm(encoded string) string {
	values, err := url.ParseQuery(encoded)
	if err != nil {
		return redacted
	}
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	parts := make([]string, len(keys))
	for i, key := range keys {
		if sensitive(key) {
			parts[i] = key + "=" + redacted
		} else {
			parts[i] = key + "=" + c.clean(strings.Join(values[key], ","))
		}
	}
	return strings.Join(parts, " ")
}
