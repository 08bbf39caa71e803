package pve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	testToken = "ci@pve!tests=11111111-2222-3333-4444-555555555555"
	testUPID  = UPID("UPID:pve1:000010F5:00041178:6B0E5325:vzclone:9000:ci@pve!tests:")
)

// fakeClock is a clock whose time passes only by sleeping.
type fakeClock struct {
	mu     sync.Mutex
	now    time.Time
	sleeps []time.Duration
}

func newFakeClock() *fakeClock { return &fakeClock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	c.now = c.now.Add(d)
	c.sleeps = append(c.sleeps, d)
	return nil
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// request is a request that the fake server saw.
type request struct {
	method, path string
	query, form  url.Values
	header       http.Header
	raw          string
}

// fakeServer is a server whose answers a test writes itself.
type fakeServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
	conns    int
	open     int
	peakOpen int
	inFlight int
	peak     int
}

// serve starts a server that answers with handler. Paths come without
// "/api2/json".
func serve(t *testing.T, handler func(w http.ResponseWriter, r request)) *fakeServer {
	t.Helper()
	s := newFakeServer(t, handler)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func serveTLS(t *testing.T, handler func(w http.ResponseWriter, r request)) *fakeServer {
	t.Helper()
	s := newFakeServer(t, handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func newFakeServer(t *testing.T, handler func(w http.ResponseWriter, r request)) *fakeServer {
	s := &fakeServer{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		body := new(strings.Builder)
		if _, err := bufio.NewReader(hr.Body).WriteTo(body); err != nil {
			t.Errorf("reading a request: %v", err)
		}
		form, err := url.ParseQuery(body.String())
		if err != nil {
			t.Errorf("a body that is no form: %q", body)
		}
		r := request{
			method: hr.Method, path: strings.TrimPrefix(hr.URL.EscapedPath(), apiPath), query: hr.URL.Query(), form: form,
			header: hr.Header, raw: body.String(),
		}
		s.mu.Lock()
		s.requests = append(s.requests, r)
		s.inFlight++
		s.peak = max(s.peak, s.inFlight)
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			s.inFlight--
			s.mu.Unlock()
		}()
		handler(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch state {
		case http.StateNew:
			s.conns++
			s.open++
			s.peakOpen = max(s.peakOpen, s.open)
		case http.StateClosed, http.StateHijacked:
			s.open--
		}
	}
	return s
}

func (s *fakeServer) seen() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.requests...)
}

// count returns how many requests were of that method and path.
func (s *fakeServer) count(method, path string) int {
	n := 0
	for _, r := range s.seen() {
		if r.method == method && r.path == path {
			n++
		}
	}
	return n
}

// data answers as the API does.
func data(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": value})
}

// refuse answers with an error as the API does: the sentence is both in the
// reason phrase and in the body.
func refuse(w http.ResponseWriter, status int, message string, params map[string]string) {
	body := map[string]any{"data": nil, "message": message + "\n"}
	if params != nil {
		body["errors"] = params
	}
	text, _ := json.Marshal(body)
	rawAnswer(w, status, message, string(text))
}

// rawAnswer writes an answer with a reason phrase of its own, and closes the
// connection.
func rawAnswer(w http.ResponseWriter, status int, reason, body string, headers ...string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n%s",
		status, reason, len(body), strings.Join(append(headers, ""), "\r\n"), body)
}

// drop closes the connection without an answer.
func drop(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_ = conn.Close()
}

// testClient returns a client of server by token, on a clock of its own.
func testClient(t *testing.T, endpoint string, change ...func(*Config)) (*Client, *fakeClock) {
	t.Helper()
	clock := newFakeClock()
	cfg := Config{Endpoint: endpoint, Token: testToken, Clock: clock, Jitter: func() float64 { return 1 }}
	for _, f := range change {
		f(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, clock
}

func byPassword(cfg *Config) {
	cfg.Token, cfg.Username, cfg.Password = "", "ci@pve", "canary-password"
}

// exchange is a line of the recorded exchanges with a real server.
type exchange struct {
	Flow   string          `json:"flow"`
	N      int             `json:"n"`
	Kind   string          `json:"kind"`
	Step   string          `json:"step"`
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Status int             `json:"status"`
	Reason string          `json:"reason"`
	Body   json.RawMessage `json:"body"`
	UPID   string          `json:"upid"`
	Task   json.RawMessage `json:"task_status"`
}

// recorded returns the recorded exchanges, and skips the test where there are
// none.
func recorded(t *testing.T) []exchange {
	t.Helper()
	dir := os.Getenv("SANDBOX_TRACES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "pve", "traces")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skipf("no recorded exchanges in %s (SANDBOX_TRACES names their folder); the own tables still run", dir)
	}
	var out []exchange
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var e exchange
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			out = append(out, e)
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	return out
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
