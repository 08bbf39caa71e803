package pve

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Defaults of [Config].
const (
	// DefaultRequestTimeout is above the server's own limit of 30 s for a
	// request that one node passes on to another, so that its answer (a 596) is
	// seen rather than a deadline of ours.
	DefaultRequestTimeout = 40 * time.Second
	// DefaultMaxInFlight bounds requests, and with them connections, in flight.
	DefaultMaxInFlight = 8
	// DefaultRetryFor bounds the retries of one GET.
	DefaultRetryFor = 15 * time.Second
	// DefaultPollPatience bounds how long a task's polls may fail in a row.
	DefaultPollPatience = 2 * time.Minute
)

// Config says which server to talk to, and how. The zero value of every field
// but Endpoint and the credentials is a sensible default.
type Config struct {
	// Endpoint is the server's address: "https://host:8006", with or without
	// "/api2/json". http is accepted for a loopback address only.
	Endpoint string

	// Token is an API token, "user@realm!name=uuid". Either it or Username and
	// Password must be given.
	Token string
	// Username is "user@realm"; Password its password.
	Username, Password string
	// OTP is the second factor of a ticket login: a code of a time-based
	// password ("123456", or "totp:123456"), or another kind with its prefix
	// ("recovery:…"). It is used for the first login only: later tickets are
	// renewed with the ticket before.
	OTP string

	TLS TLSConfig

	// UserAgent is sent with every request.
	UserAgent string
	// RequestTimeout bounds one attempt of one request, answer included.
	RequestTimeout time.Duration
	// MaxInFlight is the number of requests, and of connections, at one time.
	MaxInFlight int
	// RetryFor bounds the retries of one request, from its first attempt on.
	RetryFor time.Duration
	// PollPatience is how long [Client.Wait] goes on while no poll gets through.
	PollPatience time.Duration

	// Logger gets what the layer has to say, unless the call's context carries
	// one ([WithLogger]). Nil discards.
	Logger *slog.Logger
	// Clock is time, for tests. Nil is the machine's.
	Clock Clock
	// Jitter returns a number in [0,1), for tests. Nil is random.
	Jitter func() float64
}

// TLSConfig says how the server proves who it is. The zero value asks for a
// certificate of the system's roots.
type TLSConfig struct {
	// CAFile names a PEM file of certificate authorities; CAPEM is its text.
	// They replace the system's roots. At most one of them.
	CAFile, CAPEM string
	// Fingerprint is the SHA-256 fingerprint of the server's certificate, as
	// Proxmox shows it (32 bytes in hex, colons optional). Alone it replaces the
	// check of chain and name; with a CA both must hold.
	Fingerprint string
	// Insecure accepts any certificate.
	Insecure bool
}

// ConfigError is a field of [Config] that can't be right. New returns all of
// them, joined.
type ConfigError struct {
	// Field is the Go name of the field, "TLS.CAFile" for one of TLSConfig.
	Field string
	// Problem says what is wrong with it and what would be right.
	Problem string
}

func (e *ConfigError) Error() string { return "pve: " + e.Field + ": " + e.Problem }

const apiPath = "/api2/json"

var (
	// A user's name may hold an "@" of its own ("ann@example.org@ldap").
	tokenForm = regexp.MustCompile(`^[^\s:/!=]+@[A-Za-z][A-Za-z0-9._-]+![A-Za-z][A-Za-z0-9._-]+=\S+$`)
	userForm  = regexp.MustCompile(`^[^\s:/!]+@[A-Za-z][A-Za-z0-9._-]+$`)
)

// normalise checks cfg and fills in its defaults. No value of a secret is part
// of an error.
func (cfg Config) normalise() (Config, *url.URL, error) {
	var problems []error
	bad := func(field, format string, args ...any) {
		problems = append(problems, &ConfigError{Field: field, Problem: fmt.Sprintf(format, args...)})
	}

	base, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		bad("Endpoint", "%s", err)
	}

	byToken, byPassword := cfg.Token != "", cfg.Username != "" || cfg.Password != "" || cfg.OTP != ""
	switch {
	case byToken && byPassword:
		bad("Token", "is given beside a username, password or OTP; give either an API token or a login")
	case byToken:
		if !tokenForm.MatchString(cfg.Token) {
			bad("Token", "is not of the form user@realm!name=uuid (as `pveum user token add` shows it: full-tokenid=value)")
		}
	case byPassword:
		if cfg.Username == "" {
			bad("Username", "is missing beside a password or OTP; give user@realm, for example root@pam")
		} else if !userForm.MatchString(cfg.Username) {
			bad("Username", "%q is not of the form user@realm, for example root@pam or ci@pve", cfg.Username)
		}
		if cfg.Password == "" {
			bad("Password", "is missing for %s", cfg.Username)
		}
	default:
		bad("Token", "no credentials: give an API token (user@realm!name=uuid), or a username and a password")
	}

	problems = append(problems, cfg.TLS.check()...)
	if base != nil && base.Scheme == "http" && (cfg.TLS != TLSConfig{}) {
		bad("TLS", "settings make no sense for an endpoint that starts with http://")
	}

	for _, d := range []struct {
		field string
		value time.Duration
	}{{"RequestTimeout", cfg.RequestTimeout}, {"RetryFor", cfg.RetryFor}, {"PollPatience", cfg.PollPatience}} {
		if d.value < 0 {
			bad(d.field, "must not be negative, got %s", d.value)
		}
	}
	if cfg.MaxInFlight < 0 {
		bad("MaxInFlight", "must not be negative, got %d", cfg.MaxInFlight)
	}
	if strings.ContainsAny(cfg.UserAgent, "\r\n") {
		bad("UserAgent", "must be one line")
	}
	if len(problems) > 0 {
		return cfg, nil, errors.Join(problems...)
	}

	cfg.RequestTimeout = orDefault(cfg.RequestTimeout, DefaultRequestTimeout)
	cfg.RetryFor = orDefault(cfg.RetryFor, DefaultRetryFor)
	cfg.PollPatience = orDefault(cfg.PollPatience, DefaultPollPatience)
	cfg.MaxInFlight = orDefault(cfg.MaxInFlight, DefaultMaxInFlight)
	cfg.UserAgent = orDefault(cfg.UserAgent, "terraform-provider-sandbox")
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = systemClock{}
	}
	if cfg.Jitter == nil {
		cfg.Jitter = randomJitter
	}
	return cfg, base, nil
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// parseEndpoint returns the URL that API paths are appended to.
func parseEndpoint(endpoint string) (*url.URL, error) {
	const example = "for example https://pve.example.org:8006"
	endpoint = strings.TrimSpace(endpoint)
	if endpoint == "" {
		return nil, errors.New("is missing; give the server's address, " + example)
	}
	if !strings.Contains(endpoint, "://") {
		return nil, fmt.Errorf("%q has no scheme; write https://%s", endpoint, endpoint)
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, errors.New("is not a URL, " + example)
	}
	switch {
	case u.User != nil:
		return nil, errors.New("must not hold credentials; give them as an API token or username and password")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("has the scheme %q; write https://, %s", u.Scheme, example)
	case u.Hostname() == "":
		return nil, errors.New("names no host, " + example)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("must not have a query or fragment (the address of the web interface ends before \"#\"), " + example)
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return nil, errors.New("starts with http://: credentials would travel in clear; Proxmox VE listens on https")
	}
	path := strings.TrimRight(u.Path, "/")
	path = strings.TrimSuffix(path, apiPath)
	if path == "/api2" {
		path = ""
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: path + apiPath}, nil
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback()
	}
	return net.ParseIP(host).IsLoopback()
}
