package pve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	proxmox "github.com/luthermonson/go-proxmox"
)

// Client talks to one Proxmox VE server or cluster, as one identity.
type Client struct {
	cfg       Config
	api       *proxmox.Client
	transport *transport
	basePath  string
	host      string
	identity  string
	secrets   *redactor
	lists     *Lists
	// writes counts the writes that began or ended, and the tasks that ended:
	// a list from before the last of them is out of date.
	writes atomic.Uint64
}

// New returns a client for cfg. It makes no request: the first call does.
// What can't be right in cfg is an error that holds a [*ConfigError] for each.
func New(cfg Config) (*Client, error) {
	cfg, base, err := cfg.normalise()
	if err != nil {
		return nil, err
	}
	secrets := newRedactor(cfg)
	tp, err := newTransport(cfg, base, secrets)
	if err != nil {
		return nil, err
	}
	options := []proxmox.Option{
		proxmox.WithHTTPClient(&http.Client{
			Transport: tp,
			// A redirect is no answer of the API, and would carry credentials off.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}),
		proxmox.WithUserAgent(cfg.UserAgent),
		// go-proxmox prints request bodies, passwords included.
		proxmox.WithLogger(silent{}),
	}
	identity := "user " + cfg.Username
	if cfg.Token != "" {
		id, secret, _ := strings.Cut(cfg.Token, "=")
		options = append(options, proxmox.WithAPIToken(id, secret))
		identity = "API token " + id
	}
	c := &Client{
		cfg: cfg, transport: tp, secrets: secrets, identity: identity,
		api:      proxmox.NewClient(base.String(), options...),
		basePath: base.Path,
		host:     base.Host,
	}
	c.lists = newLists(c)
	return c, nil
}

// Identity is who the client is: "API token user@realm!name" or "user
// user@realm".
func (c *Client) Identity() string { return c.identity }

// ByToken reports whether the client uses an API token: some calls are for
// logins only.
func (c *Client) ByToken() bool { return c.cfg.Token != "" }

// Lists returns the lists that all users of this client share.
func (c *Client) Lists() *Lists { return c.lists }

// Close closes idle connections. The client may be used on.
func (c *Client) Close() { c.transport.base.CloseIdleConnections() }

type silent struct{}

func (silent) Debugf(string, ...any) {}
func (silent) Errorf(string, ...any) {}
func (silent) Infof(string, ...any)  {}
func (silent) Warnf(string, ...any)  {}

type loggerKey struct{}

// WithLogger returns a context whose calls log to logger.
func WithLogger(ctx context.Context, logger *slog.Logger) context.Context {
	return context.WithValue(ctx, loggerKey{}, logger)
}

func loggerOf(ctx context.Context, fallback *slog.Logger) *slog.Logger {
	if l, ok := ctx.Value(loggerKey{}).(*slog.Logger); ok && l != nil {
		return l
	}
	return fallback
}

// call sends one request and returns the "data" of its answer, nil for null.
func (c *Client) call(ctx context.Context, method, path string, p params) (json.RawMessage, error) {
	var body []byte
	target := path
	if len(p) > 0 {
		if method == http.MethodGet || method == http.MethodDelete {
			target += "?" + p.encode()
		} else {
			body = []byte(p.encode())
		}
	}
	write := method != http.MethodGet
	if write {
		c.writes.Add(1)
		defer c.writes.Add(1)
	}
	ctx = withCallSecrets(ctx, p)
	var raw json.RawMessage
	if err := c.api.Req(ctx, method, target, body, &raw); err != nil {
		return nil, c.asError(ctx, method, path, err)
	}
	return raw, nil
}

// asError turns what go-proxmox returns into an error of this package, without
// any secret in it.
func (c *Client) asError(ctx context.Context, method, path string, err error) error {
	if plain, bad := url.PathUnescape(path); bad == nil {
		path = plain // for people; no caller decides by it
	}
	secrets := c.secrets.forCall(ctx)
	if refused, ok := proxmox.AsAPIError(err); ok {
		e := &Error{
			Method: method, Path: path, Status: refused.StatusCode, Message: secrets.clean(strings.TrimSpace(refused.Message)),
			RetryAfter: refused.RetryAfter, identity: c.identity,
		}
		for name, text := range refused.Errors {
			if e.Params == nil {
				e.Params = make(map[string]string, len(refused.Errors))
			}
			e.Params[name] = secrets.clean(strings.TrimSpace(text))
		}
		v := classify(e.Status, e.Message, e.Params)
		e.Meaning, e.LockedBy, e.Privilege, e.PrivilegePath = v.meaning, v.lockedBy, v.privilege, v.path
		e.Message = orDefault(e.Message, http.StatusText(e.Status))
		return e
	}
	var own *callError
	if errors.As(err, &own) {
		return own.public(method, path, secrets)
	}
	var answer *Error
	if errors.As(err, &answer) {
		return answer // of the login that the call needed
	}
	var strange *AnswerError
	if errors.As(err, &strange) {
		return strange
	}
	if cause := context.Cause(ctx); cause != nil {
		return &TransportError{Method: method, Path: path, Err: cause}
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		return &AnswerError{Method: method, Path: path, Err: fmt.Errorf("no JSON of the API: %w", err)}
	}
	return &TransportError{Method: method, Path: path, Err: errors.New(secrets.clean(err.Error()))}
}

func (c *Client) get(ctx context.Context, path string, p params) (json.RawMessage, error) {
	return c.call(ctx, http.MethodGet, path, p)
}

func (c *Client) post(ctx context.Context, path string, p params) error {
	_, err := c.call(ctx, http.MethodPost, path, p)
	return err
}

func (c *Client) put(ctx context.Context, path string, p params) error {
	_, err := c.call(ctx, http.MethodPut, path, p)
	return err
}

func (c *Client) del(ctx context.Context, path string, p params) error {
	_, err := c.call(ctx, http.MethodDelete, path, p)
	return err
}

// startTask sends a write whose answer is the id of a task.
func (c *Client) startTask(ctx context.Context, method, path string, p params) (UPID, error) {
	raw, err := c.call(ctx, method, path, p)
	if err != nil {
		return "", err
	}
	text, err := scalarText(raw)
	if err == nil {
		_, err = UPID(text).Parse()
	}
	if err != nil {
		return "", &AnswerError{Method: method, Path: path, Err: fmt.Errorf("the id of a task was expected: %w", err)}
	}
	return UPID(text), nil
}

// getObject gets one object.
func getObject[T any](ctx context.Context, c *Client, path string, p params) (T, error) {
	var out T
	raw, err := c.get(ctx, path, p)
	if err != nil {
		return out, err
	}
	if isNull(raw) {
		return out, &AnswerError{Method: http.MethodGet, Path: path, Err: errors.New("an object was expected, got nothing")}
	}
	if err := decodeObject(raw, &out); err != nil {
		return out, &AnswerError{Method: http.MethodGet, Path: path, Err: err}
	}
	return out, nil
}

// getList gets a list of objects: nil for null, never nil for a list.
func getList[T any](ctx context.Context, c *Client, path string, p params) ([]T, error) {
	raw, err := c.get(ctx, path, p)
	if err != nil || isNull(raw) {
		return nil, err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, &AnswerError{Method: http.MethodGet, Path: path, Err: err}
	}
	out := make([]T, len(items))
	for i, item := range items {
		if err := decodeObject(item, &out[i]); err != nil {
			return nil, &AnswerError{Method: http.MethodGet, Path: path, Err: fmt.Errorf("entry %d: %w", i, err)}
		}
	}
	return out, nil
}
