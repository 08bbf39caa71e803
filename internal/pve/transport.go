package pve

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpproxy"
)

const (
	// idleTimeout is below the 5 s after which the server closes a connection
	// that nothing comes over: a request on one that is just being closed has no
	// answer, and nobody knows whether it arrived.
	idleTimeout = 4 * time.Second
	// dialTimeout bounds the connection, handshakeTimeout the handshake on it.
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	// largestAnswer bounds an answer; the list of 10,000 guests has about 6 MB.
	largestAnswer = 128 << 20
)

// transport is the http.RoundTripper below go-proxmox: it makes a form of what
// that sends, logs in, bounds what is in flight, retries, and reads each answer
// to its end.
type transport struct {
	base    *http.Transport
	cfg     Config
	host    string
	prefix  string
	slots   chan struct{}
	login   *login
	secrets *redactor
	clock   serverClock
}

func newTransport(cfg Config, base *url.URL, secrets *redactor) (*transport, error) {
	tlsConfig, err := cfg.TLS.tlsConfig(base.Host)
	if err != nil {
		return nil, err
	}
	// Read now, not once per process: HTTPS_PROXY, NO_PROXY, in any case.
	proxy := httpproxy.FromEnvironment().ProxyFunc()
	t := &transport{
		cfg: cfg, host: base.Host, prefix: base.Path, secrets: secrets,
		slots: make(chan struct{}, cfg.MaxInFlight),
		base: &http.Transport{
			Proxy:                 func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
			DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
			TLSClientConfig:       tlsConfig,
			TLSHandshakeTimeout:   handshakeTimeout,
			IdleConnTimeout:       idleTimeout,
			MaxIdleConns:          cfg.MaxInFlight,
			MaxIdleConnsPerHost:   cfg.MaxInFlight,
			MaxConnsPerHost:       cfg.MaxInFlight,
			ExpectContinueTimeout: time.Second,
		},
	}
	if cfg.Token == "" {
		t.login = newLogin(t, base)
	}
	return t, nil
}

// outgoing is a request that can be sent several times.
type outgoing struct {
	method string
	url    *url.URL
	header http.Header
	body   []byte
	// repeatable says that sending it twice does no harm.
	repeatable bool
}

// RoundTrip implements http.RoundTripper. The body of its answers is in memory.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	out := outgoing{method: req.Method, url: req.URL, header: req.Header.Clone(), repeatable: req.Method == http.MethodGet}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
		// go-proxmox says JSON of every body; ours are forms, for their booleans
		// and because the server has no other type for some parameters.
		out.body = body
		out.header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	ctx := req.Context()
	if t.login == nil {
		return t.send(ctx, out)
	}
	return t.sendLoggedIn(ctx, out)
}

// sendLoggedIn sends with a ticket, and once more with a new one when it was
// refused: a 401 was not carried out.
func (t *transport) sendLoggedIn(ctx context.Context, out outgoing) (*http.Response, error) {
	s, err := t.login.current(ctx)
	if err != nil {
		return nil, err
	}
	s.apply(out)
	res, err := t.send(ctx, out)
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		return res, err
	}
	if s, err = t.login.replace(ctx, s); err != nil {
		return nil, err
	}
	s.apply(out)
	return t.send(ctx, out)
}

// errNoAnswerInTime is the cause of a request that ran out of its own time.
var errNoAnswerInTime = errors.New("no answer in time")

// once makes one attempt. sent says whether any of it may have left.
func (t *transport) once(ctx context.Context, out outgoing) (res *http.Response, sent bool, err error) {
	select {
	case t.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	defer func() { <-t.slots }()

	timeout := fmt.Errorf("%w (%s)", errNoAnswerInTime, t.cfg.RequestTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, t.cfg.RequestTimeout, timeout)
	defer cancel()
	// A connection is handed out when its dial, proxy and handshake are done:
	// before that nothing of the request can have left.
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})

	var body io.Reader
	if out.body != nil {
		body = bytes.NewReader(out.body)
	}
	req, err := http.NewRequestWithContext(ctx, out.method, out.url.String(), body)
	if err != nil {
		return nil, false, err
	}
	req.Header = out.header.Clone()
	began := t.cfg.Clock.Now()
	res, err = t.base.RoundTrip(req)
	if err != nil {
		return nil, connected.Load(), t.explain(ctx, err)
	}
	t.clock.note(res.Header, began, t.cfg.Clock.Now())
	content, err := io.ReadAll(io.LimitReader(res.Body, largestAnswer+1))
	_ = res.Body.Close()
	if err != nil {
		return nil, true, t.explain(ctx, fmt.Errorf("the answer broke off: %w", err))
	}
	if len(content) > largestAnswer {
		return nil, true, fmt.Errorf("the answer has more than %d MiB", largestAnswer>>20)
	}
	res.Body = io.NopCloser(bytes.NewReader(content))
	if problem := notProxmox(ctx, res, content); problem != "" {
		return nil, true, t.strange(out, res, problem)
	}
	return res, true, nil
}

// explain puts a transport's error into words that help.
func (t *transport) explain(ctx context.Context, err error) error {
	if tlsErr := asTLSError(t.host, err); tlsErr != nil {
		return tlsErr
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var record tls.RecordHeaderError
	if errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/" {
		return &permanentError{fmt.Errorf("%s speaks plain HTTP, the Proxmox VE API speaks https: is the port right? (%w)", t.host, err)}
	}
	return err
}

// permanentError is one that a retry won't change.
type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// notProxmox says why a success can't come from the API, "" when it can. Every
// success of it is a JSON object with "data", some with a "total" beside it.
func notProxmox(ctx context.Context, res *http.Response, content []byte) string {
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return ""
	}
	var envelope map[string]json.RawMessage
	if err := json.Unmarshal(content, &envelope); err != nil {
		kind := orDefault(res.Header.Get("Content-Type"), "something")
		return fmt.Sprintf("%s of %d bytes came instead of the API's JSON", kind, len(content))
	}
	if _, ok := envelope["data"]; !ok {
		return `the answer is JSON, but has no "data"`
	}
	if total, ok := ctx.Value(totalKey{}).(*int); ok {
		if n, err := strconv.Atoi(string(envelope["total"])); err == nil {
			*total = n
		}
	}
	return ""
}

type totalKey struct{}

// withTotal returns a context whose call writes the "total" that the server puts
// beside a list's data to total.
func withTotal(ctx context.Context, total *int) context.Context {
	return context.WithValue(ctx, totalKey{}, total)
}

func (t *transport) strange(out outgoing, res *http.Response, problem string) error {
	return &Error{Method: out.method, Path: t.apiPath(out.url), Status: res.StatusCode, Message: problem, Meaning: NotProxmox}
}

func (t *transport) apiPath(u *url.URL) string { return strings.TrimPrefix(u.Path, t.prefix) }

// callError carries what a RoundTrip knows through http.Client and go-proxmox.
type callError struct {
	sent     bool
	attempts int
	err      error
}

func (e *callError) Error() string { return e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

// public returns the error that callers of this package see.
func (e *callError) public(method, path string, secrets cleaner) error {
	var answer *Error
	if errors.As(e.err, &answer) {
		return answer
	}
	return &TransportError{Method: method, Path: path, Sent: e.sent, Attempts: e.attempts, Err: cleanError(e.err, secrets)}
}

// cleanError keeps err as it is unless its text holds a secret.
func cleanError(err error, secrets cleaner) error {
	if text := secrets.clean(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}
