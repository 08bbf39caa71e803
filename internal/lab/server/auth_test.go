package server

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestRefusedLogins(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	for name, c := range map[string]struct {
		headers map[string]string
		status  string
	}{
		"nothing":      {nil, "401 No ticket"},
		"other scheme": {map[string]string{"Authorization": "Bearer x"}, "401 No ticket"},
		"wrong secret": {map[string]string{"Authorization": "PVEAPIToken=admin@pve!lab=x"}, "401 Authentication failed!"},
		"no such user": {map[string]string{"Authorization": "PVEAPIToken=nobody@pve!lab=x"}, "401 Authentication failed!"},
		"garbage":      {map[string]string{"Authorization": "PVEAPIToken=garbage"}, "401 Authentication failed!"},
		"bad ticket":   {map[string]string{"Cookie": "PVEAuthCookie=PVE%3Aadmin%40pve%3A00000000%3A%3Axxxx"}, "401 Authentication failed!"},
	} {
		if res, body := lab.raw("GET", "/api2/json/version", "", c.headers); res.Status != c.status || body != "" {
			t.Errorf("%s: %q %q", name, res.Status, body)
		}
	}
}

func TestA401TakesItsTime(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.AuthFailure = 80 * time.Millisecond }))
	start := time.Now()
	lab.raw("GET", "/api2/json/version", "", nil)
	if took := time.Since(start); took < 80*time.Millisecond {
		t.Errorf("answered after %s", took)
	}
}

// login is a ticket and its CSRF token.
func (lab *ctLab) login(user, password string) (ticket, csrf string) {
	lab.t.Helper()
	res, body := lab.raw("POST", "/api2/json/access/ticket", url.Values{"username": {user}, "password": {password}}.Encode(),
		map[string]string{"Content-Type": "application/x-www-form-urlencoded"})
	if res.StatusCode != http.StatusOK {
		lab.t.Fatal(res.Status, body)
	}
	var answer struct {
		Data struct{ Ticket, CSRFPreventionToken string }
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		lab.t.Fatal(err)
	}
	return answer.Data.Ticket, answer.Data.CSRFPreventionToken
}

func TestATicketReadsAloneAndWritesWithItsCSRFToken(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ticket, csrf := lab.login("admin@pve", "secret")
	cookie := map[string]string{"Cookie": "PVEAuthCookie=" + url.QueryEscape(ticket), "Content-Type": "application/x-www-form-urlencoded"}
	if res, _ := lab.raw("GET", "/api2/json/version", "", cookie); res.StatusCode != http.StatusOK {
		t.Error("read:", res.Status)
	}
	if res, _ := lab.raw("POST", "/api2/json/pools", "poolid=a", cookie); res.Status != "401 Permission denied - invalid csrf token" {
		t.Error("write without:", res.Status)
	}
	cookie["CSRFPreventionToken"] = csrf
	if res, _ := lab.raw("POST", "/api2/json/pools", "poolid=a", cookie); res.StatusCode != http.StatusOK {
		t.Error("write with:", res.Status)
	}
}

func TestATicketEndsAfterTwoHours(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ticket, _ := lab.login("admin@pve", "secret")
	if renewed, _ := lab.login("admin@pve", ticket); !strings.HasPrefix(renewed, "PVE:admin@pve:") {
		t.Error("a ticket as the password doesn't renew it")
	}
	lab.s.jump.Add(int64(2*time.Hour + time.Minute))
	if res, _ := lab.raw("GET", "/api2/json/version", "", map[string]string{"Cookie": "PVEAuthCookie=" + ticket}); res.StatusCode != http.StatusUnauthorized {
		t.Error(res.Status)
	}
}

func TestARootTokenIsNotRoot(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(100)
	lab.as("root").refused("PUT", ct+"/config", form{"features": "nesting=1,keyctl=1"}, 403,
		"Permission check failed (changing feature flags (except nesting) is only allowed for root@pam)")
	if res, body := lab.raw("PUT", "/api2/json/access/password", "userid=admin%40pve&password=longenough1", lab.admin(map[string]string{"Content-Type": "application/x-www-form-urlencoded"})); res.StatusCode != http.StatusForbidden {
		t.Error("a token changes passwords:", res.Status, body)
	}
}
