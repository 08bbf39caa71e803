package pve

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEndpointsInTheirUsualForms(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"https://pve.example.org:8006":               "https://pve.example.org:8006/api2/json",
		"https://pve.example.org:8006/":              "https://pve.example.org:8006/api2/json",
		"https://pve.example.org:8006/api2/json":     "https://pve.example.org:8006/api2/json",
		"https://pve.example.org:8006/api2/json/":    "https://pve.example.org:8006/api2/json",
		" https://pve.example.org/ ":                 "https://pve.example.org/api2/json",
		"https://proxy.example.org/pve":              "https://proxy.example.org/pve/api2/json",
		"https://[2001:db8::1]:8006":                 "https://[2001:db8::1]:8006/api2/json",
		"http://127.0.0.1:8006":                      "http://127.0.0.1:8006/api2/json",
		"http://localhost:8006/api2/json":            "http://localhost:8006/api2/json",
		"https://pve.example.org:8006/api2":          "https://pve.example.org:8006/api2/json",
		"https://pve.example.org:8006/api2/json////": "https://pve.example.org:8006/api2/json",
	} {
		u, err := parseEndpoint(endpoint)
		if err != nil || u.String() != want {
			t.Errorf("%q: got %v, %v", endpoint, u, err)
		}
	}
}

func TestNonsenseIsRefusedByTheFieldsName(t *testing.T) {
	t.Parallel()
	good := Config{Endpoint: "https://pve.example.org:8006", Token: testToken}
	for _, c := range []struct {
		name   string
		change func(*Config)
		field  string
		says   string
	}{
		{"no endpoint", func(c *Config) { c.Endpoint = "" }, "Endpoint", "is missing"},
		{"no scheme", func(c *Config) { c.Endpoint = "pve.example.org:8006" }, "Endpoint", "https://pve.example.org:8006"},
		{"http to another machine", func(c *Config) { c.Endpoint = "http://pve.example.org:8006" }, "Endpoint", "in clear"},
		{"another scheme", func(c *Config) { c.Endpoint = "ssh://pve" }, "Endpoint", `"ssh"`},
		{"credentials in it", func(c *Config) { c.Endpoint = "https://root:canary-secret@pve" }, "Endpoint", "credentials"},
		{"the web interface's address", func(c *Config) { c.Endpoint = "https://pve:8006/#v1:0:18" }, "Endpoint", "fragment"},
		{"a query", func(c *Config) { c.Endpoint = "https://pve:8006/?x=1" }, "Endpoint", "query"},
		{"not a URL", func(c *Config) { c.Endpoint = "https://pve:80 06" }, "Endpoint", "not a URL"},
		{"no credentials", func(c *Config) { c.Token = "" }, "Token", "no credentials"},
		{"two kinds of them", func(c *Config) { c.Username, c.Password = "root@pam", "canary-secret" }, "Token", "either"},
		{"half a token", func(c *Config) { c.Token = "canary-secret" }, "Token", "user@realm!name=uuid"},
		{"a token with its header", func(c *Config) { c.Token = "PVEAPIToken=" + testToken }, "Token", "user@realm!name=uuid"},
		{"no realm", func(c *Config) { c.Token, c.Username, c.Password = "", "root", "canary-secret" }, "Username", "user@realm"},
		{"no username", func(c *Config) { c.Token, c.Password = "", "canary-secret" }, "Username", "missing"},
		{"no password", func(c *Config) { c.Token, c.Username = "", "root@pam" }, "Password", "root@pam"},
		{"two CAs", func(c *Config) { c.TLS = TLSConfig{CAFile: "a", CAPEM: "b"} }, "TLS.CAFile", "one of them"},
		{"insecure with a CA", func(c *Config) { c.TLS = TLSConfig{Insecure: true, CAFile: "a"} }, "TLS.Insecure", "drop one"},
		{"insecure with a pin", func(c *Config) { c.TLS = TLSConfig{Insecure: true, Fingerprint: strings.Repeat("ab", 32)} }, "TLS.Insecure", "drop one"},
		{"a SHA-1 pin", func(c *Config) { c.TLS.Fingerprint = strings.Repeat("ab", 20) }, "TLS.Fingerprint", "SHA-1"},
		{"a short pin", func(c *Config) { c.TLS.Fingerprint = "AB:CD" }, "TLS.Fingerprint", "32"},
		{"a pin that is none", func(c *Config) { c.TLS.Fingerprint = "hello" }, "TLS.Fingerprint", "hex"},
		{"a CA file that isn't there", func(c *Config) { c.TLS.CAFile = filepath.Join(t.TempDir(), "no.pem") }, "TLS.CAFile", "cannot be read"},
		{"a CA that is none", func(c *Config) { c.TLS.CAPEM = "hello" }, "TLS.CAPEM", "no certificate"},
		{"TLS for http", func(c *Config) { c.Endpoint, c.TLS = "http://127.0.0.1:1", TLSConfig{Insecure: true} }, "TLS", "http://"},
		{"negative time", func(c *Config) { c.RequestTimeout = -time.Second }, "RequestTimeout", "negative"},
		{"negative number", func(c *Config) { c.MaxInFlight = -1 }, "MaxInFlight", "negative"},
		{"a header smuggled in", func(c *Config) { c.UserAgent = "a\r\nb: c" }, "UserAgent", "one line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := good
			c.change(&cfg)
			_, err := New(cfg)
			var ce *ConfigError
			if !errors.As(err, &ce) {
				t.Fatalf("got %v", err)
			}
			if ce.Field != c.field || !strings.Contains(ce.Problem, c.says) {
				t.Errorf("%s: %s", ce.Field, ce.Problem)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("a secret is in: %v", err)
			}
		})
	}
}

func TestNamesThatTheServerAllowsAreTaken(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"root@pam", "ci@pve", "ann@example.org@ldap", "a.b-c@my-realm.1"} {
		if _, err := New(Config{Endpoint: "https://pve:8006", Username: user, Password: "x"}); err != nil {
			t.Errorf("%s: %v", user, err)
		}
		if _, err := New(Config{Endpoint: "https://pve:8006", Token: user + "!t-1=0000"}); err != nil {
			t.Errorf("token of %s: %v", user, err)
		}
	}
}

func TestAllProblemsAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := New(Config{TLS: TLSConfig{Fingerprint: "x"}, MaxInFlight: -1})
	for _, field := range []string{"Endpoint", "Token", "TLS.Fingerprint", "MaxInFlight"} {
		if err == nil || !strings.Contains(err.Error(), "pve: "+field+":") {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
}

func TestDefaultsAreThoseDocumented(t *testing.T) {
	t.Parallel()
	cfg, _, err := Config{Endpoint: "https://pve:8006", Token: testToken}.normalise()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.RequestTimeout != DefaultRequestTimeout || cfg.MaxInFlight != DefaultMaxInFlight || cfg.RetryFor != DefaultRetryFor ||
		cfg.PollPatience != DefaultPollPatience || cfg.Logger == nil || cfg.Clock == nil || cfg.Jitter == nil || cfg.UserAgent == "" {
		t.Errorf("got %+v", cfg)
	}
}
