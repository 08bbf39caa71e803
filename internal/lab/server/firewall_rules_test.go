package server

import (
	"fmt"
	"strings"
	"testing"
)

const (
	groupsPath = "/cluster/firewall/groups"
	nodeRules  = "firewall/rules"
	guestRules = "lxc/9000/firewall/rules"
)

// ruleLines are a list of rules, short: "0 IN ACCEPT tcp 22 # ssh", with a | before one that is off.
func (lab *ctLab) ruleLines(path string) string {
	lab.t.Helper()
	var lines []string
	for _, item := range lab.ok("GET", path, nil).([]any) {
		r := item.(map[string]any)
		line := fmt.Sprintf("%v ", r["pos"])
		if r["enable"] == 0.0 {
			line += "|"
		}
		line += strings.ToUpper(r["type"].(string)) + " " + r["action"].(string)
		for _, key := range []string{"macro", "iface", "source", "dest", "proto", "dport", "sport", "icmp-type", "log"} {
			if r[key] != nil {
				line += fmt.Sprintf(" %s=%v", key, r[key])
			}
		}
		if r["comment"] != nil {
			line += " # " + r["comment"].(string)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (lab *ctLab) rulesAre(path string, want ...string) {
	lab.t.Helper()
	if got := lab.ruleLines(path); got != strings.Join(want, "\n") {
		lab.t.Errorf("%s:\n%s\nwant:\n%s", path, got, strings.Join(want, "\n"))
	}
}

// listDigest is the digest of the entries of a list, or of an object.
func (lab *ctLab) listDigest(path string) string {
	lab.t.Helper()
	data := lab.ok("GET", path, nil)
	if list, ok := data.([]any); ok {
		data = list[0]
	}
	digest, _ := data.(map[string]any)["digest"].(string)
	return digest
}

const modified = "detected modified configuration - file changed by other user? Try again."

func TestANewRuleGoesOnTopAndIsOffUnlessSaidOtherwise(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", groupsPath, form{"group": "sg1"})
	for _, path := range []string{groupsPath + "/sg1", "/cluster/firewall/rules", nodeRules, guestRules} {
		lab.rulesAre(path)
		lab.ok("POST", path, form{"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "22", "comment": "ssh", "enable": "1"})
		lab.ok("POST", path, form{"type": "out", "action": "DROP", "dest": "10.99.0.0/16", "pos": "1"})
		lab.ok("POST", path, form{"type": "in", "action": "REJECT", "proto": "icmp", "icmp-type": "echo-request", "pos": "99", "digest": "bad", "enable": "2"})
		lab.rulesAre(path, "0 IN REJECT proto=icmp icmp-type=echo-request", "1 |OUT DROP dest=10.99.0.0/16", "2 IN ACCEPT proto=tcp dport=22 # ssh")
	}
}

func TestOneRuleHasItsPositionAsAString(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", nodeRules, form{"type": "in", "action": "ACCEPT", "source": "10.0.0.0/8"})
	r := lab.ok("GET", nodeRules+"/0", nil).(map[string]any)
	if r["pos"] != "0" || r["enable"] != 0.0 || r["ipversion"] != 4.0 {
		t.Error(r)
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		lab.refused(method, nodeRules+"/7", nil, 500, "no rule at position 7")
	}
}

func TestAnUpdateMergesFieldsIntoARule(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", guestRules, form{"type": "out", "action": "DROP", "dest": "10.99.0.0/16", "enable": "1", "comment": "c", "log": "info"})
	for _, c := range []struct {
		change form
		want   string
	}{
		{form{"type": "in", "action": "ACCEPT", "proto": "udp", "dport": "53"}, "0 IN ACCEPT dest=10.99.0.0/16 proto=udp dport=53 log=info # c"},
		{form{"delete": "dest,log"}, "0 IN ACCEPT proto=udp dport=53 # c"},
		{form{"comment": "-", "dport": ""}, "0 IN ACCEPT proto=udp"},
		{form{"comment": "first\nsecond", "enable": "0"}, "0 |IN ACCEPT proto=udp # first"},
		{form{"delete": "enable"}, "0 IN ACCEPT proto=udp # first"},
		{form{"macro": "https", "proto": ""}, "0 IN ACCEPT macro=HTTPS # first"},
		{form{}, "0 IN ACCEPT macro=HTTPS # first"},
		{form{"type": "group", "action": "any-name", "source": "10.0.0.1", "delete": "macro"}, "0 GROUP any-name # first"},
	} {
		lab.ok("PUT", guestRules+"/0", c.change)
		lab.rulesAre(guestRules, c.want)
	}
	lab.badParameter("PUT", guestRules+"/0", form{"delete": "action"}, "delete", "unable to delete required property 'action'")
	lab.badParameter("PUT", guestRules+"/0", form{"delete": "colour"}, "delete", "no such property ('colour')")
}

func TestARefusedUpdateChangesNothing(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", guestRules, form{"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "22"})
	lab.badParameter("PUT", guestRules+"/0", form{"comment": "new", "delete": "proto"}, "proto", "missing property - 'dport' requires this property")
	lab.rulesAre(guestRules, "0 |IN ACCEPT proto=tcp dport=22")
}

func TestARuleMovesBeforeTheOneAtThePosition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to int
		want     string
	}{
		{0, 3, "b c a d"}, {2, 0, "c a b d"}, {3, 1, "a d b c"}, {0, 4, "b c d a"}, {1, 99, "a c d b"}, {0, 1, "a b c d"}, {2, 2, "a b c d"},
	} {
		t.Run(fmt.Sprintf("%d to %d", c.from, c.to), func(t *testing.T) {
			t.Parallel()
			lab := newCTLab(t)
			for _, name := range []string{"d", "c", "b", "a"} {
				lab.ok("POST", nodeRules, form{"type": "in", "action": "ACCEPT", "comment": name})
			}
			lab.ok("PUT", fmt.Sprintf("%s/%d", nodeRules, c.from), form{"moveto": fmt.Sprint(c.to), "enable": "1"})
			var order []string
			for _, item := range lab.ok("GET", nodeRules, nil).([]any) {
				r := item.(map[string]any)
				order = append(order, r["comment"].(string))
				if r["enable"] != 0.0 && c.from != c.to {
					t.Error("a move changed something else too")
				}
			}
			if got := strings.Join(order, " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestAStaleDigestIsRefused(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", nodeRules, form{"type": "in", "action": "DROP"})
	digest := lab.listDigest(nodeRules)
	lab.ok("PUT", nodeRules+"/0", form{"comment": "x", "digest": digest})
	lab.refused("PUT", nodeRules+"/0", form{"comment": "y", "digest": digest}, 500, modified)
	lab.refused("DELETE", nodeRules+"/0", form{"digest": digest}, 500, modified)
	lab.ok("DELETE", nodeRules+"/0", form{"digest": lab.listDigest(nodeRules)})
	lab.rulesAre(nodeRules)
}

// The digests are those of recorded exchanges: a client that keeps one finds it again for the same rules.
func TestDigestsAreThoseOfARealServer(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	for path, want := range map[string]string{
		"/cluster/firewall/options": "da39a3ee5e6b4b0d3255bfef95601890afd80709", "firewall/options": "da39a3ee5e6b4b0d3255bfef95601890afd80709",
	} {
		if got := lab.listDigest(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	lab.ok("POST", groupsPath, form{"group": "sg1", "comment": "group one"})
	if got := lab.listDigest(groupsPath); got != "0c9b58582b07dbb7fe9d63de0969047490d14d7b" {
		t.Error("groups:", got)
	}
	sg := groupsPath + "/sg1"
	lab.ok("POST", sg, form{"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "22", "comment": "ssh", "enable": "1"})
	lab.ok("POST", sg, form{"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "80,443", "enable": "1"})
	if got := lab.listDigest(sg); got != "56b6c439e76121a16869e0711074a548c704b4f2" {
		t.Error("rules:", got)
	}
	lab.ok("POST", sg, form{"type": "out", "action": "DROP", "dest": "10.99.0.0/16", "pos": "1"})
	if got := lab.listDigest(sg); got != "83a33b1a0ec2890718b9b42e26c075a78044a430" {
		t.Error("rules with an IP version:", got)
	}
	lab.ok("PUT", "lxc/9000/firewall/options", form{"enable": "1", "policy_out": "DROP"})
	if got := lab.listDigest("lxc/9000/firewall/options"); got != "211177003819fb92a01ec1d87fdde08412a50375" {
		t.Error("options:", got)
	}
}

func TestWhatARuleNamesMayBeGoneAtTheNextLook(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", "/cluster/firewall/aliases", form{"name": "gate", "cidr": "10.0.0.1"})
	lab.ok("POST", guestRules, form{"type": "out", "action": "ACCEPT", "dest": "gate", "enable": "1"})
	before := lab.ok("GET", guestRules+"/0", nil).(map[string]any)
	lab.ok("DELETE", "/cluster/firewall/aliases/gate", nil)
	after := lab.ok("GET", guestRules+"/0", nil).(map[string]any)
	if before["errors"] != nil || before["ipversion"] != 4.0 {
		t.Error("before:", before)
	}
	if errs, _ := after["errors"].(map[string]any); errs["dest"] != "no such alias 'gate'" {
		t.Error("after:", after)
	}
}
