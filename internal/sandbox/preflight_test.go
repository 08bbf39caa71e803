package sandbox_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/pveum"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/preflight"
)

// root is a shell on the lab's node.
func (w *world) root() pveum.CLI {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(w.lab.CAPEM()))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	w.t.Cleanup(client.CloseIdleConnections)
	return pveum.CLI{Endpoint: w.lab.Endpoint(), Token: w.lab.Token(), HTTP: client}
}

func (w *world) typed(line string) string {
	w.t.Helper()
	var out strings.Builder
	if err := w.root().Line(w.context(), line, &out); err != nil {
		w.t.Fatal(err)
	}
	return out.String()
}

// newToken makes a user with a privilege-separated token and returns the token.
func (w *world) newToken(user, id string) string {
	w.t.Helper()
	w.typed("pveum user add " + user)
	var made struct {
		Full  string `json:"full-tokenid"`
		Value string `json:"value"`
	}
	if err := json.Unmarshal([]byte(w.typed("pveum user token add "+user+" "+id+" --privsep 1 --output-format json")), &made); err != nil {
		w.t.Fatal(err)
	}
	return made.Full + "=" + made.Value
}

func as(token string) option {
	return func(c *pve.Config, _ *sandbox.Settings, _ *sandbox.Options) { c.Token = token }
}

func inPool(id string) option {
	return func(_ *pve.Config, s *sandbox.Settings, _ *sandbox.Options) { s.PoolID = id }
}

func (w *world) preflight(p *process, spec sandbox.PreflightSpec) sandbox.Preflight {
	w.t.Helper()
	out, err := p.Preflight(w.context(), spec)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func missingOf(p sandbox.Preflight) []string {
	var out []string
	for _, r := range preflight.Missing(p.Privileges) {
		out = append(out, r.Privilege+" on "+r.Path)
	}
	return out
}

func summaries(p sandbox.Preflight) string {
	var lines []string
	for _, f := range p.Findings {
		lines = append(lines, string(f.Severity)+": "+f.Summary)
	}
	return strings.Join(lines, "\n")
}

// What the preflight tells an administrator to type makes a token that can do the whole life of a sandbox, and that the
// preflight then finds nothing missing of.
func TestTheCommandsOfThePreflightAreEnoughForTheWholeLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 2})
	token := w.newToken("sandbox@pve", "terraform")
	p := w.process(as(token), inPool(lab.Pool))

	before := w.preflight(p, sandbox.PreflightSpec{})
	if before.OK() || len(missingOf(before)) != len(before.Privileges) {
		t.Fatalf("a token without any right lacks %v of %d", missingOf(before), len(before.Privileges))
	}
	for _, line := range before.Commands {
		w.typed(line)
	}
	after := w.preflight(p, sandbox.PreflightSpec{})
	if got := missingOf(after); len(got) > 0 || !after.OK() {
		t.Fatalf("after the commands these are missing: %v\n%s", got, summaries(after))
	}
	for _, line := range after.Commands {
		if strings.Contains(line, "role") && !strings.Contains(line, "acl") {
			t.Errorf("a role that is there already would be made again: %s", line)
		}
	}

	s := spec("web-1")
	made := w.create(p, s)
	if made.PoolID != lab.Pool {
		t.Errorf("it is in pool %q", made.PoolID)
	}
	changed := s
	changed.MemoryMiB, changed.Cores, changed.Description = ptr(512), ptr(1), "changed"
	if _, err := p.Update(w.context(), sandbox.Prior{Ref: made.Ref}, s, changed); err != nil {
		t.Errorf("update: %v", err)
	}
	if _, err := p.Cluster(w.context()); err != nil {
		t.Errorf("cluster: %v", err)
	}
	if _, err := p.Destroy(w.context(), made.Ref, ""); err != nil {
		t.Errorf("destroy: %v", err)
	}
	if left := w.marked(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// Rights by a Proxmox pool end when a container leaves it: one that was destroyed by hand is refused like a hidden one,
// and still found to be gone; one that was only taken out of the pool is not.
func TestAContainerOfAPoolIsFoundToBeGoneWithoutTheRightToLook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	token := w.newToken("sandbox@pve", "terraform")
	p := w.process(as(token), inPool(lab.Pool))
	for _, line := range w.preflight(p, sandbox.PreflightSpec{}).Commands {
		w.typed(line)
	}
	s := spec("web-1")
	s.Started = false
	gone, hidden := w.create(p, s), w.create(p, s)
	w.typed(fmt.Sprintf("pvesh delete /nodes/%s/lxc/%d", gone.Node, gone.VMID))
	w.typed(fmt.Sprintf("pvesh set /pools --poolid %s --vms %d --delete 1", lab.Pool, hidden.VMID))
	w.settle()

	later := w.process(as(token), inPool(lab.Pool))
	if _, err := later.Read(w.context(), sandbox.Prior{Ref: gone.Ref}); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("of the destroyed one it says %v", err)
	}
	if _, err := later.Read(w.context(), sandbox.Prior{Ref: hidden.Ref}); err == nil || errors.Is(err, sandbox.ErrGone) || !pve.Means(err, pve.Forbidden) {
		t.Errorf("of the hidden one it says %v", err)
	}
}

// operations are, for each row of the table, a call that it is there for, as pvesh has it: {vmid} is a stopped container of
// the pool, {new} a free id.
var operations = map[string]string{
	"containers VM.Allocate guests":              "pvesh create /nodes/{node}/lxc/9000/clone --newid {new} --pool {pool}",
	"containers VM.Audit guests":                 "pvesh get /nodes/{node}/lxc/{vmid}/config",
	"containers VM.Config.CPU guests":            "pvesh set /nodes/{node}/lxc/{vmid}/config --cores 2",
	"containers VM.Config.Disk guests":           "pvesh set /nodes/{node}/lxc/{vmid}/resize --disk rootfs --size 2G",
	"containers VM.Config.Memory guests":         "pvesh set /nodes/{node}/lxc/{vmid}/config --memory 300",
	"containers VM.Config.Network guests":        "pvesh set /nodes/{node}/lxc/{vmid}/config --hostname other",
	"containers VM.Config.Options guests":        "pvesh set /nodes/{node}/lxc/{vmid}/config --description text",
	"containers VM.PowerMgmt guests":             "pvesh create /nodes/{node}/lxc/{vmid}/status/start",
	"containers VM.Clone template":               "pvesh create /nodes/{node}/lxc/9000/clone --newid {new} --pool {pool}",
	"containers VM.Audit template":               "pvesh get /nodes/{node}/lxc/9000/config",
	"containers Datastore.AllocateSpace storage": "pvesh create /nodes/{node}/lxc/9000/clone --newid {new} --pool {pool}",
	"containers Datastore.Audit storage":         "pvesh get /nodes/{node}/storage/local-btrfs/content --output-format json",
	"containers SDN.Use bridge":                  "pvesh create /nodes/{node}/lxc/9000/clone --newid {new} --pool {pool}",
	"template_files Datastore.Audit files": "pvesh create /nodes/{node}/lxc --vmid {new} --pool {pool} --ostemplate " + lab.TemplateFile +
		" --rootfs local-btrfs:1 --unprivileged 1 --net0 name=eth0,bridge=vmbr0,ip=dhcp",
	"snapshots VM.Snapshot guests":               "pvesh create /nodes/{node}/lxc/{vmid}/snapshot --snapname before",
	"backups VM.Backup guests":                   "pvesh create /nodes/{node}/vzdump --vmid {vmid} --storage local",
	"backups Datastore.AllocateSpace backups":    "pvesh create /nodes/{node}/vzdump --vmid {vmid} --storage local",
	"migration VM.Migrate guests":                "pvesh create /nodes/{node}/lxc/{vmid}/migrate --target {other}",
	"cluster Sys.Audit cluster":                  "pvesh get /cluster/status",
	"network Sys.Audit cluster":                  "pvesh get /cluster/firewall/options",
	"firewall_groups Sys.Audit cluster":          "pvesh get /cluster/firewall/ipset",
	"firewall_groups Sys.Modify cluster":         "pvesh create /cluster/firewall/groups --group g{new}",
	"datacenter_firewall Sys.Audit cluster":      "pvesh get /cluster/firewall/options",
	"datacenter_firewall Sys.Modify cluster":     "pvesh set /cluster/firewall/options --policy_in DROP",
	"node_guard Sys.Audit node":                  "pvesh get /nodes/{node}/firewall/rules",
	"node_guard Sys.Modify node":                 "pvesh create /nodes/{node}/firewall/rules --type in --action DROP --iface vmbr1",
	"pools Pool.Allocate pool":                   "pvesh set /pools --poolid {pool} --comment {new}",
	"pools Pool.Audit pool":                      "pvesh get /pools/{pool}",
	"diagnostics Sys.Audit node":                 "pvesh get /nodes/{node}/firewall/options",
	"diagnostics VM.Console guests":              "pvesh get /nodes/{node}/lxc/{vmid}/firewall/log",
	"templates Datastore.AllocateTemplate files": "pvesh create /nodes/{node}/storage/local/download-url --content vztmpl --filename f.tar.gz --url https://example.org/f.tar.gz",
	"templates Sys.AccessNetwork node":           "pvesh create /nodes/{node}/storage/local/download-url --content vztmpl --filename f.tar.gz --url https://example.org/f.tar.gz",
}

// The table is right: of the least roles each privilege is taken away in turn. Then what it is there for is refused, and
// with it, and nothing more, it goes.
func TestEachPrivilegeOfTheLeastRolesIsNeededAndTogetherTheyAreEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 2})
	nodes := w.lab.Nodes()
	target := preflight.Target{
		PoolID: lab.Pool, TemplateID: lab.TemplateID, Storages: []string{lab.Storage},
		BackupStorages: []string{"local"}, FileStorages: []string{"local"}, Bridges: []string{lab.Bridge}, Nodes: nodes[:1],
	}
	for i, need := range preflight.Needs(preflight.Features()...) {
		name := fmt.Sprintf("%s %s %s", need.Feature, need.Privilege, need.On)
		line := operations[name]
		if line == "" {
			t.Errorf("no operation shows what %q is for", name)
			continue
		}
		vmid := lab.VMIDFirst + 10*i
		w.typed(fmt.Sprintf("pvesh create /nodes/%s/lxc/9000/clone --newid %d --pool %s", nodes[0], vmid, lab.Pool))
		w.settle()
		line = strings.NewReplacer("{node}", nodes[0], "{other}", nodes[1], "{vmid}", fmt.Sprint(vmid), "{new}", fmt.Sprint(vmid+1), "{pool}", lab.Pool).Replace(line)

		features := []preflight.Feature{preflight.Containers, need.Feature}
		user := fmt.Sprintf("u%d@pve", i)
		cli := w.root()
		cli.Token = w.newToken(user, "tf")
		plan := preflight.Least(target, features, fmt.Sprintf("R%d", i))
		for _, command := range without(plan, need.Privilege, roleOf(t, target, features, need, i)).Commands(user, "tf", nil) {
			w.typed(command)
		}
		var shown strings.Builder
		err := cli.Line(w.context(), line, &shown)
		switch {
		case need.Hides && (err != nil || strings.Contains(shown.String(), "base-9000-disk-0")):
			t.Errorf("%s: without it %s shows %s, %v", name, line, &shown, err)
		case !need.Hides && (err == nil || !strings.Contains(err.Error(), "Permission check failed")):
			t.Errorf("%s: without it %s goes: %v", name, line, err)
		case !need.Hides && strings.Contains(err.Error(), "(/") && !strings.Contains(err.Error(), need.Privilege):
			t.Errorf("%s: the refusal is about something else: %v", name, err)
		}

		existing := map[string][]string{}
		for _, r := range without(plan, need.Privilege, roleOf(t, target, features, need, i)).Roles {
			existing[r.ID] = r.Privileges
		}
		for _, command := range plan.Commands(user, "tf", existing) {
			w.typed(command)
		}
		shown.Reset()
		if err := cli.Line(w.context(), line, &shown); err != nil {
			t.Errorf("%s: with the least roles %s is refused: %v", name, line, err)
		}
		if need.Hides && !strings.Contains(shown.String(), "base-9000-disk-0") {
			t.Errorf("%s: with it %s shows only %s", name, line, &shown)
		}
		w.settle()
	}
	for name := range operations {
		if !slices.ContainsFunc(preflight.Needs(preflight.Features()...), func(n preflight.Need) bool {
			return name == fmt.Sprintf("%s %s %s", n.Feature, n.Privilege, n.On)
		}) {
			t.Errorf("the table has no row %q", name)
		}
	}
}

// roleOf is the role that a need's privilege is in.
func roleOf(t *testing.T, target preflight.Target, features []preflight.Feature, need preflight.Need, i int) string {
	t.Helper()
	whole := preflight.Least(target, features, fmt.Sprintf("R%d", i))
	for _, r := range whole.Roles {
		if slices.Contains(r.Privileges, need.Privilege) && strings.HasSuffix(strings.ToLower(r.ID), string(need.On)) {
			return r.ID
		}
	}
	t.Fatalf("no role for %v in %v", need, whole.Roles)
	return ""
}

// without is the plan with one privilege less in one role. A role that would be empty stays, with nothing in it.
func without(p preflight.Plan, privilege, role string) preflight.Plan {
	out := preflight.Plan{Grants: p.Grants}
	for _, r := range p.Roles {
		if r.ID == role {
			r.Privileges = slices.DeleteFunc(slices.Clone(r.Privileges), func(have string) bool { return have == privilege })
		}
		out.Roles = append(out.Roles, r)
	}
	return out
}

func TestPreflightShowsWhatTheServerHas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 2})
	got := w.preflight(w.process(), sandbox.PreflightSpec{})
	if got.Version == "" || got.Quorate == nil || !*got.Quorate || len(got.Nodes) != 2 || got.Firewall.Enabled == nil {
		t.Errorf("got %+v", got)
	}
	for _, n := range got.Nodes {
		if !n.Online || !n.Used || !slices.Contains(n.Bridges, lab.Bridge) {
			t.Errorf("node %+v", n)
		}
		i := slices.IndexFunc(n.Storages, func(s sandbox.PreflightStorage) bool { return s.Name == lab.Storage })
		if i < 0 || !n.Storages[i].Known || !n.Storages[i].Snapshots || !n.Storages[i].LinkedClones || !n.Storages[i].Templates {
			t.Errorf("storages %+v", n.Storages)
		}
		i = slices.IndexFunc(n.Storages, func(s sandbox.PreflightStorage) bool { return s.Name == "local" })
		if i < 0 || n.Storages[i].Snapshots || n.Storages[i].LinkedClones {
			t.Errorf("a folder can't make snapshots of containers: %+v", n.Storages)
		}
	}
	if len(missingOf(got)) > 0 {
		t.Errorf("an administrator lacks %v", missingOf(got))
	}
	if d := got.ServerAhead.Abs(); d > 2*time.Second {
		t.Errorf("the lab's clock is %s off", d)
	}
	if !got.Identity.MayGrant || got.Identity.PrivilegeSeparation == nil || *got.Identity.PrivilegeSeparation {
		t.Errorf("the identity is %+v", got.Identity)
	}
}

func TestPreflightWarnsOfWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	w.typed("pveum user token add root@pam tf --privsep 0")
	made := w.typed("pveum user token add root@pam tf2 --privsep 0 --output-format json")
	var root struct {
		Full  string `json:"full-tokenid"`
		Value string `json:"value"`
	}
	if err := json.Unmarshal([]byte(made), &root); err != nil {
		t.Fatal(err)
	}
	w.typed("pvesh set /cluster/firewall/options --enable 0")
	soon := fmt.Sprint(time.Now().Add(48 * time.Hour).Unix())
	w.typed("pveum user token modify admin@pve lab --expire " + soon)

	for name, c := range map[string]struct {
		options []option
		spec    sandbox.PreflightSpec
		want    string
		ok      bool
	}{
		"root's token":        {[]option{as(root.Full + "=" + root.Value)}, sandbox.PreflightSpec{}, "warning: The token belongs to root@pam", true},
		"an administrator":    {nil, sandbox.PreflightSpec{}, "warning: admin@pve!lab may give itself every privilege", true},
		"no separation":       {nil, sandbox.PreflightSpec{}, "warning: The token has no privilege separation", true},
		"an end that is near": {nil, sandbox.PreflightSpec{}, "warning: The token expires on", true},
		"a missing bridge":    {nil, sandbox.PreflightSpec{Bridge: "vmbr99"}, `error: Node pve1 has no bridge "vmbr99"`, false},
		"a missing storage":   {nil, sandbox.PreflightSpec{Storage: "nosuch"}, `error: Node pve1 has no storage "nosuch"`, false},
		"a missing node": {[]option{func(_ *pve.Config, s *sandbox.Settings, _ *sandbox.Options) { s.Nodes = []string{"pve9"} }},
			sandbox.PreflightSpec{}, `error: There is no node "pve9"`, false},
		"no firewall": {nil, sandbox.PreflightSpec{}, "warning: The datacenter's firewall is off", true},
	} {
		got := w.preflight(w.process(c.options...), c.spec)
		if !strings.Contains(summaries(got), c.want) || got.OK() != c.ok {
			t.Errorf("%s: ok is %v, found:\n%s\nwant %s", name, got.OK(), summaries(got), c.want)
		}
	}
}

// What turning on the datacenter's firewall would do is said before anybody does it.
func TestPreflightSaysWhoTheDatacenterFirewallWouldFilter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	open, walled := w.create(p, spec("open")), w.create(p, spec("walled"))
	node := w.lab.Nodes()[0]
	w.typed(fmt.Sprintf("pvesh set /nodes/%s/lxc/%d/firewall/options --enable 1", node, open.VMID))
	w.typed(fmt.Sprintf("pvesh set /nodes/%s/lxc/%d/firewall/options --enable 1", node, walled.VMID))
	net := walled.Network
	w.typed(fmt.Sprintf("pvesh set /nodes/%s/lxc/%d/config --net0 name=eth0,bridge=%s,hwaddr=%s,ip=%s,firewall=1", node, walled.VMID, net.Bridge, net.MACAddress, net.IPv4CIDR))

	w.typed("pvesh set /cluster/firewall/options --enable 0")
	got := w.preflight(p, sandbox.PreflightSpec{})
	if want := []int{walled.VMID}; !slices.Equal(got.Firewall.WouldFilter, want) || *got.Firewall.Enabled {
		t.Errorf("got %+v, want %v filtered", got.Firewall, want)
	}
	w.typed("pvesh set /cluster/firewall/options --enable 1")
	if got := w.preflight(p, sandbox.PreflightSpec{}); !*got.Firewall.Enabled || len(got.Firewall.WouldFilter) > 0 {
		t.Errorf("turned on, it says %+v", got.Firewall)
	}
}
