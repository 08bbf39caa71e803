package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const ticketLife = 2 * time.Hour

// authenticate finds out who asks. Errors are the server's 401s.
func (s *Server) authenticate(c *call, req *http.Request) error {
	if isOpen(c.method, c.path) {
		return nil
	}
	if header, ok := strings.CutPrefix(req.Header.Get("Authorization"), "PVEAPIToken="); ok {
		return s.authenticateToken(c, header)
	}
	cookie := ticketCookie(req)
	if cookie == "" {
		return unauthorized("No ticket")
	}
	who, ok := s.verifyTicket(cookie)
	if !ok {
		return unauthorized("Authentication failed!")
	}
	if c.method != http.MethodGet && !s.verifyCSRF(req.Header.Get("CSRFPreventionToken"), who) {
		return unauthorized("Permission denied - invalid csrf token")
	}
	c.authID, c.ticket = who, true
	return nil
}

// isOpen lists what needs no login.
func isOpen(method, path string) bool {
	switch path {
	case "/access/ticket":
		return true
	case "/access/domains", "/access/openid":
		return method == http.MethodGet
	}
	return false
}

// authenticateToken checks "user@realm!id=secret".
func (s *Server) authenticateToken(c *call, header string) error {
	authID, secret, _ := strings.Cut(header, "=")
	name, id := splitAuthID(authID)
	u := s.st.Users[name]
	if u == nil || !s.active(u) || u.Tokens[id] == nil {
		return unauthorized("Authentication failed!")
	}
	t := u.Tokens[id]
	if subtle.ConstantTimeCompare([]byte(t.Secret), []byte(secret)) != 1 || (t.Expire != 0 && t.Expire <= s.now().Unix()) {
		return unauthorized("Authentication failed!")
	}
	c.authID = authID
	return nil
}

// active says whether an account is enabled and not expired.
func (s *Server) active(u *user) bool {
	return u.Enable && (u.Expire == 0 || u.Expire > s.now().Unix())
}

// ticketCookie is the login ticket of a request, as a cookie or, for POST /access/ticket's users, as a header.
func ticketCookie(req *http.Request) string {
	for _, part := range strings.Split(req.Header.Get("Cookie"), ";") {
		if value, ok := strings.CutPrefix(strings.TrimSpace(part), "PVEAuthCookie="); ok {
			if decoded, err := url.QueryUnescape(value); err == nil && strings.Contains(value, "%") {
				return decoded
			}
			return value
		}
	}
	return ""
}

// newTicket makes "PVE:user@realm:TIME::signature".
func (s *Server) newTicket(who string) string {
	plain := fmt.Sprintf("PVE:%s:%08X", who, s.now().Unix())
	return plain + "::" + s.sign(plain)
}

// verifyTicket says whose ticket it is, if it is one and not too old.
func (s *Server) verifyTicket(ticket string) (string, bool) {
	plain, signature, ok := strings.Cut(ticket, "::")
	parts := strings.Split(plain, ":")
	if !ok || len(parts) != 3 || parts[0] != "PVE" || !hmac.Equal([]byte(signature), []byte(s.sign(plain))) {
		return "", false
	}
	if !s.fresh(parts[2]) {
		return "", false
	}
	u := s.st.Users[parts[1]]
	return parts[1], u != nil && s.active(u)
}

// fresh says whether a hex time is within a ticket's life; a little in the future is a clock that differs.
func (s *Server) fresh(hexTime string) bool {
	made, err := strconv.ParseInt(hexTime, 16, 64)
	age := s.now().Sub(time.Unix(made, 0))
	return err == nil && age >= -5*time.Minute && age <= ticketLife
}

// newCSRF makes the token that a ticket's writes must carry.
func (s *Server) newCSRF(who string) string {
	stamp := fmt.Sprintf("%08X", s.now().Unix())
	return stamp + ":" + s.sign(stamp+":"+who)
}

func (s *Server) verifyCSRF(token, who string) bool {
	stamp, signature, ok := strings.Cut(token, ":")
	return ok && s.fresh(stamp) && hmac.Equal([]byte(signature), []byte(s.sign(stamp+":"+who)))
}

func (s *Server) sign(text string) string {
	mac := hmac.New(sha256.New, s.st.Secrets.Ticket)
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
