package pve

import (
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func versionAnswer(w http.ResponseWriter, _ request) {
	data(w, map[string]string{"version": "9.2.11", "release": "9.2"})
}

func TestTLSMatrix(t *testing.T) {
	t.Parallel()
	s := serveTLS(t, versionAnswer)
	other := serveTLS(t, versionAnswer)
	_ = other
	der := s.Certificate().Raw
	pin := Fingerprint(der)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	caFile := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, []byte(ca), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := strings.Repeat("AB:", 31) + "AB"

	for _, c := range []struct {
		name string
		tls  TLSConfig
		ok   bool
	}{
		{"system roots", TLSConfig{}, false},
		{"CA as text", TLSConfig{CAPEM: ca}, true},
		{"CA as file", TLSConfig{CAFile: caFile}, true},
		{"fingerprint", TLSConfig{Fingerprint: pin}, true},
		{"fingerprint in lower case without colons", TLSConfig{Fingerprint: strings.ToLower(strings.ReplaceAll(pin, ":", ""))}, true},
		{"wrong fingerprint", TLSConfig{Fingerprint: wrong}, false},
		{"CA and fingerprint", TLSConfig{CAPEM: ca, Fingerprint: pin}, true},
		{"CA and wrong fingerprint", TLSConfig{CAPEM: ca, Fingerprint: wrong}, false},
		{"insecure", TLSConfig{Insecure: true}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, clock := testClient(t, s.URL, func(cfg *Config) { cfg.TLS = c.tls })
			_, err := client.Version(t.Context())
			if c.ok {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var te *TLSError
			if !errors.As(err, &te) || te.Fingerprint != pin {
				t.Fatalf("want an error with the fingerprint seen, got %v", err)
			}
			for _, want := range []string{pin, "fingerprint"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in: %v", want, err)
				}
			}
			if c.tls.Fingerprint == "" && !strings.Contains(err.Error(), "ca_file") {
				t.Errorf("ca_file is not offered in: %v", err)
			}
			if len(clock.sleeps) != 0 {
				t.Error("distrust was tried again")
			}
			if LostAnswer(err) {
				t.Error("nothing can have been sent over a connection that isn't trusted")
			}
		})
	}
}

func TestACAWithANameThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	s := serveTLS(t, versionAnswer)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "https://"))
	c, _ := testClient(t, "https://localhost:"+port, func(cfg *Config) { cfg.TLS.CAPEM = ca })
	_, err := c.Version(t.Context())
	var te *TLSError
	if !errors.As(err, &te) || te.Fingerprint == "" {
		t.Errorf("got %v", err)
	}
}

func TestAnEndpointThatIsNotProxmoxIsSaidSo(t *testing.T) {
	t.Parallel()
	html := func(status int, headers ...string) func(http.ResponseWriter, request) {
		return func(w http.ResponseWriter, _ request) {
			rawAnswer(w, status, http.StatusText(status), "<html>hello</html>", append(headers, "Content-Type: text/html")...)
		}
	}
	for name, handler := range map[string]func(http.ResponseWriter, request){
		"a web page":         html(200),
		"a page not found":   html(404),
		"a redirect":         html(302, "Location: http://example.org/login"),
		"method not allowed": html(405),
		"another API": func(w http.ResponseWriter, _ request) {
			_, _ = w.Write([]byte(`{"status":"ok"}`))
		},
		"another API with data": func(w http.ResponseWriter, _ request) { data(w, map[string]string{"name": "x"}) },
	} {
		s := serve(t, handler)
		c, _ := testClient(t, s.URL)
		_, err := c.Version(t.Context())
		if !Means(err, NotProxmox) || !strings.Contains(err.Error(), "not the Proxmox VE API") {
			t.Errorf("%s: %v", name, err)
		}
		if len(s.seen()) != 1 {
			t.Errorf("%s: asked %d times", name, len(s.seen()))
		}
	}
}

func TestAPlainHTTPServerIsSaidSo(t *testing.T) {
	t.Parallel()
	s := serve(t, versionAnswer)
	c, clock := testClient(t, strings.Replace(s.URL, "http://", "https://", 1))
	_, err := c.Version(t.Context())
	if err == nil || !strings.Contains(err.Error(), "speaks plain HTTP") || len(clock.sleeps) != 0 {
		t.Errorf("got %v after pauses %v", err, clock.sleeps)
	}
}

// Not parallel: the proxy comes from the environment.
func TestTheProxyOfTheEnvironmentIsUsed(t *testing.T) {
	s := serveTLS(t, versionAnswer)
	target := strings.TrimPrefix(s.URL, "https://")
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "CONNECT is expected", http.StatusBadRequest)
			return
		}
		asked <- r.Host
		up, err := net.Dial("tcp", target)
		if err != nil {
			t.Error(err)
			return
		}
		down, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(down, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(up, buffered); _ = up.Close() }()
		_, _ = io.Copy(down, up)
		_ = down.Close()
	}))
	proxy.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(proxy.Close)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")

	c, _ := testClient(t, "https://pve.invalid:8006", func(cfg *Config) { cfg.TLS.Fingerprint = Fingerprint(s.Certificate().Raw) })
	if _, err := c.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	if host := <-asked; host != "pve.invalid:8006" {
		t.Errorf("the proxy was asked for %q", host)
	}
}
