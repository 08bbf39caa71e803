package server

import "time"

// The firewall's state. The endpoints under …/firewall fill it; a clone copies a guest's, a destroy removes it.

// fwRule is a firewall rule. Options are its fields (action, type, source, dport, …) as the rule's line in the file has
// them, without pos and digest; enable is always there, "0" or "1".
type fwRule struct {
	Options map[string]string `json:"options"`
}

// fwRuleSet is an ordered list of rules with a comment: a security group.
type fwRuleSet struct {
	Comment string   `json:"comment,omitempty"`
	Rules   []fwRule `json:"rules"`
}

// fwIPSet is a named set of networks, in the order of the file: by the entries' text.
type fwIPSet struct {
	Comment string      `json:"comment,omitempty"`
	Entries []fwSetItem `json:"entries"`
}

// fwSetItem is an entry of an IP set: an address, a network, or an alias' name.
type fwSetItem struct {
	CIDR    string `json:"cidr"`
	Comment string `json:"comment,omitempty"`
	NoMatch bool   `json:"nomatch,omitempty"`
}

// fwAlias is a named address. Aliases are kept by their name in lower case; Name has the case as given.
type fwAlias struct {
	Name    string `json:"name"`
	CIDR    string `json:"cidr"`
	Comment string `json:"comment,omitempty"`
}

// clusterFirewall is the datacenter level, the file /etc/pve/firewall/cluster.fw.
type clusterFirewall struct {
	Options map[string]string     `json:"options"`
	Rules   []fwRule              `json:"rules"`
	Groups  map[string]*fwRuleSet `json:"groups"`
	IPSets  map[string]*fwIPSet   `json:"ipsets"`
	Aliases map[string]*fwAlias   `json:"aliases"`
	// Strays are files of guests that don't exist: the API writes them for every number. A guest of the number finds it.
	Strays map[int]*guestFirewall `json:"strays,omitempty"`
	// Changes counts the writes of all the firewall's files, Written is the time of each file's last one, by the file's
	// name: "cluster", "host-pve1", "vm-100".
	Changes uint64               `json:"changes,omitempty"`
	Written map[string]time.Time `json:"written,omitempty"`
}

// nodeFirewall is a node's level, the file /etc/pve/nodes/NODE/host.fw.
type nodeFirewall struct {
	Options map[string]string `json:"options"`
	Rules   []fwRule          `json:"rules"`
}

// guestFirewall is a guest's level, the file /etc/pve/firewall/ID.fw.
type guestFirewall struct {
	Options map[string]string   `json:"options"`
	Rules   []fwRule            `json:"rules"`
	IPSets  map[string]*fwIPSet `json:"ipsets"`
	Aliases map[string]*fwAlias `json:"aliases"`
}

// empty says that nothing is set: the server removes such a file.
func (f *guestFirewall) empty() bool {
	return len(f.Options) == 0 && len(f.Rules) == 0 && len(f.IPSets) == 0 && len(f.Aliases) == 0
}

// made gives the maps that a file without their sections lacks.
func made[M ~map[K]V, K comparable, V any](m *M) M {
	if *m == nil {
		*m = M{}
	}
	return *m
}
