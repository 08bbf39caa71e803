package pve

import (
	"bytes"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
)

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// canaries must not be in any text, in none of their usual encodings.
func checkNoCanary(t *testing.T, where, text string, canaries ...string) {
	t.Helper()
	for _, c := range canaries {
		for _, form := range []string{c, url.QueryEscape(c), url.PathEscape(c), base64.StdEncoding.EncodeToString([]byte(c))} {
			if strings.Contains(text, form) {
				t.Errorf("%s shows %q:\n%s", where, form, text)
			}
		}
	}
}

const (
	canaryPassword = "canary-pass/word=1"
	canaryKey      = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIcanarykey user@host"
	canaryGuest    = "canary guest password"
)

func TestNoSecretIsInAnyLogOrErrorAtAnyLevel(t *testing.T) {
	t.Parallel()
	for _, level := range []slog.Level{LevelTrace - 100, LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		t.Run(level.String(), func(t *testing.T) {
			t.Parallel()
			l := serveLogin(t)
			var text syncBuffer
			logger := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: level}))
			c, _ := testClient(t, l.URL, func(cfg *Config) {
				cfg.Token, cfg.Username, cfg.Password, cfg.Logger = "", "ci@pve", canaryPassword, logger
			})
			_, err := c.CreateLXC(t.Context(), "pve1", CreateOptions{VMID: 100, OSTemplate: "local:vztmpl/x", Set: map[string]string{
				"password": canaryGuest, "ssh-public-keys": canaryKey + "\n" + canaryKey + "2", "hostname": "plain-hostname",
			}})
			if err == nil {
				t.Error("the fake server starts no task")
			}
			l.end()
			readTogether(t, c, 2)
			all := text.String() + err.Error()
			checkNoCanary(t, "log", all, canaryPassword, canaryKey, canaryGuest, "canary-ticket", "canarykey", "csrf-of")
			if level <= LevelTrace && !strings.Contains(all, "plain-hostname") {
				t.Errorf("the trace level must show what isn't secret:\n%s", all)
			}
			if level <= slog.LevelDebug && !strings.Contains(all, "/nodes/pve1/lxc") {
				t.Errorf("the debug level must show requests:\n%s", all)
			}
			if level > slog.LevelDebug && text.String() != "" {
				t.Errorf("nothing went wrong, but: %s", text.String())
			}
		})
	}
}

// The server's sentences repeat what they complain about.
func TestASecretThatTheServerRepeatsIsTakenOut(t *testing.T) {
	t.Parallel()
	secret := strings.TrimPrefix(testToken, "ci@pve!tests=")
	s := serve(t, func(w http.ResponseWriter, r request) {
		refuse(w, 400, "Parameter verification failed.", map[string]string{
			"password": "got '" + r.form.Get("password") + "'", "net0": "header was " + r.header.Get("Authorization"),
		})
	})
	var text syncBuffer
	logger := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: LevelTrace}))
	c, _ := testClient(t, s.URL)
	_, err := c.CreateLXC(WithLogger(t.Context(), logger), "pve1", CreateOptions{
		VMID: 100, OSTemplate: "local:vztmpl/x", Set: map[string]string{"password": canaryGuest},
	})
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(e.Params["password"], redacted) {
		t.Fatalf("got %v", err)
	}
	checkNoCanary(t, "error", err.Error(), secret, canaryGuest)
	checkNoCanary(t, "log", text.String(), secret, canaryGuest)
	if !strings.Contains(text.String(), "password="+redacted) {
		t.Errorf("the context's logger got: %s", text.String())
	}
}

func TestATransportErrorShowsNoSecret(t *testing.T) {
	t.Parallel()
	r := newRedactor(Config{Token: testToken})
	ctx := withCallSecrets(t.Context(), params{"password": canaryGuest})
	e := (&callError{sent: true, attempts: 1, err: errors.New("wrote " + canaryGuest + " and " + testToken)}).public("POST", "/x", r.forCall(ctx))
	checkNoCanary(t, "error", e.Error(), canaryGuest, strings.TrimPrefix(testToken, "ci@pve!tests="))
}

func TestParametersThatAreSecretAreKnownByName(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"password", "ssh-public-keys", "sshkeys", "otp", "tfa-challenge", "value", "env", "private-key", "Password"} {
		if !sensitive(key) {
			t.Errorf("%s is shown", key)
		}
	}
	for _, key := range []string{"hostname", "net0", "description", "tokenid", "vmid", "tags", "rootfs", "mp0"} {
		if sensitive(key) {
			t.Errorf("%s is hidden", key)
		}
	}
}

// A value that is too short to be looked for in texts is hidden by its name.
func TestAShortSecretIsHiddenByItsName(t *testing.T) {
	t.Parallel()
	got := newRedactor(Config{}).forCall(t.Context()).showForm("otp=12&cores=34")
	if got != "cores=34 otp="+redacted {
		t.Errorf("got %s", got)
	}
}
