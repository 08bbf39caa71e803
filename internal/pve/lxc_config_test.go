package pve

import (
	"maps"
	"net/http"
	"slices"
	"testing"
)

const recordedConfig = `{"cores":1,"features":"nesting=1,keyctl=1","arch":"amd64","lxc":[["lxc.cgroup2.pids.max","4096"],["lxc.cap.drop","sys_rawio sys_module"]],
"mp0":"/srv,mp=/host,ro=1","mp10":"local-btrfs:450/vm-450-disk-1.raw,mp=/data,backup=1,size=512M,newkey=5","hookscript":"local:snippets/h.sh","memory":128,
"rootfs":"local-btrfs:450/vm-450-disk-0.raw,size=1G","dev0":"/dev/fuse","unprivileged":1,"cpulimit":"1.5","protection":1,"lock":"backup","template":1,
"net0":"name=eth0,bridge=vmbr0,firewall=1,hwaddr=BC:24:11:5F:9B:AB,ip=10.0.0.5/24,gw=10.0.0.1,type=veth,host-managed=1","net1":"name=eth1,link_down=1,ip6=auto",
"unused0":"local-btrfs:450/vm-450-disk-9.raw","digest":"737d","tags":"bar;foo","description":"a\nb\n","hostname":"raw","env":"A=1","future":{"x":1},"gone":null}`

func TestAConfigurationIsReadWithAllItsKeys(t *testing.T) {
	t.Parallel()
	cfg, err := ParseLXCConfig([]byte(recordedConfig))
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	check("hostname", cfg.Hostname(), "raw")
	check("description", cfg.Description(), "a\nb")
	check("digest", cfg.Digest(), "737d")
	check("lock", cfg.Lock(), "backup")
	check("template", cfg.Template(), true)
	check("protection", cfg.Protection(), true)
	check("unprivileged", cfg.Unprivileged(), true)
	check("onboot", cfg.OnBoot(), false)
	check("tags", slices.Equal(cfg.Tags(), []string{"bar", "foo"}), true)
	limit, ok := cfg.Float("cpulimit")
	check("cpulimit", limit == 1.5 && ok, true)
	cores, ok := cfg.Int("cores")
	check("cores", cores == 1 && ok, true)
	check("nesting", cfg.Features().Flag("nesting"), true)
	check("env is kept", cfg.Text("env"), "A=1")
	check("unknown objects are kept", string(cfg.Extra["future"]), `{"x":1}`)
	check("null is absent", cfg.Has("gone"), false)

	check("raw lines", slices.Equal(cfg.RawLines, []RawLine{{"lxc.cgroup2.pids.max", "4096"}, {"lxc.cap.drop", "sys_rawio sys_module"}}), true)
	check("interfaces", slices.Equal(slices.Sorted(maps.Keys(cfg.Nets())), []int{0, 1}), true)
	net := cfg.Nets()[0]
	check("net name", net.Name(), "eth0")
	check("net bridge", net.Bridge(), "vmbr0")
	check("net mac", net.MAC(), "BC:24:11:5F:9B:AB")
	check("net ip", net.IP(), "10.0.0.5/24")
	check("net gateway", net.Gateway(), "10.0.0.1")
	check("net firewall", net.Firewall(), true)
	check("net link", net.LinkDown(), false)
	check("net1 link", cfg.Nets()[1].LinkDown(), true)
	check("net1 ip6", cfg.Nets()[1].IP6(), "auto")

	root := cfg.RootFS()
	check("root volume", root.Volume(), "local-btrfs:450/vm-450-disk-0.raw")
	check("root storage", root.Storage(), "local-btrfs")
	size, ok := root.SizeBytes()
	check("root size", size == 1<<30 && ok, true)
	check("mounts", slices.Equal(slices.Sorted(maps.Keys(cfg.Mounts())), []int{0, 10}), true)
	check("a bind mount has no storage", cfg.Mounts()[0].Storage(), "")
	check("its path", cfg.Mounts()[0].Path(), "/host")
	check("device", cfg.Devices()[0].Bare(), "/dev/fuse")
	check("unused", cfg.Unused()[0], "local-btrfs:450/vm-450-disk-9.raw")
}

func TestAChangedPropertyLeavesTheOthersAsTheyWere(t *testing.T) {
	t.Parallel()
	const before = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:5F:9B:AB,host-managed=1,type=veth"
	p := ParseProperties(before)
	if p.String() != before {
		t.Errorf("unchanged: %s", p)
	}
	got := p.With("bridge", "vmbr1").With("link_down", "1").Without("type").String()
	if want := "name=eth0,bridge=vmbr1,hwaddr=BC:24:11:5F:9B:AB,host-managed=1,link_down=1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if p.String() != before {
		t.Errorf("the original changed: %s", p)
	}
	m := ParseProperties("local:1/x.raw,mp=/a,size=1G").WithBare("local:8")
	if m.String() != "local:8,mp=/a,size=1G" {
		t.Errorf("got %s", m)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"8G": 8 << 30, "512M": 512 << 20, "0T": 0, "4K": 4096, "1024": 1024, "1.5G": 3 << 29} {
		if got, ok := ParseSize(text); !ok || got != want {
			t.Errorf("%s: %d %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "G", "8GB", "-1G", "x"} {
		if _, ok := ParseSize(text); ok {
			t.Errorf("%q was taken", text)
		}
	}
}

// Lists, statuses and configurations of which parts are missing or of another
// kind must be read, or refused, without a panic.
func TestPartsThatAreMissingAreNoTrouble(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{}`, `{"rootfs":null}`, `{"net0":""}`, `{"features":""}`, `{"net0":"name"}`, `{"mp0":",,"}`, `{"lxc":[]}`, `{"tags":" "}`} {
		cfg, err := ParseLXCConfig([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if cfg.RootFS().Volume() != "" || len(cfg.Tags()) != 0 || cfg.Features().Flag("nesting") || cfg.Nets()[0].IP() != "" {
			t.Errorf("%s: %+v", text, cfg)
		}
	}
	if _, err := ParseLXCConfig([]byte(`null`)); err == nil {
		t.Error("null is no configuration")
	}
}

func TestAnUpdateIsSentAsAFormInFull(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) { data(w, nil) })
	c, _ := testClient(t, s.URL)
	err := c.UpdateLXC(t.Context(), "pve1", 100, LXCUpdate{
		Set:    map[string]string{"net0": "name=eth0,bridge=vmbr0,hwaddr=AA:BB", "onboot": Bool(false), "description": "é & = + %\nx"},
		Delete: []string{"nameserver", "cpulimit"}, Digest: "abc",
	})
	if err != nil {
		t.Fatal(err)
	}
	r := s.seen()[0]
	if r.method != "PUT" || r.path != "/nodes/pve1/lxc/100/config" || r.header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		t.Errorf("sent %s %s as %s", r.method, r.path, r.header.Get("Content-Type"))
	}
	const want = "delete=cpulimit%2Cnameserver&description=%C3%A9+%26+%3D+%2B+%25%0Ax&digest=abc&net0=name%3Deth0%2Cbridge%3Dvmbr0%2Chwaddr%3DAA%3ABB&onboot=0"
	if r.raw != want {
		t.Errorf("sent %s\nwant %s", r.raw, want)
	}
}

func TestAnEmptyUpdateSendsNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) { data(w, nil) })
	c, _ := testClient(t, s.URL)
	if err := c.UpdateLXC(t.Context(), "pve1", 100, LXCUpdate{Digest: "abc"}); err != nil || len(s.seen()) != 0 {
		t.Errorf("%v, %d requests", err, len(s.seen()))
	}
	err := c.UpdateLXC(t.Context(), "pve1", 100, LXCUpdate{Set: map[string]string{"cores": "1"}, Delete: []string{"cores"}})
	if err == nil || len(s.seen()) != 0 {
		t.Errorf("a key set and deleted: %v, %d requests", err, len(s.seen()))
	}
}

func TestParametersOfADeleteAreInItsQuery(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) { data(w, string(testUPID)) })
	c, _ := testClient(t, s.URL)
	upid, err := c.DeleteLXC(t.Context(), "pve1", 100, DeleteOptions{Force: true, Purge: true})
	if err != nil || upid != testUPID {
		t.Fatal(upid, err)
	}
	r := s.seen()[0]
	if r.raw != "" || r.query.Encode() != "force=1&purge=1" || r.header.Get("Content-Type") != "" {
		t.Errorf("query %q, body %q", r.query.Encode(), r.raw)
	}
}

func TestACloneSendsOnlyWhatACloneTakes(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) { data(w, string(testUPID)) })
	c, _ := testClient(t, s.URL)
	if _, err := c.CloneLXC(t.Context(), "pve1", 9000, CloneOptions{NewID: 100, Hostname: "h", Description: "d", Pool: "a/b"}); err != nil {
		t.Fatal(err)
	}
	if got := s.seen()[0].raw; got != "description=d&hostname=h&newid=100&pool=a%2Fb" {
		t.Errorf("sent %s", got)
	}
	if _, err := c.CloneLXC(t.Context(), "pve1", 9000, CloneOptions{}); err == nil || len(s.seen()) != 1 {
		t.Error("a clone without a vmid must not be sent: the server would choose nothing")
	}
}

func TestAWriteThatPromisesATaskAndNamesNoneIsAnError(t *testing.T) {
	t.Parallel()
	for _, answer := range []any{nil, "", "OK", map[string]string{}} {
		s := serve(t, func(w http.ResponseWriter, _ request) { data(w, answer) })
		c, _ := testClient(t, s.URL)
		if _, err := c.StartLXC(t.Context(), "pve1", 100); err == nil || !LostAnswer(err) {
			t.Errorf("%v: %v", answer, err)
		}
	}
}

func TestTokenAndAgentAreSent(t *testing.T) {
	t.Parallel()
	s := serve(t, versionAnswer)
	c, _ := testClient(t, s.URL, func(cfg *Config) { cfg.UserAgent = "sandbox/1" })
	if _, err := c.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := s.seen()[0].header
	if h.Get("Authorization") != "PVEAPIToken="+testToken || h.Get("User-Agent") != "sandbox/1" || h.Get("Cookie") != "" {
		t.Errorf("sent %v", h)
	}
	if c.Identity() != "API token ci@pve!tests" || !c.ByToken() {
		t.Errorf("identity %s", c.Identity())
	}
}
