package pve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	ticketPath = "/access/ticket"
	// renewAfter is half of a ticket's life: from then on it is renewed before it
	// ends, with itself in place of the password.
	renewAfter = time.Hour
	ticketLife = 2 * time.Hour
)

// session is a ticket and what goes with it.
type session struct {
	ticket, csrf string
	since        time.Time
}

// apply puts the session into the headers of a request.
func (s *session) apply(out outgoing) {
	out.header.Set("Cookie", "PVEAuthCookie="+s.ticket)
	if out.method != http.MethodGet {
		out.header.Set("CSRFPreventionToken", s.csrf)
	}
}

// login keeps the session of a client that has a password. However many requests
// find that there is none, or that it ended, one login is made, and all wait for
// it.
type login struct {
	t    *transport
	url  *url.URL
	mu   sync.Mutex
	have *session
	wait *loginFlight
	// refused is the server's refusal of the credentials: it is final, as each
	// further attempt costs 3 s and counts towards a lockout.
	refused error
	otpUsed bool
}

type loginFlight struct {
	done chan struct{}
	s    *session
	err  error
}

func newLogin(t *transport, base *url.URL) *login {
	return &login{t: t, url: base.JoinPath(ticketPath)}
}

// current returns the session, a new one when there is none or it is old.
func (l *login) current(ctx context.Context) (*session, error) {
	l.mu.Lock()
	s := l.have
	if s != nil && l.t.cfg.Clock.Now().Sub(s.since) < renewAfter {
		l.mu.Unlock()
		return s, nil
	}
	return l.join(ctx, s, true)
}

// replace returns another session than old, which was refused.
func (l *login) replace(ctx context.Context, old *session) (*session, error) {
	l.mu.Lock()
	if l.have != nil && l.have != old {
		defer l.mu.Unlock()
		return l.have, nil
	}
	return l.join(ctx, old, false)
}

// join waits for the login under way, or begins one. It is called with the lock
// held, and gives it back. The login goes on when the one who began it gives up.
func (l *login) join(ctx context.Context, old *session, oldIsGood bool) (*session, error) {
	if l.refused != nil {
		defer l.mu.Unlock()
		return nil, l.refused
	}
	f := l.wait
	if f == nil {
		f = &loginFlight{done: make(chan struct{})}
		l.wait = f
		go func() {
			// It is for all who wait, so neither its end nor its retries are those of
			// the call that began it.
			detached := context.WithValue(context.WithoutCancel(ctx), singleAttemptKey{}, nil)
			s, err := l.obtain(detached, old, oldIsGood)
			l.mu.Lock()
			f.s, f.err, l.wait = s, err, nil
			if err == nil {
				l.have = s
			} else if Means(err, Unauthorised) {
				l.refused = err
			}
			l.mu.Unlock()
			close(f.done)
		}()
	}
	l.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, &callError{err: context.Cause(ctx)}
	case <-f.done:
		return f.s, f.err
	}
}

// obtain gets a ticket: by the one before where that still counts, else by the
// password, and by the second factor when the server asks for one.
func (l *login) obtain(ctx context.Context, old *session, oldIsGood bool) (*session, error) {
	cfg := l.t.cfg
	if old != nil && (oldIsGood || l.otpUsed) && cfg.Clock.Now().Sub(old.since) < ticketLife {
		answer, err := l.post(ctx, params{"username": cfg.Username, "password": old.ticket}, true)
		if err == nil {
			return l.accept(answer)
		}
		if !Means(err, Unauthorised) {
			return nil, err
		}
	}
	if l.otpUsed {
		return nil, l.refusal("the login ended, and its one-time password can't be used again; run again with a new one, or use an API token")
	}
	answer, err := l.post(ctx, params{"username": cfg.Username, "password": cfg.Password}, true)
	if err != nil {
		return nil, err
	}
	if !answer.NeedTFA {
		return l.accept(answer)
	}
	if cfg.OTP == "" {
		return nil, l.refusal("the server asks for a second factor; give an OTP, or use an API token")
	}
	code := cfg.OTP
	if !strings.Contains(code, ":") {
		code = "totp:" + code
	}
	l.t.secrets.add(answer.Ticket)
	l.otpUsed = true
	answer, err = l.post(ctx, params{"username": cfg.Username, "password": code, "tfa-challenge": answer.Ticket}, false)
	if err != nil {
		return nil, err
	}
	return l.accept(answer)
}

type ticketAnswer struct {
	Ticket  string `pve:"ticket"`
	CSRF    string `pve:"CSRFPreventionToken"`
	NeedTFA bool   `pve:"NeedTFA"`
}

func (l *login) accept(a ticketAnswer) (*session, error) {
	if a.Ticket == "" || a.CSRF == "" {
		return nil, &Error{Method: http.MethodPost, Path: ticketPath, Status: http.StatusOK, Meaning: NotProxmox, Message: "the login's answer has no ticket"}
	}
	l.t.secrets.add(a.Ticket)
	l.t.secrets.add(a.CSRF)
	return &session{ticket: a.Ticket, csrf: a.CSRF, since: l.t.cfg.Clock.Now()}, nil
}

func (l *login) refusal(message string) error {
	return &Error{
		Method: http.MethodPost, Path: ticketPath, Status: http.StatusUnauthorized, Meaning: Unauthorised,
		Message: message, identity: "user " + l.t.cfg.Username,
	}
}

// post asks for a ticket. A login by password changes nothing on the server and
// may be repeated; one with a one-time password may not.
func (l *login) post(ctx context.Context, p params, repeatable bool) (ticketAnswer, error) {
	var out ticketAnswer
	ctx = withCallSecrets(ctx, p)
	header := http.Header{}
	header.Set("Content-Type", "application/x-www-form-urlencoded")
	header.Set("Accept", "application/json")
	header.Set("User-Agent", l.t.cfg.UserAgent)
	res, err := l.t.send(ctx, outgoing{
		method: http.MethodPost, url: l.url, header: header, body: []byte(p.encode()), repeatable: repeatable,
	})
	if err != nil {
		var failed *callError
		if errors.As(err, &failed) {
			// The call that waits for this login was not sent itself.
			return out, &callError{attempts: failed.attempts, err: fmt.Errorf("login: %w", failed.err)}
		}
		return out, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return out, err
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return out, l.refusedAnswer(ctx, res, body)
	}
	var envelope struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		return out, &AnswerError{Method: http.MethodPost, Path: ticketPath, Err: err}
	}
	if isNull(envelope.Data) {
		return out, nil // accept says what is missing
	}
	if err := decodeObject(envelope.Data, &out); err != nil {
		return out, &AnswerError{Method: http.MethodPost, Path: ticketPath, Err: err}
	}
	return out, nil
}

// refusedAnswer makes the error of an answer that is no ticket.
func (l *login) refusedAnswer(ctx context.Context, res *http.Response, body []byte) error {
	_, reason, _ := strings.Cut(res.Status, " ")
	var envelope struct {
		Message string `json:"message"`
	}
	message := reason
	if json.Unmarshal(body, &envelope) == nil && strings.TrimSpace(envelope.Message) != "" {
		message = strings.TrimSpace(envelope.Message)
	}
	message = l.t.secrets.forCall(ctx).clean(message)
	v := classify(res.StatusCode, message, nil)
	return &Error{
		Method: http.MethodPost, Path: ticketPath, Status: res.StatusCode, Message: message, Meaning: v.meaning,
		identity: "user " + l.t.cfg.Username,
	}
}
