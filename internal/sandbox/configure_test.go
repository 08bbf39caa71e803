package sandbox

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

func config(t *testing.T, keys map[string]any) *pve.LXCConfig {
	t.Helper()
	raw, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := pve.ParseLXCConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// templateConfig is a template as it was recorded, with what a clone inherits.
func templateConfig(t *testing.T) *pve.LXCConfig {
	return config(t, map[string]any{
		"hostname": "mini-tmpl", "template": 1, "memory": 128, "swap": 0, "cores": 1, "unprivileged": 1, "arch": "amd64", "ostype": "debian",
		"net0":   "name=eth0,bridge=vmbr0,firewall=1,host-managed=1,hwaddr=BC:24:11:DE:46:96,ip=dhcp,type=veth",
		"rootfs": "local-btrfs:9000/base-9000-disk-0.raw,size=1G", "features": "keyctl=1,nesting=1",
		"protection": 1, "onboot": 1, "startup": "order=1", "tags": "template", "description": "the template\n",
	})
}

func TestCloneIsToldEverythingThatItWouldElseInherit(t *testing.T) {
	t.Parallel()
	m := offline(t, nil)
	spec := m.resolve(Spec{Hostname: "a1", Tags: []string{"b", "a"}, MemoryMiB: ptr(256), CPULimit: ptr(1.5), Network: Network{IPv4: AddressAuto}})
	c, err := m.everything(spec, 5003, templateConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"hostname": "a1", "memory": "256", "cpulimit": "1.5", "tags": "a;b;sbx-test"} {
		if c.set[key] != want {
			t.Errorf("%s = %q, want %q", key, c.set[key], want)
		}
	}
	for _, key := range []string{"protection", "onboot", "startup"} {
		if !slices.Contains(c.del, key) {
			t.Errorf("%s is inherited from the template: %v %v", key, c.set, c.del)
		}
	}
	if _, written := c.set["swap"]; written {
		t.Error("swap is written although nobody asked for it")
	}
	net := pve.ParseNet(c.set["net0"])
	if net.MAC() != "" {
		t.Errorf("the template's MAC address is given to the clone: %s", net)
	}
	if net.IP() != "10.10.1.3/16" || net.Gateway() != "10.10.0.1" || !net.Firewall() || net.Text("host-managed") != "1" {
		t.Errorf("net0 = %s", net)
	}
}

func TestUpdateOfNothingSendsNothing(t *testing.T) {
	t.Parallel()
	m := offline(t, nil)
	marker := &Marker{Owner: "test", Claim: newClaim(), VMID: 5003, Kind: KindContainer, Phase: PhaseReady}
	spec := m.resolve(Spec{
		Hostname: "a1", Tags: []string{"b", "a"}, Description: "mine", MemoryMiB: ptr(256), CPULimit: ptr(1.5), CPUUnits: ptr(100), Cores: ptr(2), SwapMiB: ptr(0),
		Nesting: ptr(true), OnBoot: true, Startup: &Startup{Order: ptr(2), UpDelaySec: ptr(5)}, DNS: &DNS{Servers: []string{"1.1.1.1", "9.9.9.9"}, Domain: "x.test"},
		Network: Network{IPv4: AddressAuto, IPv6: AddressNone, VLANID: 5, RateLimitMBs: 10, MACAddress: "bc:24:11:00:00:aa"},
	})
	description, err := JoinDescription("mine", marker)
	if err != nil {
		t.Fatal(err)
	}
	now := config(t, map[string]any{
		"hostname": "a1", "tags": "a;b;sbx-test", "description": description + "\n", "memory": 256, "cpulimit": "1.5", "cpuunits": "100", "cores": 2, "swap": 0,
		"features": "nesting=1", "onboot": 1, "startup": "order=2,up=5", "nameserver": "1.1.1.1 9.9.9.9", "searchdomain": "x.test", "protection": 0,
		"net0": "name=eth0,bridge=vmbr0,gw=10.10.0.1,hwaddr=BC:24:11:00:00:AA,ip=10.10.1.3/16,rate=10,tag=5,type=veth,firewall=1",
	})
	c, err := m.difference(spec, 5003, now, marker)
	if err != nil {
		t.Fatal(err)
	}
	if !c.empty() {
		t.Errorf("would write %v and delete %v", c.set, c.del)
	}
}

func TestUpdateOfOneKeyOfNet0KeepsTheOthersAndTheMAC(t *testing.T) {
	t.Parallel()
	m := offline(t, nil)
	marker := &Marker{Owner: "test", Claim: newClaim(), VMID: 5003, Kind: KindContainer, Phase: PhaseReady}
	now := config(t, map[string]any{
		"hostname": "a1", "tags": "sbx-test",
		"net0": "name=eth0,bridge=vmbr0,host-managed=1,hwaddr=BC:24:11:00:00:AA,ip=dhcp,mountoptions=x,type=veth,vendor=new",
	})
	c, err := m.difference(m.resolve(Spec{Hostname: "a1", Network: Network{IPv4: "10.10.1.9/16", Gateway: "10.10.0.1"}}), 5003, now, marker)
	if err != nil {
		t.Fatal(err)
	}
	net := pve.ParseNet(c.set["net0"])
	for key, want := range map[string]string{"host-managed": "1", "hwaddr": "BC:24:11:00:00:AA", "vendor": "new", "mountoptions": "x", "ip": "10.10.1.9/16", "gw": "10.10.0.1"} {
		if got := net.Text(key); got != want {
			t.Errorf("%s = %q, want %q in %s", key, got, want, net)
		}
	}
}

func TestNestingIsSwitchedWithoutTouchingOtherFeatures(t *testing.T) {
	t.Parallel()
	m := offline(t, nil)
	c, err := m.everything(m.resolve(Spec{Hostname: "a", Nesting: ptr(false)}), 5003, templateConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	if c.set["features"] != "keyctl=1" {
		t.Errorf("features = %q", c.set["features"])
	}
}

func TestPostureDiffTellsWhatAnUpdateCanUndo(t *testing.T) {
	t.Parallel()
	base := postureOf(templateConfig(t))
	now := postureOf(config(t, map[string]any{
		"unprivileged": 0, "features": "fuse=1,keyctl=1,nesting=0", "mp0": "/srv,mp=/srv", "dev0": "/dev/kvm", "net1": "name=eth1,bridge=vmbr1",
		"rootfs": "local-btrfs:1/vm-1-disk-0.raw,size=1G", "hookscript": "local:snippets/x", "lxc": [][]string{{"lxc.apparmor.profile", "unconfined"}},
		"net0": "name=eth0,bridge=vmbr0",
	}))
	repairable := map[string]bool{}
	for _, c := range now.Diff(base) {
		repairable[c.Part] = c.Repairable
	}
	want := map[string]bool{"unprivileged": false, "features": false, "mounts": true, "devices": false, "raw": false, "hookscript": false, "extra_nics": true}
	for part, can := range want {
		if got, found := repairable[part]; !found || got != can {
			t.Errorf("%s: found %v, repairable %v, want %v", part, found, got, can)
		}
	}
	if d := base.Diff(base); len(d) != 0 {
		t.Errorf("a posture differs from itself: %v", d)
	}
	var c change
	c.repairs(now, &base)
	if got := strings.Join(c.keys(), ","); got != "mp0,net1" {
		t.Errorf("an update would delete %s", got)
	}
}
