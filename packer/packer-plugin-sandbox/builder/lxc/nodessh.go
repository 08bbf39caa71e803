package lxc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

func (n *NodeSSH) defaults(endpoint string) {
	const prefix = "SANDBOX_NODE_SSH_"
	n.NodeSSHHost = cmp.Or(n.NodeSSHHost, os.Getenv(prefix+"HOST"))
	if n.NodeSSHHost == "" && n.wanted() {
		if u, err := url.Parse(endpoint); err == nil {
			n.NodeSSHHost = u.Hostname()
		}
	}
	if n.NodeSSHPort == 0 {
		n.NodeSSHPort, _ = strconv.Atoi(os.Getenv(prefix + "PORT")) // checked with the rest
	}
	n.NodeSSHUsername = cmp.Or(n.NodeSSHUsername, os.Getenv(prefix+"USERNAME"), "root")
	n.NodeSSHHostKey = cmp.Or(n.NodeSSHHostKey, os.Getenv(prefix+"HOST_KEY"))
}

// wanted says whether there is anything to log in to the node with.
func (n *NodeSSH) wanted() bool { return n.auth() != (guest.Auth{}) }

func (n *NodeSSH) auth() guest.Auth {
	const prefix = "SANDBOX_NODE_SSH_"
	switch {
	case n.NodeSSHPrivateKeyFile != "":
		return guest.Auth{PrivateKeyFile: n.NodeSSHPrivateKeyFile}
	case n.NodeSSHAgentAuth:
		return guest.Auth{Agent: true}
	case os.Getenv(prefix+"PRIVATE_KEY") != "":
		return guest.Auth{PrivateKey: strings.TrimRight(os.Getenv(prefix+"PRIVATE_KEY"), "\n") + "\n"}
	case os.Getenv(prefix+"PRIVATE_KEY_FILE") != "":
		return guest.Auth{PrivateKeyFile: os.Getenv(prefix + "PRIVATE_KEY_FILE")}
	case os.Getenv(prefix+"AGENT") == "true":
		return guest.Auth{Agent: true}
	}
	return guest.Auth{}
}

// checkNodeSSH checks the login on the node, where something needs it.
func (c *Config) checkNodeSSH() (warnings []string, errs []error) {
	if v := os.Getenv("SANDBOX_NODE_SSH_PORT"); v != "" {
		if _, err := strconv.Atoi(v); err != nil {
			errs = append(errs, fmt.Errorf("node_ssh_port: SANDBOX_NODE_SSH_PORT is %q, which is no number", v))
		}
	}
	if !c.NodeSSH.wanted() {
		switch {
		case c.Comm.Type == pct:
			errs = append(errs, errors.New("communicator: pct goes through the node, and there is no login for it: set node_ssh_private_key_file or node_ssh_agent_auth (and node_ssh_host where the API's host isn't the node)"))
		case len(c.LXCRaw) > 0:
			errs = append(errs, errors.New("lxc_raw: the API can't write these lines, and there is no login on the node: set node_ssh_private_key_file or node_ssh_agent_auth, or leave lxc_raw out"))
		}
		return warnings, errs
	}
	if c.NodeSSH.NodeSSHHostKey == "" && (c.Comm.Type == pct || len(c.LXCRaw) > 0) {
		warnings = append(warnings, fmt.Sprintf("node_ssh_host_key is not set: whoever answers as %s at the first contact is believed. ssh-keyscan %s shows the key.", c.NodeSSH.NodeSSHHost, c.NodeSSH.NodeSSHHost))
	}
	return warnings, errs
}

// Prepare fills in what the environment says; an error when there is no login.
func (n *NodeSSH) Prepare(endpoint string) error {
	n.defaults(endpoint)
	if !n.wanted() {
		return errors.New("there is no login on the node: set node_ssh_private_key_file or node_ssh_agent_auth (and node_ssh_host where the API's host isn't the node)")
	}
	return nil
}

// Run runs a shell script on the node.
func (n *NodeSSH) Run(ctx context.Context, script string, args ...string) (string, error) {
	login, err := newNode(*n)
	if err != nil {
		return "", err
	}
	defer login.close()
	res, err := login.pool.Exec(ctx, login.target, guest.Command{Script: script, Args: args})
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("exit status %d on the node: %s", res.ExitCode, strings.TrimSpace(string(res.Stderr)))
	}
	return string(res.Stdout), err
}
