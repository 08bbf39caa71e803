package ns

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

func TestAddressesAreThereAtTheStartAndFollowTheConfiguration(t *testing.T) {
	t.Parallel()
	e := start(t, Options{DHCP: map[string]netip.Prefix{"vmbr0": netip.MustParsePrefix("10.77.192.0/18")}})
	ok(t, e.CreateRoot(t.Context(), 100, engine.RootSpec{}))
	c := engine.Config{Hostname: "box", DNSDomain: "lab.test", NICs: []engine.NIC{
		{Name: "eth0", Bridge: "vmbr0", MAC: "BC:24:11:00:00:01", IPv4: "dhcp", IPv6: "fd77::5/64", Gateway6: "fd77::1"},
		{Name: "eth1", Bridge: "vmbr1", MAC: "BC:24:11:00:00:02", IPv4: "192.168.9.5/24", IPv6: "auto"},
	}}
	ok(t, e.Configure(t.Context(), 100, c))
	ok(t, e.Start(t.Context(), 100))
	addresses := func(name string) string {
		all, err := e.Interfaces(t.Context(), 100)
		ok(t, err)
		for _, i := range all {
			if i.Name == name {
				return strings.Join(i.Addresses, " ")
			}
		}
		return "none"
	}
	leased := "10.77.192.100/16"
	if got := addresses("eth0"); got != leased+" fd77::5/64 fe80::be24:11ff:fe00:1/64" {
		t.Errorf("eth0: %s", got)
	}
	if got := addresses("eth1"); !strings.HasPrefix(got, "192.168.9.5/24 fd") || !strings.Contains(got, ":be24:11ff:fe00:2/64 fe80::") {
		t.Errorf("eth1: %s", got)
	}
	for _, address := range []string{"10.77.192.100:22", "[fd77::5]:22", "192.168.9.5:22"} {
		if got := banner(t, e, address); !strings.HasPrefix(got, "SSH-") {
			t.Errorf("%s: %q", address, got)
		}
	}
	for script, want := range map[string]string{
		"ip -4 route show default": "default via 10.77.0.1 dev eth0",
		"ip -6 route show default": "default via fd77::1 dev eth0",
		"cat /etc/resolv.conf":     "nameserver 10.77.0.1",
		"getent hosts box.lab.test | cut -d' ' -f1; nslookup gateway.lab": "10.77.0.1",
		"ping -c1 -w5 10.77.0.1; ping -c1 -w5 fd77::1":                    "1 packets received",
	} {
		if got := sh(t, e, 100, script+"; true"); !strings.Contains(got, want) {
			t.Errorf("%s: %q lacks %q", script, got, want)
		}
	}
	// The same lease after a restart; another address while it runs.
	ok(t, e.Stop(t.Context(), 100))
	ok(t, e.Start(t.Context(), 100))
	if got := addresses("eth0"); !strings.HasPrefix(got, leased) {
		t.Errorf("after a restart: %s", got)
	}
	c.NICs = c.NICs[:1]
	c.NICs[0].IPv4, c.NICs[0].Gateway4 = "10.77.5.5/16", "10.77.0.1"
	ok(t, e.Configure(t.Context(), 100, c))
	if got := addresses("eth0"); !strings.HasPrefix(got, "10.77.5.5/16") || addresses("eth1") != "none" {
		t.Errorf("after a change: %s, eth1 %s", got, addresses("eth1"))
	}
	if got := banner(t, e, "10.77.5.5:22"); !strings.HasPrefix(got, "SSH-") {
		t.Error(got)
	}
}

func TestGuestsReachEachOtherAndNothingElse(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	up(t, e, 100)
	up(t, e, 101)
	sh(t, e, 101, "httpd -p 80 -h /root; echo hello >/root/x")
	if got := sh(t, e, 100, "wget -q -O - http://10.77.1.101/x"); got != "hello" {
		t.Error(got)
	}
	if got := sh(t, e, 100, "nc -w 2 1.1.1.1 53 </dev/null 2>&1 || echo none"); !strings.Contains(got, "none") {
		t.Errorf("a lab has no way out: %q", got)
	}
}

func TestAVolumeIsMountedAndUnmountedWhileAGuestRuns(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	up(t, e, 100)
	up(t, e, 101)
	ok(t, e.AllocVolume(t.Context(), "store:v1", 1<<30))
	ok(t, e.AttachVolume(t.Context(), 100, "store:v1", engine.Mount{Path: "/data/deep"}))
	sh(t, e, 100, "echo hello >/data/deep/f; chown agent /data/deep/f")
	refused(t, e.AttachVolume(t.Context(), 101, "store:v1", engine.Mount{Path: "/x"}), engine.ErrInUse)
	ok(t, e.CopyVolume(t.Context(), "store:v1", "store:v2"))
	ok(t, e.RenameVolume(t.Context(), "store:v1", "store:v3"))
	ok(t, e.DetachVolume(t.Context(), 100, "store:v3"))
	if got := sh(t, e, 100, "ls -A /data/deep | wc -l"); got != "0" {
		t.Error(got)
	}
	ok(t, e.AttachVolume(t.Context(), 101, "store:v3", engine.Mount{Path: "/x", ReadOnly: true}))
	if got := sh(t, e, 101, "cat /x/f; stat -c %U /x/f; touch /x/g 2>/dev/null || echo read-only"); got != "hello\nagent\nread-only" {
		t.Error(got)
	}
	refused(t, e.DestroyVolume(t.Context(), "store:v3"), engine.ErrInUse)
	ok(t, e.DestroyVolume(t.Context(), "store:v2"))
	refused(t, e.AttachVolume(t.Context(), 100, "store:v2", engine.Mount{Path: "/y"}), engine.ErrNotFound)
}

func TestALinkInAGuestLeadsNoMountOutOfIt(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	up(t, e, 100)
	sh(t, e, 100, "ln -s /../../../../tmp /root/out; rm /etc/resolv.conf; ln -s /root/stolen /etc/resolv.conf")
	ok(t, e.AllocVolume(t.Context(), "v", 1<<30))
	if err := e.AttachVolume(t.Context(), 100, "v", engine.Mount{Path: "/root/out/x"}); err == nil {
		if got := sh(t, e, 100, "grep -c ' /tmp/x ' /proc/mounts"); got != "1" {
			t.Errorf("mounted elsewhere: %s", got)
		}
	}
	c := config(100)
	c.DNSServers = []string{"192.0.2.1"}
	ok(t, e.Configure(t.Context(), 100, c))
	if got := sh(t, e, 100, "test -e /root/stolen || echo no; grep nameserver /etc/resolv.conf"); got != "no\nnameserver 192.0.2.1" {
		t.Error(got)
	}
}

func TestTheOutsideAnswersAtEveryAddressAndRemembersWhoAsked(t *testing.T) {
	t.Parallel()
	e := start(t, Options{Outside: true})
	ok(t, e.CreateRoot(t.Context(), 100, engine.RootSpec{}))
	c := config(100)
	c.NICs[0].IPv6, c.NICs[0].Gateway6 = "fd77::5/64", "fd77::1"
	ok(t, e.Configure(t.Context(), 100, c))
	ok(t, e.Start(t.Context(), 100))
	for _, address := range []string{"1.1.1.1", "192.168.50.10", "169.254.169.254", "2001:db8:113::10", "fd50::10"} {
		if got := sh(t, e, 100, "timeout 5 bash -c 'cat </dev/tcp/"+address+"/443'"); !strings.Contains(got, "is open") {
			t.Errorf("%s: %q", address, got)
		}
		if got := sh(t, e, 100, "timeout 5 bash -c 'exec 3<>/dev/udp/"+address+"/123; echo tick >&3; head -n 1 <&3'"); got != "tick" {
			t.Errorf("%s by UDP: %q", address, got)
		}
	}
	if got := sh(t, e, 100, "nslookup gateway.lab 9.9.9.9"); !strings.Contains(got, "Address") {
		t.Error(got)
	}
	contacts, err := e.Contacts(t.Context())
	ok(t, err)
	if len(contacts) < 11 || contacts[0].Source.Addr().String() != "10.77.1.100" || contacts[0].Dest.String() != "1.1.1.1:443" || contacts[0].Protocol != 6 {
		t.Errorf("%d: %+v", len(contacts), contacts)
	}
}
