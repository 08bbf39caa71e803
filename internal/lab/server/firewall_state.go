package server

// The firewall's state. The endpoints under …/firewall fill it; a clone copies a guest's, a destroy removes it.

// fwRule is a firewall rule. Options are the fields as given (action, type, source, dport, …), without pos and digest.
type fwRule struct {
	Options map[string]string `json:"options"`
}

// fwRuleSet is an ordered list of rules with a comment: a security group, or the rules of a level.
type fwRuleSet struct {
	Comment string   `json:"comment,omitempty"`
	Rules   []fwRule `json:"rules"`
}

// fwIPSet is a named set of networks, in order.
type fwIPSet struct {
	Comment string      `json:"comment,omitempty"`
	Entries []fwSetItem `json:"entries"`
}

// fwSetItem is an entry of an IP set.
type fwSetItem struct {
	CIDR    string `json:"cidr"`
	Comment string `json:"comment,omitempty"`
	NoMatch bool   `json:"nomatch,omitempty"`
}

// fwAlias is a named address.
type fwAlias struct {
	CIDR    string `json:"cidr"`
	Comment string `json:"comment,omitempty"`
}

// clusterFirewall is the datacenter level.
type clusterFirewall struct {
	Options map[string]string     `json:"options"`
	Rules   []fwRule              `json:"rules"`
	Groups  map[string]*fwRuleSet `json:"groups"`
	IPSets  map[string]*fwIPSet   `json:"ipsets"`
	Aliases map[string]*fwAlias   `json:"aliases"`
}

// nodeFirewall is a node's level.
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
