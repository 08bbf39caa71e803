package server

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// listed are the values of a key in a list.
func (lab *ctLab) listed(path, key string, params form) string {
	lab.t.Helper()
	var out []string
	for _, item := range lab.ok("GET", path, params).([]any) {
		out = append(out, fmt.Sprint(item.(map[string]any)[key]))
	}
	return strings.Join(out, " ")
}

func TestSecurityGroups(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", groupsPath, form{"group": "sg1", "comment": "one\ntwo"})
	lab.badParameter("POST", groupsPath, form{"group": "sg1"}, "group", "Security group 'sg1' already exists")
	lab.badParameter("POST", groupsPath, form{"group": "a"}, "group", "value does not match the regex pattern")
	lab.badParameter("POST", groupsPath, form{"group": strings.Repeat("x", 19)}, "group", "value may only be 18 characters long")
	lab.badParameter("POST", groupsPath, form{"group": "bad name"}, "group", "value does not match the regex pattern")
	for _, method := range []string{"GET", "DELETE"} {
		lab.refused(method, groupsPath+"/nosuch", nil, 500, "no such security group 'nosuch'")
	}
	lab.refused("POST", groupsPath+"/nosuch", form{"type": "in", "action": "DROP"}, 500, "no such security group 'nosuch'")

	lab.ok("POST", groupsPath+"/sg1", form{"type": "in", "action": "DROP"})
	lab.refused("DELETE", groupsPath+"/sg1", nil, 500, "Security group 'sg1' is not empty")
	lab.ok("DELETE", groupsPath+"/sg1/0", nil)
	lab.ok("POST", guestRules, form{"type": "group", "action": "sg1", "enable": "1"})
	lab.ok("DELETE", groupsPath+"/sg1", nil) // in use, which doesn't matter
	lab.rulesAre(guestRules, "0 GROUP sg1")
	if got := lab.listed(groupsPath, "group", nil); got != "" {
		t.Error(got)
	}
}

func TestRenamingASecurityGroup(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	for _, name := range []string{"sg1", "sg2"} {
		lab.ok("POST", groupsPath, form{"group": name, "comment": "old"})
	}
	for _, path := range []string{guestRules, nodeRules, "/cluster/firewall/rules"} {
		lab.ok("POST", path, form{"type": "group", "action": "sg2"})
	}
	digest := lab.listDigest(groupsPath)
	lab.ok("POST", groupsPath, form{"group": "sg1", "rename": "sg1", "comment": "new", "digest": digest})
	lab.refused("POST", groupsPath, form{"group": "sg3", "rename": "sg2", "digest": digest}, 500, modified)
	lab.badParameter("POST", groupsPath, form{"group": "sg3", "rename": "nosuch"}, "group", "Security group 'nosuch' does not exist")
	lab.badParameter("POST", groupsPath, form{"group": "sg1", "rename": "sg2"}, "group", "Security group 'sg1' does already exist")
	lab.ok("POST", groupsPath, form{"group": "sg3", "rename": "sg2"})
	if names, comments := lab.listed(groupsPath, "group", nil), lab.listed(groupsPath, "comment", nil); names != "sg1 sg3" || comments != "new old" {
		t.Error(names, comments)
	}
	for _, path := range []string{guestRules, nodeRules, "/cluster/firewall/rules"} {
		lab.rulesAre(path, "0 |GROUP sg3")
	}
}

func TestOptionsAreMergedAndShowNoDefaults(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	const ct = "lxc/9000/firewall/options"
	lab.ok("PUT", ct, form{"enable": "1", "policy_in": "DROP", "ipfilter": "0", "log_level_in": "info"})
	digest := lab.listDigest(ct)
	lab.ok("PUT", ct, form{"delete": "log_level_in,radv", "macfilter": "1", "digest": digest})
	lab.refused("PUT", ct, form{"enable": "0", "digest": digest}, 500, modified)
	lab.badParameter("PUT", ct, form{"policy_in": "BOGUS"}, "policy_in", "value 'BOGUS' does not have a value in the enumeration 'ACCEPT, REJECT, DROP'")
	lab.badParameter("PUT", ct, form{"nosuch": "1"}, "nosuch", notInSchema)
	lab.badParameter("PUT", ct, form{"delete": "ebtables"}, "delete", "no such option 'ebtables'")
	got := lab.ok("GET", ct, nil).(map[string]any)
	delete(got, "digest")
	if want := (map[string]any{"enable": 1.0, "policy_in": "DROP", "ipfilter": 0.0, "macfilter": 1.0}); !reflect.DeepEqual(got, want) {
		t.Error(got)
	}
	lab.ok("PUT", "firewall/options", form{"nf_conntrack_max": "65536", "log_level_in": "nolog"})
	if got := lab.ok("GET", "firewall/options", nil).(map[string]any); got["nf_conntrack_max"] != 65536.0 || got["log_level_in"] != "nolog" {
		t.Error(got)
	}
	lab.ok("PUT", "/cluster/firewall/options", form{"enable": "2", "log_ratelimit": "enable=1,rate=1/second"})
	if got := lab.ok("GET", "/cluster/firewall/options", nil).(map[string]any); got["enable"].(float64) < 1e9 {
		t.Error("the switch doesn't keep the time:", got)
	}
}

func TestIPSets(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/cluster/firewall/ipset", "lxc/9000/firewall/ipset"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			lab := newCTLab(t)
			set := path + "/set1"
			lab.ok("POST", path, form{"name": "set1", "comment": "c"})
			lab.badParameter("POST", path, form{"name": "set1"}, "name", "IPSet 'set1' already exists")
			lab.badParameter("POST", path, form{"name": "Bad Set"}, "name", "value does not match the regex pattern")
			lab.ok("POST", set, form{"cidr": "10.0.0.0/8", "comment": "x"})
			for _, again := range []string{"10.0.0.0/8", "10.0.0.5/8"} {
				lab.badParameter("POST", set, form{"cidr": again}, "cidr", "address '10.0.0.0/8' already exists")
			}
			lab.ok("POST", set, form{"cidr": "1.2.3.4/32", "nomatch": "1"})
			lab.badParameter("POST", set, form{"cidr": "0.0.0.0/0"}, "cidr", "a zero prefix is not allowed in ipset entries")
			lab.badParameter("POST", set, form{"cidr": "1.2.3"}, "cidr", "invalid format - value does not look like a valid IP address or CIDR network\n")
			lab.refused("POST", set, form{"cidr": "bad"}, 500, "no such alias 'bad'")
			if got := lab.listed(set, "cidr", nil); got != "1.2.3.4 10.0.0.0/8" {
				t.Error(got)
			}
			if got := lab.ok("GET", set+"/1.2.3.4", nil).(map[string]any); got["nomatch"] != 1.0 {
				t.Error(got)
			}
			lab.ok("PUT", set+"/1.2.3.4", form{"comment": "new"}) // nomatch isn't given: it goes
			if got := lab.ok("GET", set+"/1.2.3.4", nil).(map[string]any); got["nomatch"] != nil || got["comment"] != "new" {
				t.Error(got)
			}
			for _, method := range []string{"GET", "PUT"} {
				lab.badParameter(method, set+"/9.9.9.9", nil, "cidr", "no such IP/Network")
			}
			digest := lab.listDigest(set)
			for range 2 { // the second time there is nothing to remove
				lab.ok("DELETE", set+"/1.2.3.4", nil)
			}
			lab.refused("DELETE", set+"/10.0.0.0%2F8", form{"digest": digest}, 500, modified)
			lab.refused("DELETE", set, nil, 500, "IPSet 'set1' is not empty")
			lab.ok("POST", path, form{"name": "set2", "rename": "set1"})
			lab.badParameter("POST", path, form{"name": "set3", "rename": "set1"}, "name", "IPSet 'set1' does not exist")
			lab.ok("DELETE", path+"/set2", form{"force": "1"})
			lab.refused("DELETE", path+"/set2", nil, 500, "no such IPSet 'set2'")
			lab.refused("GET", path+"/set2", nil, 500, "no such IPSet 'set2'")
		})
	}
}

func TestANetworksSlashNeedntBeEncoded(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", "/cluster/firewall/ipset", form{"name": "set1"})
	lab.ok("POST", "/cluster/firewall/ipset/set1", form{"cidr": "10.0.0.0/8"})
	for _, path := range []string{"10.0.0.0/8", "10.0.0.0%2F8"} {
		if got := lab.ok("GET", "/cluster/firewall/ipset/set1/"+path, nil).(map[string]any); got["cidr"] != "10.0.0.0/8" {
			t.Error(path, got)
		}
	}
	lab.ok("DELETE", "/cluster/firewall/ipset/set1/10.0.0.0/8", nil)
	lab.ok("DELETE", "/cluster/firewall/ipset/set1", nil)
}

func TestAliases(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	const path = "/cluster/firewall/aliases"
	lab.ok("POST", path, form{"name": "Al1", "cidr": "10.1.2.3/32", "comment": "c"})
	lab.badParameter("POST", path, form{"name": "al1", "cidr": "10.1.2.3"}, "name", "alias 'al1' already exists")
	lab.badParameter("POST", path, form{"name": "x", "cidr": "10.1.2.3"}, "name", "value does not match the regex pattern")
	got := lab.ok("GET", path+"/AL1", nil).(map[string]any)
	if want := (map[string]any{"name": "Al1", "cidr": "10.1.2.3", "comment": "c", "ipversion": 4.0}); !reflect.DeepEqual(got, want) {
		t.Error(got)
	}
	lab.ok("POST", path, form{"name": "other", "cidr": "::1"})
	digest := lab.listDigest(path)
	lab.ok("PUT", path+"/al1", form{"cidr": "10.1.2.4", "digest": digest})
	lab.refused("PUT", path+"/al1", form{"cidr": "10.1.2.5", "digest": digest}, 500, modified)
	lab.badParameter("PUT", path+"/al1", form{"cidr": "10.1.2.4", "rename": "OTHER"}, "name", "alias 'OTHER' already exists")
	lab.badParameter("PUT", path+"/nosuch", form{"cidr": "10.1.2.4"}, "name", "no such alias")
	lab.ok("PUT", path+"/al1", form{"cidr": "10.1.2.4", "rename": "al2"})
	lab.badParameter("GET", path+"/al1", nil, "name", "no such alias")
	if got := lab.ok("GET", path+"/al2", nil).(map[string]any); got["name"] != "al2" || got["comment"] != nil {
		t.Error(got)
	}
	for range 2 {
		lab.ok("DELETE", path+"/al2", nil)
	}
}

func TestReferencesAreTheDatacentersAndTheGuests(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", "/cluster/firewall/ipset", form{"name": "shared"})
	lab.ok("POST", "lxc/9000/firewall/ipset", form{"name": "ctset", "comment": "c"})
	lab.ok("POST", "lxc/9000/firewall/aliases", form{"name": "ctal", "cidr": "10.2.2.2"})
	if refs, scopes := lab.listed("lxc/9000/firewall/refs", "ref", nil), lab.listed("lxc/9000/firewall/refs", "scope", nil); refs != "+shared +ctset ctal" || scopes != "dc guest guest" {
		t.Error(refs, scopes)
	}
	if refs := lab.listed("lxc/9000/firewall/refs", "ref", form{"type": "alias"}); refs != "ctal" {
		t.Error(refs)
	}
	if refs := lab.listed("/cluster/firewall/refs", "ref", nil); refs != "+shared" {
		t.Error(refs)
	}
}

func TestFirewallIndexesMacrosAndLogs(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	if got := lab.listed("lxc/9000/firewall", "name", nil); got != "rules aliases ipset refs options" {
		t.Error(got)
	}
	if got := lab.ok("GET", "/cluster/firewall/macros", nil).([]any); len(got) != 86 {
		t.Error(len(got), "macros")
	}
	for _, path := range []string{"firewall/log", "lxc/9000/firewall/log"} {
		if got := lab.listed(path, "t", form{"limit": "5"}); got != "unable to open file - No such file or directory" {
			t.Error(got)
		}
	}
}

func TestFirewallPermissions(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.as("viewer").refused("POST", groupsPath, form{"group": "x1"}, 403, "Permission check failed (/, Sys.Modify)")
	lab.as("limited").ok("GET", groupsPath, nil)
	lab.as("viewer").ok("GET", nodeRules, nil)
	lab.as("limited").refused("GET", "/cluster/firewall/rules", nil, 403, "Permission check failed (/, Sys.Audit)")
	lab.as("limited").refused("POST", nodeRules, form{"type": "in", "action": "DROP"}, 403, "Permission check failed (/nodes/pve1, Sys.Modify)")
	lab.as("limited").refused("GET", guestRules, nil, 403, "Permission check failed (/vms/9000, VM.Audit)")
	lab.as("viewer").refused("PUT", "lxc/9000/firewall/options", form{"enable": "1"}, 403, "Permission check failed (/vms/9000, VM.Config.Network)")
	lab.ok("PUT", "/pools", form{"poolid": "labpool", "vms": "9000"})
	lab.as("limited").ok("PUT", "lxc/9000/firewall/options", form{"enable": "1"})
}

func TestAGuestsFirewallLivesAsLongAsTheGuest(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("PUT", "lxc/9000/firewall/options", form{"enable": "1"})
	lab.ok("POST", guestRules, form{"type": "in", "action": "DROP"})
	ct := lab.clone(270)
	lab.rulesAre(ct+"/firewall/rules", "0 |IN DROP")
	lab.ok("DELETE", ct+"/firewall/rules/0", nil)
	lab.rulesAre(guestRules, "0 |IN DROP") // the template's is its own
	lab.done("DELETE", ct, nil)
	if got := lab.ok("GET", ct+"/firewall/options", nil).(map[string]any); got["enable"] != nil {
		t.Error("left after the destroy:", got)
	}
	lab.ok("DELETE", guestRules+"/0", nil)
	lab.ok("PUT", "lxc/9000/firewall/options", form{"delete": "enable"})
	lab.s.lock()
	defer lab.s.unlock()
	if len(lab.s.dump().GuestFirewalls) != 0 {
		t.Error("an empty file stays:", lab.s.dump().GuestFirewalls)
	}
}

func TestAFileOfNoGuestIsFoundByTheGuestThatComes(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.rulesAre("lxc/271/firewall/rules")
	lab.ok("POST", "lxc/271/firewall/rules", form{"type": "in", "action": "DROP"})
	lab.rulesAre("lxc/271/firewall/rules", "0 |IN DROP")
	ct := lab.clone(271)
	lab.rulesAre(ct+"/firewall/rules", "0 |IN DROP")
	lab.done("DELETE", ct, nil)
	lab.rulesAre("lxc/271/firewall/rules")
}

func TestTheFirewallSurvivesARestartOfTheLab(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(opt *Options) { opt.Dir = dir }
	lab := newCTLab(t, in)
	lab.ok("POST", "/cluster/firewall/aliases", form{"name": "Gate", "cidr": "10.0.0.1"})
	lab.ok("POST", guestRules, form{"type": "out", "action": "ACCEPT", "dest": "gate"})
	if err := lab.s.Close(); err != nil {
		t.Fatal(err)
	}
	again := newCTLab(t, in)
	again.tokens = lab.tokens
	again.rulesAre(guestRules, "0 |OUT ACCEPT dest=gate")
	if got := again.listed("/cluster/firewall/aliases", "name", nil); got != "Gate" {
		t.Error(got)
	}
}

func TestAWriterWaitsForTheClusterLockAndGivesUp(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.LockTimeout = 20 * time.Millisecond }))
	lab.s.lock()
	lab.s.fileLocks["firewall-cluster"] = true
	lab.s.unlock()
	lab.refused("POST", groupsPath, form{"group": "sg1"}, 500, "cfs-lock 'firewall-cluster' error: got lock request timeout")
	lab.ok("GET", groupsPath, nil)
	lab.ok("POST", nodeRules, form{"type": "in", "action": "DROP"}) // another file, another lock
}

func TestParallelWritersLoseNothing(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.Config, d.LockTimeout = time.Millisecond, 10*time.Second }))
	done := make(chan reply)
	for range 8 {
		go func() { done <- lab.call("POST", nodeRules, form{"type": "in", "action": "DROP"}) }()
	}
	for range 8 {
		if r := <-done; r.status != 200 {
			t.Error(r)
		}
	}
	if got := len(lab.ok("GET", nodeRules, nil).([]any)); got != 8 {
		t.Error(got, "rules")
	}
}
