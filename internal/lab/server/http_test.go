package server

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw sends a request with a body and headers as they are and returns the answer with its body.
func (lab *ctLab) raw(method, path, body string, headers map[string]string) (*http.Response, string) {
	lab.t.Helper()
	req, err := http.NewRequestWithContext(lab.t.Context(), method, lab.s.URL()+path, strings.NewReader(body))
	if err != nil {
		lab.t.Fatal(err)
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	res, err := lab.client.Do(req)
	if err != nil {
		lab.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		lab.t.Fatal(err)
	}
	return res, string(text)
}

func (lab *ctLab) admin(more map[string]string) map[string]string {
	out := map[string]string{"Authorization": "PVEAPIToken=" + lab.tokens["admin"]}
	for name, value := range more {
		out[name] = value
	}
	return out
}

func TestTheMessageIsInTheStatusLine(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	res, body := lab.raw("GET", "/api2/json/nodes/pve1/lxc/999/config", "", lab.admin(nil))
	want := "500 Configuration file 'nodes/pve1/lxc/999.conf' does not exist"
	if res.Status != want || !strings.Contains(body, `'nodes/pve1/lxc/999.conf' does not exist\n"`) {
		t.Errorf("%q %s", res.Status, body)
	}
}

func TestAConnectionCarriesManyRequests(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	conn, err := tls.Dial("tcp", lab.s.Addr(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReader(conn)
	for i := range 3 {
		if _, err := fmt.Fprintf(conn, "GET /api2/json/access/domains HTTP/1.1\r\nHost: lab\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(reader, nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("request %d: %v %v", i, res, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
	}
}

func TestAnIdleConnectionIsClosed(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.IdleConnection = 20 * time.Millisecond }))
	conn, err := tls.Dial("tcp", lab.s.Addr(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection ended with %v", err)
	}
}

func TestBodiesThatTheServerCantRead(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	for name, c := range map[string]struct {
		method, path, body, kind, status, answer string
	}{
		"bad JSON": {"POST", "/pools", "{bad", "application/json",
			`500 '"' expected, at character offset 1 (before "bad") at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 934.`,
			"'\"' expected, at character offset 1 (before \"bad\") at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 934.\n"},
		"text":             {"POST", "/pools", "poolid=x", "text/plain", "506 upload 'Content-Type 'text/plain' not implemented", "upload 'Content-Type 'text/plain' not implemented"},
		"DELETE with body": {"DELETE", "/pools/x", "a=b", "application/x-www-form-urlencoded", "501 Unexpected content for method 'DELETE'", "Unexpected content for method 'DELETE'"},
		"unknown path":     {"GET", "/nosuchpath", "", "", "501 Method 'GET /nosuchpath' not implemented", `{"data":null,"message":"Method 'GET /nosuchpath' not implemented"}`},
	} {
		res, body := lab.raw(c.method, "/api2/json"+c.path, c.body, lab.admin(map[string]string{"Content-Type": c.kind}))
		if res.Status != c.status || body != c.answer {
			t.Errorf("%s:\n got %q %q\nwant %q %q", name, res.Status, body, c.status, c.answer)
		}
	}
}

func TestJSONBodiesMayHaveBooleans(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	res, body := lab.raw("POST", "/api2/json/access/users", `{"userid":"j@pve","enable":false,"expire":7}`, lab.admin(map[string]string{"Content-Type": "application/json"}))
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, body)
	}
	user := lab.ok("GET", "/access/users/j@pve", nil).(map[string]any)
	if user["enable"] != 0.0 || user["expire"] != 7.0 {
		t.Error(user)
	}
}

func TestABareEqualsSignCutsAFormValue(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	res, body := lab.raw("POST", "/api2/json/pools", "poolid=x&comment=a=b", lab.admin(map[string]string{"Content-Type": "application/x-www-form-urlencoded"}))
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, body)
	}
	if got := lab.ok("GET", "/pools/x", nil).(map[string]any)["comment"]; got != "a" {
		t.Errorf("comment is %q", got)
	}
}

func TestUnknownNodesAndNodesThatAreAway(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, func(o *Options) { o.Nodes = 2 })
	lab.refused("GET", "/nodes/nosuch/lxc", nil, 500, "hostname lookup 'nosuch' failed - failed to get address info for: nosuch: Temporary failure in name resolution")
	lab.s.lock()
	lab.s.findNode("pve2").Away = true
	lab.s.unlock()
	if res, body := lab.raw("GET", "/api2/json/nodes/pve2/lxc", "", lab.admin(nil)); res.StatusCode != 595 || body != "" {
		t.Errorf("%s %q", res.Status, body)
	}
	for _, entry := range lab.ok("GET", "/cluster/status", nil).([]any) {
		if e := entry.(map[string]any); e["name"] == "pve2" && e["online"] != 0.0 {
			t.Error(e)
		}
	}
}
