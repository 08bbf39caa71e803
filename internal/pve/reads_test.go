package pve

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestInterfacesInBothShapesAndWhileStopped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		want   []Interface
	}{
		"new shape": {
			`[{"hwaddr":"bc:24:11:37:3f:c1","inet":"10.10.10.78/24","hardware-address":"BC:24:11:37:3F:C1","name":"eth0","inet6":"fe80::1/64",
			  "ip-addresses":[{"ip-address":"10.10.10.78","prefix":"24","ip-address-type":"inet"},{"ip-address":"fd00::5","prefix":64},{"ip-address":"fe80::1","prefix":"64"}]}]`,
			[]Interface{{"eth0", "bc:24:11:37:3f:c1", []netip.Prefix{
				netip.MustParsePrefix("10.10.10.78/24"), netip.MustParsePrefix("fd00::5/64"), netip.MustParsePrefix("fe80::1/64")}}},
		},
		"old shape": {
			`[{"hwaddr":"BC:24:11:37:3F:C1","inet":"10.10.10.78/24","name":"eth0"}]`,
			[]Interface{{"eth0", "bc:24:11:37:3f:c1", []netip.Prefix{netip.MustParsePrefix("10.10.10.78/24")}}},
		},
		"no address yet": {`[{"hwaddr":"bc:24:11:37:3f:c1","name":"eth0"}]`, []Interface{{Name: "eth0", MAC: "bc:24:11:37:3f:c1"}}},
		"odd address":    {`[{"name":"eth0","inet":"what","ip-addresses":[{}]}]`, []Interface{{Name: "eth0"}}},
		"stopped":        {`null`, nil},
	} {
		s := serve(t, func(w http.ResponseWriter, _ request) { data(w, json.RawMessage(c.answer)) })
		client, _ := testClient(t, s.URL)
		got, err := client.LXCInterfaces(t.Context(), "pve1", 100)
		if err != nil || mustJSON(got) != mustJSON(c.want) {
			t.Errorf("%s: %s, %v", name, mustJSON(got), err)
		}
	}
}

func TestPendingListsOnlyWhatWaits(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) {
		data(w, json.RawMessage(`[{"key":"cores","value":2},{"key":"features","value":"nesting=1","pending":"nesting=1,keyctl=1"},{"key":"mp0","value":"x","delete":1},{"key":"swap","pending":0}]`))
	})
	c, _ := testClient(t, s.URL)
	got, err := c.LXCPending(t.Context(), "pve1", 100)
	if err != nil || len(got) != 3 || got[0].Key != "features" || *got[0].Pending != "nesting=1,keyctl=1" || got[1].Delete != 1 || *got[2].Pending != "0" || got[2].Value != nil {
		t.Errorf("%s, %v", mustJSON(got), err)
	}
}

func TestSnapshotsLeaveOutThePresentState(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) {
		data(w, json.RawMessage(`[{"snaptime":1796104907,"name":"clean","description":"clean\n"},{"name":"current","description":"You are here!","parent":"clean","running":0}]`))
	})
	c, _ := testClient(t, s.URL)
	got, err := c.Snapshots(t.Context(), "pve1", 100)
	if err != nil || len(got.Items) != 1 || got.Parent != "clean" || got.Items[0].Description() != "clean" || got.Items[0].Created().Unix() != 1796104907 {
		t.Errorf("%s, %v", mustJSON(got), err)
	}
	if _, ok := got.Find(CurrentState); ok {
		t.Error("the present state is no snapshot")
	}
}

func TestFirewallRulesAreReplacedInFullAndCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) { data(w, nil) })
	c, _ := testClient(t, s.URL)
	rule := FirewallRule{Type: "out", Action: "DROP", Dest: "10.0.0.0/8"}
	if err := c.ReplaceFirewallRule(t.Context(), LXCFirewall("pve1", 100), 2, rule, "d"); err != nil {
		t.Fatal(err)
	}
	r := s.seen()[0]
	if r.path != "/nodes/pve1/lxc/100/firewall/rules/2" || r.form.Get("enable") != "0" || r.form.Get("dest") != "10.0.0.0/8" ||
		r.form.Get("delete") != "comment,dport,icmp-type,iface,log,macro,proto,source,sport" {
		t.Errorf("sent %s: %v", r.path, r.form)
	}
}

func TestAPoolIsReadByTheFormThatNestedPoolsNeed(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r request) {
		data(w, json.RawMessage(`[{"poolid":"`+r.query.Get("poolid")+`","members":[{"vmid":"260","node":"pve1","type":"lxc","id":"lxc/260","maxcpu":0.5}]}]`))
	})
	c, _ := testClient(t, s.URL)
	p, err := c.Pool(t.Context(), "a/b")
	if err != nil || p.ID != "a/b" || len(p.Members) != 1 || p.Members[0].VMID != 260 {
		t.Errorf("%+v, %v", p, err)
	}
	if err := c.AddToPool(t.Context(), "a/b", []int{1, 2}, true); err != nil {
		t.Fatal(err)
	}
	if r := s.seen()[1]; r.method != "PUT" || r.path != "/pools" || r.raw != "allow-move=1&poolid=a%2Fb&vms=1%2C2" {
		t.Errorf("sent %s %s %s", r.method, r.path, r.raw)
	}
}

func TestAPrivsepTokenWithoutRightsIsSeen(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r request) {
		if r.query.Get("path") == "/vms/1" {
			data(w, json.RawMessage(`{"/vms/1":{}}`))
			return
		}
		data(w, json.RawMessage(`{"/vms/2":{"VM.Clone":1,"VM.Audit":"0"}}`))
	})
	c, _ := testClient(t, s.URL)
	p, err := c.Permissions(t.Context(), "/vms/1")
	if err != nil || !slices.Equal(p.Missing("/vms/1", "VM.Clone", "VM.Audit"), []string{"VM.Clone", "VM.Audit"}) {
		t.Errorf("%v, %v", p, err)
	}
	p, err = c.Permissions(t.Context(), "/vms/2")
	if err != nil || !p.Has("/vms/2", "VM.Audit") || p["/vms/2"]["VM.Audit"] || !p["/vms/2"]["VM.Clone"] || len(p.Missing("/vms/2", "VM.Clone")) != 0 {
		t.Errorf("%v, %v", p, err)
	}
}

func TestAForbiddenCallNamesPrivilegeAndPath(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) {
		refuse(w, 403, "Permission check failed (/vms/9000, VM.Clone)", nil)
	})
	c, _ := testClient(t, s.URL)
	_, err := c.CloneLXC(t.Context(), "pve1", 9000, CloneOptions{NewID: 100})
	var e *Error
	if !errors.As(err, &e) || e.Privilege != "VM.Clone" || e.PrivilegePath != "/vms/9000" || e.Path != "/nodes/pve1/lxc/9000/clone" || e.Method != http.MethodPost {
		t.Fatalf("got %+v", err)
	}
	if !strings.Contains(err.Error(), "give API token ci@pve!tests the privilege VM.Clone on /vms/9000") {
		t.Errorf("got %v", err)
	}
}

func TestParameterErrorsAreNamedInOneOrder(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) {
		refuse(w, 400, "Parameter verification failed.", map[string]string{"memory": "too small\n", "cores": "too many"})
	})
	c, _ := testClient(t, s.URL)
	err := c.UpdateLXC(t.Context(), "pve1", 100, LXCUpdate{Set: map[string]string{"cores": "9999"}})
	if err == nil || !strings.Contains(err.Error(), "400 Parameter verification failed. cores: too many; memory: too small") {
		t.Errorf("got %v", err)
	}
}

func TestHAIsAbsentOnAServerWithoutIt(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r request) { refuse(w, 501, "Method 'GET "+r.path+"' not implemented", nil) })
	c, _ := testClient(t, s.URL)
	if list, err := c.HAResources(t.Context()); err != nil || list != nil {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := c.Nodes(t.Context()); !Means(err, UnsupportedPath) {
		t.Errorf("only HA may be absent, got %v", err)
	}
}

func TestANodeThatStandsAloneIsQuorate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer  string
		quorate bool
		nodes   int
	}{
		{`[{"type":"node","name":"pve1","online":1,"local":1}]`, true, 1},
		{`[{"type":"cluster","name":"c","quorate":1},{"type":"node","name":"a","online":1},{"type":"node","name":"b","online":0}]`, true, 2},
		{`[{"type":"cluster","name":"c","quorate":0},{"type":"node","name":"a","online":1}]`, false, 1},
	} {
		s := serve(t, func(w http.ResponseWriter, _ request) { data(w, json.RawMessage(c.answer)) })
		client, _ := testClient(t, s.URL)
		got, err := client.ClusterStatus(t.Context())
		if err != nil || got.Quorate != c.quorate || len(got.Nodes) != c.nodes {
			t.Errorf("%s: %+v, %v", c.answer, got, err)
		}
	}
}

// Every recorded success of a call that this package makes must be readable, and
// nothing that it sends may be lost.
func TestEveryRecordedAnswerCanBeRead(t *testing.T) {
	t.Parallel()
	object := func(fresh func() any) func(json.RawMessage) error {
		return func(raw json.RawMessage) error { return decodeObject(raw, fresh()) }
	}
	list := func(fresh func() any) func(json.RawMessage) error {
		return func(raw json.RawMessage) error {
			var items []json.RawMessage
			if err := json.Unmarshal(raw, &items); err != nil {
				return err
			}
			for _, item := range items {
				if err := decodeObject(item, fresh()); err != nil {
					return err
				}
			}
			return nil
		}
	}
	config := func(raw json.RawMessage) error { _, err := ParseLXCConfig(raw); return err }
	readers := []struct {
		path *regexp.Regexp
		read func(json.RawMessage) error
	}{
		{regexp.MustCompile(`^/version$`), object(func() any { return new(Version) })},
		{regexp.MustCompile(`^/nodes$`), list(func() any { return new(Node) })},
		{regexp.MustCompile(`^/nodes/[^/]+/status$`), object(func() any { return new(NodeStatus) })},
		{regexp.MustCompile(`^/nodes/[^/]+/lxc$`), list(func() any { return new(LXCEntry) })},
		{regexp.MustCompile(`/lxc/\d+(/snapshot/[^/]+)?/config$`), config},
		{regexp.MustCompile(`/lxc/\d+/status/current$`), object(func() any { return new(LXCStatus) })},
		{regexp.MustCompile(`/lxc/\d+/interfaces$`), list(func() any { return new(wireInterface) })},
		{regexp.MustCompile(`/lxc/\d+/pending$`), list(func() any { return new(PendingChange) })},
		{regexp.MustCompile(`/lxc/\d+/snapshot$`), list(func() any { return new(Snapshot) })},
		{regexp.MustCompile(`/firewall/options$`), object(func() any { return new(FirewallOptions) })},
		{regexp.MustCompile(`/firewall/rules$|^/cluster/firewall/groups/[^/]+$`), list(func() any { return new(FirewallRule) })},
		{regexp.MustCompile(`^/cluster/firewall/groups$`), list(func() any { return new(FirewallGroup) })},
		{regexp.MustCompile(`^/nodes/[^/]+/storage$`), list(func() any { return new(StorageStatus) })},
		{regexp.MustCompile(`/storage/[^/]+/status$`), object(func() any { return new(StorageStatus) })},
		{regexp.MustCompile(`/storage/[^/]+/content$`), list(func() any { return new(StorageVolume) })},
		{regexp.MustCompile(`^/pools$`), list(func() any { return new(Pool) })},
		{regexp.MustCompile(`^/cluster/status$`), list(func() any { return new(wireClusterEntry) })},
		{regexp.MustCompile(`^/cluster/resources$`), list(func() any { return new(Resource) })},
		{regexp.MustCompile(`^/cluster/ha/resources$`), list(func() any { return new(HAResource) })},
		{regexp.MustCompile(`^/nodes/[^/]+/network$`), list(func() any { return new(NetworkInterface) })},
		{regexp.MustCompile(`/tasks$`), list(func() any { return new(TaskEntry) })},
		{regexp.MustCompile(`/tasks/[^/]+/status$`), object(func() any { return new(TaskStatus) })},
	}
	read := 0
	used := make([]bool, len(readers))
	for _, e := range recorded(t) {
		if e.Method != http.MethodGet || e.Status != 200 {
			continue
		}
		var body struct {
			Data json.RawMessage `json:"data"`
		}
		if json.Unmarshal(e.Body, &body) != nil || isNull(body.Data) {
			continue
		}
		for i, r := range readers {
			if !r.path.MatchString(e.Path) {
				continue
			}
			read++
			used[i] = true
			if err := r.read(body.Data); err != nil {
				t.Errorf("%s %d %s: %v", e.Flow, e.N, e.Path, err)
			}
		}
	}
	if read < 150 {
		t.Errorf("only %d recorded answers were read: is the folder complete?", read)
	}
	for i, r := range readers {
		if !used[i] {
			t.Errorf("no recorded answer for %s", r.path)
		}
	}
}

func TestBridgesAreAskedForByKindAndSorted(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) {
		data(w, json.RawMessage(`[{"iface":"vmbr1","type":"bridge","active":1},{"iface":"vmbr0","type":"OVSBridge"}]`))
	})
	c, _ := testClient(t, s.URL)
	got, err := c.Bridges(t.Context(), "pve1")
	if err != nil || !slices.Equal(got, []string{"vmbr0", "vmbr1"}) {
		t.Errorf("%v, %v", got, err)
	}
	if r := s.seen()[0]; r.path != "/nodes/pve1/network" || r.query.Get("type") != "any_bridge" {
		t.Errorf("asked for %s?%s", r.path, r.query.Encode())
	}
}
