package pve

import (
	"context"
	"strings"
	"time"
)

// TokenInfo is what the server says of an API token.
type TokenInfo struct {
	// PrivilegeSeparation says that the token has only what was given to it itself, and that only as far as its
	// user has it too. Without, it has all that its user has.
	PrivilegeSeparation bool `pve:"privsep"`
	// Expire is in seconds since the epoch, 0 for never.
	Expire  int64  `pve:"expire"`
	Comment string `pve:"comment"`
	Extra   Extra
}

// Expires is when the token ends; the zero time for never.
func (t TokenInfo) Expires() time.Time {
	if t.Expire == 0 {
		return time.Time{}
	}
	return time.Unix(t.Expire, 0).UTC()
}

// TokenInfo asks for a token of a user ("sandbox@pve", "terraform"). It needs
// User.Modify on one of the user's groups or on /access/groups; a login may ask
// for its own. A narrow token, asking for itself, is refused.
func (c *Client) TokenInfo(ctx context.Context, user, token string) (TokenInfo, error) {
	return getObject[TokenInfo](ctx, c, "/access/users/"+escapeSegment(user)+"/token/"+escapeSegment(token), nil)
}

// User is the account behind the client, "name@realm", and Token the name of its
// API token, "" for a login.
func (c *Client) User() (user, token string) {
	if c.cfg.Token == "" {
		return c.cfg.Username, ""
	}
	id, _, _ := strings.Cut(c.cfg.Token, "=")
	user, token, _ = strings.Cut(id, "!")
	return user, token
}

// Redact returns text without the secrets that the client holds: its token's
// value, password, second factor and tickets, in plain and encoded forms.
func (c *Client) Redact(text string) string { return c.secrets.clean(text) }
