package pve

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// loginServer is a server with tickets: it counts logins, and knows which ticket
// is good.
type loginServer struct {
	*fakeServer
	mu      sync.Mutex
	n       int
	good    string
	answers func(form url.Values) (status int, extra map[string]any)
}

func serveLogin(t *testing.T) *loginServer {
	t.Helper()
	l := &loginServer{}
	l.fakeServer = serve(t, func(w http.ResponseWriter, r request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if r.path == ticketPath {
			l.ticket(w, r.form)
			return
		}
		cookie, csrf := r.header.Get("Cookie"), r.header.Get("CSRFPreventionToken")
		switch {
		case cookie != "PVEAuthCookie="+l.good:
			rawAnswer(w, 401, "permission denied - invalid PVE ticket", "")
		case r.method != "GET" && csrf != "csrf-of-"+l.good:
			rawAnswer(w, 401, "Permission denied - invalid csrf token", "")
		default:
			data(w, []any{})
		}
	})
	return l
}

func (l *loginServer) ticket(w http.ResponseWriter, form url.Values) {
	if l.answers != nil {
		status, extra := l.answers(form)
		if status != 200 {
			refuse(w, status, "authentication failure", nil)
			return
		}
		if extra != nil {
			data(w, extra)
			return
		}
	}
	l.n++
	l.good = fmt.Sprintf("PVE:ci@pve:%08d::canary-ticket==", l.n)
	data(w, map[string]any{"ticket": l.good, "CSRFPreventionToken": "csrf-of-" + l.good, "username": "ci@pve"})
}

func (l *loginServer) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.good = "none"
}

func TestOneLoginServesAllWhoBeginAtOnce(t *testing.T) {
	t.Parallel()
	l := serveLogin(t)
	c, _ := testClient(t, l.URL, byPassword)
	readTogether(t, c, 16)
	if n := l.count("POST", ticketPath); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
}

func TestOneLoginServesAllWhoseTicketEnded(t *testing.T) {
	t.Parallel()
	l := serveLogin(t)
	c, _ := testClient(t, l.URL, byPassword)
	readTogether(t, c, 8)
	l.end()
	readTogether(t, c, 16)
	if n := l.count("POST", ticketPath); n != 2 {
		t.Errorf("%d logins, want 2", n)
	}
}

func readTogether(t *testing.T, c *Client, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if _, err := c.Nodes(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestAWriteCarriesTheCSRFTokenAndSurvivesATicketThatEnds(t *testing.T) {
	t.Parallel()
	l := serveLogin(t)
	c, _ := testClient(t, l.URL, byPassword)
	for range 2 {
		if err := c.CreatePool(t.Context(), "p1", ""); err != nil {
			t.Fatal(err)
		}
		l.end()
	}
	if n := l.count("POST", "/pools"); n != 3 {
		t.Errorf("%d writes were sent, want 3: one was refused with 401 and sent again", n)
	}
}

func TestATicketIsRenewedWithItselfBeforeItEnds(t *testing.T) {
	t.Parallel()
	l := serveLogin(t)
	c, clock := testClient(t, l.URL, byPassword)
	readTogether(t, c, 1)
	first := l.good
	clock.advance(renewAfter + time.Minute)
	readTogether(t, c, 4)
	logins := loginForms(l)
	if len(logins) != 2 || logins[0].Get("password") != "canary-password" || logins[1].Get("password") != first {
		t.Errorf("%d logins; the second must give the first ticket as its password", len(logins))
	}
}

func loginForms(l *loginServer) []url.Values {
	var forms []url.Values
	for _, r := range l.seen() {
		if r.path == ticketPath {
			forms = append(forms, r.form)
		}
	}
	return forms
}

func TestAWrongPasswordIsSaidSoOnceAndNeverTriedAgain(t *testing.T) {
	t.Parallel()
	l := serveLogin(t)
	l.answers = func(url.Values) (int, map[string]any) { return 401, nil }
	c, clock := testClient(t, l.URL, byPassword)
	for range 3 {
		_, err := c.Nodes(t.Context())
		var e *Error
		if !errors.As(err, &e) || e.Meaning != Unauthorised || e.Message != "authentication failure" || !strings.Contains(err.Error(), "ci@pve") {
			t.Fatalf("got %v", err)
		}
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("the password is in: %v", err)
		}
	}
	if n := l.count("POST", ticketPath); n != 1 || len(clock.sleeps) != 0 {
		t.Errorf("%d logins, want 1: each costs 3 s and counts towards a lockout", n)
	}
}

func TestAWrongTokenIsSaidSoAndNotTriedAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) { rawAnswer(w, 401, "Authentication failed!", "") })
	c, clock := testClient(t, s.URL)
	_, err := c.Version(t.Context())
	var e *Error
	if !errors.As(err, &e) || e.Meaning != Unauthorised || e.Message != "Authentication failed!" {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "API token ci@pve!tests was refused") || strings.Contains(err.Error(), "1111") {
		t.Errorf("got %v", err)
	}
	if len(s.seen()) != 1 || len(clock.sleeps) != 0 {
		t.Errorf("asked %d times", len(s.seen()))
	}
}

func TestASecondFactorAnswersTheServersChallenge(t *testing.T) {
	t.Parallel()
	const challenge = `PVE:!tfa!%7B%22totp%22%3Atrue%7D:00000000::half`
	l := serveLogin(t)
	l.answers = func(form url.Values) (int, map[string]any) {
		if form.Get("tfa-challenge") == "" && !strings.HasPrefix(form.Get("password"), "PVE:") {
			return 200, map[string]any{"ticket": challenge, "CSRFPreventionToken": "x", "NeedTFA": 1, "username": "ci@pve"}
		}
		return 200, nil
	}
	withOTP := func(cfg *Config) { byPassword(cfg); cfg.OTP = "123456" }
	c, clock := testClient(t, l.URL, withOTP)
	readTogether(t, c, 4)
	forms := loginForms(l)
	if len(forms) != 2 {
		t.Fatalf("%d logins, want two steps", len(forms))
	}
	if forms[0].Has("otp") || forms[0].Get("password") != "canary-password" {
		t.Errorf("first step: %v", forms[0])
	}
	if forms[1].Get("password") != "totp:123456" || forms[1].Get("tfa-challenge") != challenge {
		t.Errorf("second step: %v", forms[1])
	}

	// The code counts once: later tickets come from the ticket before.
	clock.advance(renewAfter + time.Minute)
	readTogether(t, c, 1)
	if forms = loginForms(l); len(forms) != 3 || !strings.HasPrefix(forms[2].Get("password"), "PVE:") {
		t.Errorf("renewal: %v", forms[len(forms)-1])
	}
	clock.advance(3 * time.Hour)
	_, err := c.Nodes(t.Context())
	if !Means(err, Unauthorised) || !strings.Contains(err.Error(), "can't be used again") {
		t.Errorf("got %v", err)
	}
}

func TestAMissingSecondFactorIsSaidSo(t *testing.T) {
	t.Parallel()
	l := serveLogin(t)
	l.answers = func(url.Values) (int, map[string]any) {
		return 200, map[string]any{"ticket": "PVE:!tfa!x:0::y", "CSRFPreventionToken": "x", "NeedTFA": 1}
	}
	c, _ := testClient(t, l.URL, byPassword)
	_, err := c.Nodes(t.Context())
	if !Means(err, Unauthorised) || !strings.Contains(err.Error(), "second factor") {
		t.Errorf("got %v", err)
	}
}

func TestALoginThatTheServerCannotServeNowIsTriedAgain(t *testing.T) {
	t.Parallel()
	l := serveLogin(t)
	var n atomic.Int32
	l.answers = func(url.Values) (int, map[string]any) {
		if n.Add(1) == 1 {
			return 503, nil
		}
		return 200, nil
	}
	c, _ := testClient(t, l.URL, byPassword)
	readTogether(t, c, 2)
}
