package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/exposure"
)

// NodeAccess is how nodes are reached over SSH, for what the API can't do.
type NodeAccess struct {
	// SSH is the login. As root, programs are run; any other user is taken for
	// the restricted login of a prepared node, whose key knows exposures only.
	SSH guest.Config
	// Hosts are the nodes' addresses by their names, "host" or "host:port".
	Hosts map[string]string
	// HostKeys are their SSH host keys by their names, in authorized_keys format.
	HostKeys map[string]string
	// DefaultHost is the address of the only node of a cluster of one.
	DefaultHost string
}

var (
	// ErrNoNodeSSH says that something needs SSH to a node, and none is configured.
	ErrNoNodeSSH = errors.New("node_ssh is not configured")
	// ErrNodeSSH says that a node can't be reached over SSH, or that what was
	// asked of it isn't done there.
	ErrNodeSSH = errors.New("the node could not be told")
	// ErrPortTaken says that something else listens on a node's port.
	ErrPortTaken = errors.New("the node's port is taken")
)

// nodeShell reaches the nodes.
type nodeShell struct {
	access NodeAccess
	pool   *guest.Pool
}

func newNodeShell(access *NodeAccess) (*nodeShell, error) {
	if access == nil {
		return nil, nil //nolint:nilnil // none is configured, which is no error until one is needed
	}
	access.SSH.Setting = "node_ssh"
	pool, err := guest.NewPool(access.SSH)
	if err != nil {
		return nil, err
	}
	return &nodeShell{access: *access, pool: pool}, nil
}

// target is where a node's SSH server is.
func (m *Manager) nodeTarget(ctx context.Context, node string) (guest.Target, error) {
	t := guest.Target{ID: "node " + node, Name: "node " + node, HostKey: m.node.access.HostKeys[node]}
	address := m.node.access.Hosts[node]
	if address == "" {
		nodes, err := m.pve.Lists().Fleet(ctx)
		if err != nil {
			return t, m.step("connect", Ref{}, "list the cluster's nodes", err)
		}
		if len(nodes.Nodes) > 1 || m.node.access.DefaultHost == "" {
			return t, &Error{Op: "connect", What: "reach node " + node + " over SSH", Kind: ErrNodeSSH, Err: errors.New("its address is not known"),
				Remedy: fmt.Sprintf(`name it in the provider block: node_ssh = { hosts = { %q = "192.0.2.10" }, … }`, node)}
		}
		address = m.node.access.DefaultHost
	}
	t.Address = strings.Trim(address, "[]")
	if host, port, err := net.SplitHostPort(address); err == nil {
		n, err := strconv.Atoi(port)
		if err != nil {
			return t, &Error{Op: "connect", What: "reach node " + node + " over SSH", Kind: ErrNodeSSH, Err: fmt.Errorf("%q is no host:port", address)}
		}
		t.Address, t.Port = host, n
	}
	return t, nil
}

// askNode has a node do a request of the program behind its restricted login,
// and returns what it says. One round trip.
func (m *Manager) askNode(ctx context.Context, op string, ref Ref, node, request string) (string, error) {
	if m.node == nil {
		return "", &Error{Op: op, Ref: ref, What: "reach node " + node, Kind: ErrNoNodeSSH,
			Remedy: "set node_ssh in the provider block: port exposures are made on the node itself, which the API can't do"}
	}
	t, err := m.nodeTarget(ctx, node)
	if err != nil {
		return "", err
	}
	cmd := guest.Command{Line: request}
	if user := m.node.access.SSH.Username; user == "" || user == "root" {
		cmd = guest.Command{Script: exposure.Gate(""), Env: map[string]string{"SSH_ORIGINAL_COMMAND": request}}
	}
	result, err := m.node.pool.Exec(ctx, t, cmd)
	if err != nil {
		return "", &Error{Op: op, Ref: ref, What: "ask node " + node + " over SSH", Kind: ErrNodeSSH, Err: err}
	}
	if result.ExitCode == 0 {
		return string(result.Stdout), nil
	}
	said := strings.TrimPrefix(strings.TrimSpace(string(result.Stderr)), "sandbox-node: ")
	e := &Error{Op: op, Ref: ref, What: "ask node " + node, Kind: ErrNodeSSH, Err: fmt.Errorf("it ended with exit code %d: %s", result.ExitCode, said)}
	switch result.ExitCode {
	case exposure.ExitRefused:
		e.Err, e.Remedy = fmt.Errorf("it refuses: %s", said), "the restricted login allows only what examples/bootstrap lets it; its program may also be of an older version: run bootstrap.sh --apply again"
	case exposure.ExitMissing:
		e.Kind, e.Err = ErrNoExposure, errors.New(said)
	case exposure.ExitFailed:
		e.Err = errors.New(said)
	case exposure.ExitForeign:
		e.Kind, e.Err, e.Remedy = ErrForeign, errors.New(said), "an exposure of that name was made for another container that had this id; remove it on the node if nobody needs it"
	case exposure.ExitTaken:
		e.Kind, e.Err, e.Remedy = ErrPortTaken, errors.New(said), "choose another host_port, or leave it out to be given a free one"
	}
	return "", e
}
