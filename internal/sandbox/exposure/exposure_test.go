package exposure_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/exposure"
)

func TestNamesAreTakenApartAndForgedOnesRefused(t *testing.T) {
	t.Parallel()
	if vmid, port, err := exposure.ParseName(exposure.Name(100012, 8080)); vmid != 100012 || port != 8080 || err != nil {
		t.Errorf("%d, %d, %v", vmid, port, err)
	}
	for _, forged := range []string{"", "sbx-100012", "sbx-100012-", "sbx-99-80", "sbx-0100012-80", "sbx-100012-080", "sbx-100012-65536", "sbx-100012-80-1", "sbx-../x-80", "xsbx-100012-80", "sbx-100012-80\n", "sbx-100012-80.socket"} {
		if vmid, port, err := exposure.ParseName(forged); err == nil {
			t.Errorf("%q is taken for %d, %d", forged, vmid, port)
		}
	}
}

func TestTheNodesListIsReadWithoutWhatIsNoExposure(t *testing.T) {
	t.Parallel()
	const claim = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	entries, strange := exposure.ParseList("sbx-100012-8080 127.0.0.1:20001 10.77.1.12:8080 active " + claim + " direct\n" +
		"sbx-100013-80 127.0.0.1:20002 10.77.1.13:80 active " + claim + " tailscale\n" +
		"sbx-100014-80 192.0.2.1:80 - failed - -\n" +
		"sbx-100015-x 127.0.0.1:1 10.77.1.15:80 active - -\n" + "sbx-100016-80 nowhere 10.77.1.16:80 active - -\nrubbish\n\n")
	if len(entries) != 3 || len(strange) != 3 {
		t.Fatalf("%+v, %v", entries, strange)
	}
	if e := entries[0]; e.VMID != 100012 || e.Claim != claim || e.Via() != exposure.ViaLoopback || e.State != exposure.StateListening || e.Target != netip.MustParseAddrPort("10.77.1.12:8080") {
		t.Errorf("%+v", e)
	}
	if e := entries[1]; e.Via() != exposure.ViaTailscale {
		t.Errorf("%+v", e)
	}
	if e := entries[2]; e.Via() != exposure.ViaAddress || e.State != exposure.StateInactive || e.Target.IsValid() || e.Claim != "" {
		t.Errorf("%+v", e)
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		scheme, host string
		port         int
	}{
		"http://127.0.0.1:20001": {"http", "127.0.0.1", 20001}, "http://web.example.org": {"http", "web.example.org", 80},
		"https://[2001:db8::1]": {"https", "2001:db8::1", 443}, "tcp://node:443": {"tcp", "node", 443}, "https://a:80": {"https", "a", 80},
	} {
		if got, err := exposure.URL(c.scheme, c.host, c.port); got != want || err != nil {
			t.Errorf("%v: %s, %v", c, got, err)
		}
	}
	for _, c := range [][2]string{{"ftp", "a"}, {"http", ""}, {"http", "a b"}, {"http", "a/b"}, {"http", "a:1"}, {"http", "fe80::1%eth0"}, {"http", "user@a"}} {
		if got, err := exposure.URL(c[0], c[1], 80); err == nil {
			t.Errorf("%v gives %s", c, got)
		}
	}
}

func TestProxyBlocksHoldNothingButTheirValues(t *testing.T) {
	t.Parallel()
	routes := []exposure.Route{{"a.example.org", "127.0.0.1:20001"}, {"b.example.org", "http://[::1]:20002"}}
	caddy, err := exposure.Proxy("caddy", routes)
	if err != nil || caddy != "a.example.org {\n\treverse_proxy 127.0.0.1:20001\n}\n\nb.example.org {\n\treverse_proxy [::1]:20002\n}\n" {
		t.Errorf("%q, %v", caddy, err)
	}
	nginx, err := exposure.Proxy("nginx", routes)
	if err != nil || strings.Count(nginx, "server {") != 2 || !strings.Contains(nginx, "proxy_pass http://[::1]:20002;") || !strings.Contains(nginx, "Upgrade $http_upgrade") {
		t.Errorf("%q, %v", nginx, err)
	}
	for _, bad := range []exposure.Route{
		{"a {\n}", "127.0.0.1:1"}, {"a;b", "127.0.0.1:1"}, {"", "127.0.0.1:1"}, {"*.example.org", "127.0.0.1:1"},
		{"a", "127.0.0.1"}, {"a", "127.0.0.1:0"}, {"a", "127.0.0.1:080"}, {"a", "127.0.0.1:70000"}, {"a", "127.0.0.1:80;}"}, {"a", "x\n}:80"}, {"a", "::1:80"}, {"a", "http://b:80/x"}, {"a", "https://b:80"},
	} {
		for _, kind := range []string{"caddy", "nginx"} {
			if got, err := exposure.Proxy(kind, []exposure.Route{bad}); !errors.Is(err, exposure.ErrProxy) {
				t.Errorf("%+v gives %q, %v", bad, got, err)
			}
		}
	}
	if _, err := exposure.Proxy("apache", routes); !errors.Is(err, exposure.ErrProxy) {
		t.Errorf("another proxy: %v", err)
	}
	if _, err := exposure.Proxy("caddy", []exposure.Route{{"a", "b:1"}, {"A", "b:2"}}); !errors.Is(err, exposure.ErrProxy) {
		t.Errorf("a name twice: %v", err)
	}
	many := make([]exposure.Route, 1000)
	for i := range many {
		many[i] = exposure.Route{Host: fmt.Sprintf("h%d.example.org", i), Backend: "127.0.0.1:20001"}
	}
	begin := time.Now()
	if _, err := exposure.Proxy("nginx", many); err != nil {
		t.Error(err)
	}
	t.Logf("1,000 entries in %s", time.Since(begin))
}

func TestTheProgramPassesShellcheck(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("no shellcheck")
	}
	if out, err := exec.CommandContext(t.Context(), tool, filepath.Join(".", "gate.sh")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
