package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

// Bounds of the area isolation. Another public provider replaces the whole set: about 10,800 calls, and no egress
// meanwhile.
const (
	maxGroupCreate = 103 // requests for a group of 100 rules
	maxRuleChange  = 3   // the refresh, the write, the confirmation
	maxSetChange   = 290 // requests for +171 and -112 of 5,416 networks, the refresh included
	setSize        = 5416
	setAdded       = 171
	setRemoved     = 112
)

const groups = `terraform {
  required_providers {
    sandbox = { source = "agentsandbox/sandbox" }
  }
}

variable "port" {
  type    = number
  default = 50
}

variable "first" {
  type    = number
  default = 0
}

variable "networks" {
  type    = number
  default = 0
}

resource "sandbox_firewall_group" "rules" {
  name = "bench-rules"
  rule = concat([{ direction = "in", action = "ACCEPT", macro = "SSH" }], [for i in range(1, 100) : {
    direction = "out", action = "ACCEPT", protocol = "tcp", ports = tostring(i == 50 ? var.port : i), to = "203.0.113.0/24"
  }])
}

resource "sandbox_firewall_group" "set" {
  count     = var.networks > 0 ? 1 : 0
  name      = "bench-set"
  mode      = "allowlist"
  resolvers = ["9.9.9.9"]
  allow     = [{ cidrs = slice(local.networks, var.first, var.first + var.networks), ports = "443" }]
}

locals { # range() ends at 1,024
  networks = [for n in setproduct(range(100), range(64)) : "${cidrhost("11.0.0.0/8", n[0] * 64 + n[1])}/32"]
}
`

func measureIsolation(ctx context.Context, log io.Writer, report func(Metric)) (err error) {
	provider, err := builtProvider(ctx)
	if provider != "" {
		defer func() { err = errors.Join(err, os.RemoveAll(provider)) }()
	}
	if err != nil {
		return err
	}
	for _, measure := range []func(context.Context, string, io.Writer, func(Metric)) error{measureGroups, measureWalls, measureGuarded, measurePackets} {
		if err := measure(ctx, provider, log, report); err != nil {
			return err
		}
	}
	return nil
}

// measureGroups counts what a security group costs: written first, with one rule changed, and with a large IP set
// changed.
func measureGroups(ctx context.Context, provider string, log io.Writer, report func(Metric)) (err error) {
	s, err := newStage(ctx, provider, lab.Fast())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	w, err := s.space(groups)
	if err != nil {
		return err
	}
	count := func(what string, options ...tfexec.ApplyOption) (int, []control.Request, error) {
		if err := s.resetRequests(ctx); err != nil {
			return 0, nil, err
		}
		if err := w.Apply(ctx, options...); err != nil {
			return 0, nil, err
		}
		requests, _, err := s.requests(ctx)
		work, _ := split(requests)
		fmt.Fprintf(log, "%s: %s\n", what, describe(requests))
		return work, requests, err
	}
	n, _, err := count("a group of 100 rules")
	if err != nil {
		return err
	}
	report(atMost("group_create_requests", n, maxGroupCreate))
	if n, _, err = count("one changed rule", tfexec.Var("port=5050")); err != nil {
		return err
	}
	report(atMost("group_one_rule_requests", n, maxRuleChange))

	networks := func(first, size int) []tfexec.ApplyOption {
		return []tfexec.ApplyOption{tfexec.Var("port=5050"), tfexec.Var("first=" + strconv.Itoa(first)), tfexec.Var("networks=" + strconv.Itoa(size))}
	}
	if _, _, err = count("a set of 5,416 networks", networks(0, setSize)...); err != nil {
		return err
	}
	// The other group is refreshed in the same run, with one request.
	n, requests, err := count("the set changed", networks(setRemoved, setSize-setRemoved+setAdded)...)
	if err != nil {
		return err
	}
	report(atMost("ipset_change_requests", n-1, maxSetChange))
	report(atMost("ipset_additions_after_a_removal", additionsAfterARemoval(requests), 0))
	return nil
}

// additionsAfterARemoval counts the additions to a set that came after something was removed from it: meanwhile it
// would lack what is wanted.
func additionsAfterARemoval(requests []control.Request) int {
	n, removed := 0, false
	for _, r := range requests {
		if r.Template == "/cluster/firewall/ipset/{name}/{cidr}" && r.Method == http.MethodDelete {
			removed = true
		}
		if r.Template == "/cluster/firewall/ipset/{name}" && r.Method == http.MethodPost && removed {
			n++
		}
	}
	return n
}

// space makes a working directory for a configuration of its own.
func (s *stage) space(configuration string) (*tfcli.Workspace, error) {
	s.spaces++
	dir := filepath.Join(s.dir, "space-"+strconv.Itoa(s.spaces))
	source := filepath.Join(dir, "source")
	if err := os.MkdirAll(source, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(source, "main.tf"), []byte(configuration), 0o600); err != nil {
		return nil, err
	}
	return s.cli.NewWorkspace(tfcli.WorkspaceOptions{
		Config: source, Dir: dir, ProviderDir: filepath.Dir(s.dir), Environment: s.target.Variables(),
	})
}
