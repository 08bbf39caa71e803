package diagnostics

import (
	"encoding/json"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// bundleVersion is that of the document's form; fields may be added without a new one.
const bundleVersion = 1

// bundle is the document. Its names are those of the data source.
type bundle struct {
	Version     int               `json:"version"`
	At          time.Time         `json:"at"`
	ID          int               `json:"id"`
	Hostname    string            `json:"hostname"`
	NodeName    string            `json:"node_name"`
	Owner       string            `json:"owner"`
	Status      string            `json:"status"`
	Phase       string            `json:"phase,omitempty"`
	Config      map[string]string `json:"config"`
	Pending     []string          `json:"pending"`
	Tasks       []bundleTask      `json:"tasks"`
	Firewall    bundleFirewall    `json:"firewall"`
	Journal     []string          `json:"journal"`
	Unavailable map[string]string `json:"unavailable"`
}

type bundleTask struct {
	UPID      string   `json:"upid"`
	Type      string   `json:"type"`
	User      string   `json:"user"`
	Status    string   `json:"status"`
	StartedAt string   `json:"started_at"`
	EndedAt   string   `json:"ended_at,omitempty"`
	Log       []string `json:"log,omitempty"`
}

type bundleFirewall struct {
	Datacenter *bool    `json:"datacenter"`
	Node       *bool    `json:"node"`
	Guest      *bool    `json:"guest"`
	Interface  bool     `json:"interface"`
	PolicyIn   string   `json:"policy_in"`
	PolicyOut  string   `json:"policy_out"`
	Rules      []string `json:"rules"`
	NodeRules  []string `json:"node_rules"`
}

func bundleOf(d sandbox.Diagnostics) (string, error) {
	b := bundle{
		Version: bundleVersion, At: d.At, ID: d.VMID, Hostname: d.Hostname, NodeName: d.Node, Owner: d.Owner, Status: string(d.Status), Phase: string(d.Phase),
		Config: d.Config, Pending: d.Pending, Journal: d.Journal, Unavailable: d.Unavailable,
		Firewall: bundleFirewall{
			Datacenter: d.Firewall.Datacenter, Node: d.Firewall.Node, Guest: d.Firewall.Guest, Interface: d.Firewall.Interface,
			PolicyIn: d.Firewall.PolicyIn, PolicyOut: d.Firewall.PolicyOut, Rules: d.Firewall.Rules, NodeRules: d.Firewall.NodeRules,
		},
	}
	for _, t := range d.Tasks {
		b.Tasks = append(b.Tasks, bundleTask{
			UPID: t.UPID, Type: t.Type, User: t.User, Status: t.Status, StartedAt: stamp(t.Started), EndedAt: stamp(t.Ended), Log: t.Log,
		})
	}
	text, err := json.MarshalIndent(b, "", "  ")
	return string(text), err
}
