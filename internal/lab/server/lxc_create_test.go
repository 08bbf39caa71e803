package server

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// createForm is a minimal create with changes on top; an empty value takes a parameter away.
func createForm(vmid string, changes form) form {
	params := form{
		"vmid": vmid, "ostemplate": testTemplate, "hostname": "ct" + vmid, "memory": "128", "swap": "0", "cores": "1",
		"rootfs": "local-btrfs:1", "net0": "name=eth0,bridge=vmbr0,ip=dhcp", "unprivileged": "1",
	}
	maps.Copy(params, changes)
	for key, value := range params {
		if value == "" {
			delete(params, key)
		}
	}
	return params
}

func TestCreateStoresNormalisedOptions(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	log := lab.done("POST", "lxc", createForm("210", form{
		"description": "first\nsecond", "tags": "b;A;b", "cpulimit": "1.5", "nameserver": "10.10.10.1,10.10.10.2",
		"ssh-public-keys": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJX1m0ud7hqfzo9qmQuB9o3zPx7qGkz9tS1u4lYp0kH7 me@x",
		"password":        "secret123", "onboot": "1",
	}))
	if !slices.Contains(log, "extracting archive '/var/lib/vz/template/cache/debian-12-mini_12.12-1_amd64.tar.gz'") {
		t.Errorf("log:\n%s", strings.Join(log, "\n"))
	}
	config := lab.config("lxc/210", nil)
	mac := parseNet(config["net0"].(string))["hwaddr"]
	want := map[string]any{
		"arch": "amd64", "cores": 1.0, "cpulimit": "1.5", "description": "first\nsecond\n", "hostname": "ct210",
		"memory": 128.0, "nameserver": "10.10.10.1 10.10.10.2", "onboot": 1.0, "ostype": "debian", "swap": 0.0,
		"net0": "name=eth0,bridge=vmbr0,hwaddr=" + mac + ",ip=dhcp,type=veth", "tags": "a;b", "unprivileged": 1.0,
		"rootfs": "local-btrfs:210/vm-210-disk-0.raw,size=1G",
	}
	if !maps.Equal(config, want) {
		t.Errorf("configuration\n got %v\nwant %v", config, want)
	}
	if keys := lab.engine.see(210).keys; len(keys) != 1 {
		t.Errorf("the guest has %d keys", len(keys))
	}
}

func TestCreateWithoutOptionsGetsDefaultsAndIsUnprivileged(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.done("POST", "lxc", form{"vmid": "211", "ostemplate": testTemplate, "storage": "local-btrfs"})
	for key, want := range map[string]any{"unprivileged": 1.0, "swap": 512.0, "memory": 512.0, "hostname": "CT211", "cores": nil,
		"rootfs": "local-btrfs:211/vm-211-disk-0.raw,size=4G"} {
		lab.option("lxc/211", key, want)
	}
}

func TestCreateRefusals(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	for _, c := range []struct {
		changes form
		status  int
		reason  string
	}{
		{form{"vmid": "9000"}, 500, "CT 9000 already exists on node 'pve1'"},
		{form{"ssh-public-keys": "not a key"}, 500, "SSH public key validation error"},
		{form{"pool": "nosuch"}, 403, "Permission check failed (pool 'nosuch' does not exist)"},
		{form{"ostemplate": "nosuch:vztmpl/x.tar.gz"}, 500, "storage 'nosuch' does not exist"},
		{form{"rootfs": "nosuch:1"}, 500, "storage 'nosuch' does not exist"},
		{form{"rootfs": "local-btrfs"}, 500, "Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line 651."},
		{form{"features": "keyctl=1"}, 403, "Permission check failed (" + onlyRootFeatures + ")"},
		{form{"unprivileged": "0", "features": "nesting=1"}, 403, "Permission check failed (" + onlyRootPrivileged + ")"},
	} {
		lab.refused("POST", "lxc", createForm("212", c.changes), c.status, c.reason)
	}
	lab.badParameter("POST", "lxc", createForm("212", form{"net0": "bridge=vmbr0"}), "net0",
		"invalid format - format error\nnet0.name: property is missing and it is not optional\n")
	lab.badParameter("POST", "lxc", createForm("212", form{"mp0": "local-btrfs:1"}), "mp0",
		"invalid format - format error\nmp0.mp: property is missing and it is not optional\n")
	lab.as("viewer").refused("POST", "lxc", createForm("212", nil), 403, "Permission check failed")
}

func TestCreateFromMissingTemplateFileFailsInTheTaskAndLeavesNothing(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.fails("POST", "lxc", createForm("213", form{"ostemplate": "local:vztmpl/nosuch.tar.gz"}),
		"unable to create CT 213 - volume 'local:vztmpl/nosuch.tar.gz' does not exist")
	lab.refused("GET", "lxc/213/config", nil, 500, "Configuration file 'nodes/pve1/lxc/213.conf' does not exist")
	lab.done("POST", "lxc", createForm("213", nil))
	lab.option("lxc/213", "rootfs", "local-btrfs:213/vm-213-disk-0.raw,size=1G")
}

func TestCreateShowsOnlyItsLockUntilTheTaskEnds(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.Create = 2 * time.Second }))
	upid := lab.begin("POST", "lxc", createForm("214", form{"description": "mine"}))
	if config := lab.config("lxc/214", nil); !maps.Equal(config, map[string]any{"lock": "create"}) {
		t.Errorf("while it is created: %v", config)
	}
	lab.refused("DELETE", "lxc/214", nil, 500, "CT is locked (create)")
	lab.wait(upid)
	lab.option("lxc/214", "description", "mine\n")
}

func TestCreateWithStartAndPool(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.done("POST", "lxc", createForm("215", form{"start": "1", "pool": "labpool", "mp0": "local-btrfs:1,mp=/data"}))
	lab.option("lxc/215", "mp0", "local-btrfs:215/vm-215-disk-1.raw,mp=/data,size=1G")
	lab.s.lock()
	started := lab.s.waitUntil(t.Context(), 10*time.Second, func() bool { return lab.s.st.Guests[215].hasInit() })
	member := lab.s.st.Pools["labpool"].Guests[215]
	lab.s.unlock()
	if !started || !member {
		t.Errorf("started %v, in the pool %v", started, member)
	}
	if g := lab.engine.see(215); !g.running || g.mounts["local-btrfs:215/vm-215-disk-1.raw"].Path != "/data" {
		t.Errorf("in the engine: %+v", g)
	}
}

func TestSubvolumesHaveNoSize(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.done("POST", "lxc", createForm("216", form{"rootfs": "local-dir2:0"}))
	lab.option("lxc/216", "rootfs", "local-dir2:216/subvol-216-disk-0.subvol,size=0T")
}

func TestTwoCreatesWithOneIDHaveOneWinner(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	statuses := parallel(2, func(int) int { return lab.call("POST", "lxc", createForm("217", nil)).status })
	slices.Sort(statuses)
	if !slices.Equal(statuses, []int{200, 500}) {
		t.Errorf("answers %v", statuses)
	}
}

// parallel calls a function n times at once.
func parallel[T any](n int, fn func(i int) T) []T {
	out := make([]T, n)
	done := make(chan struct{})
	for i := range n {
		go func() { out[i] = fn(i); done <- struct{}{} }()
	}
	for range n {
		<-done
	}
	return out
}
