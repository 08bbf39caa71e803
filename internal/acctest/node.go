package acctest

import (
	"maps"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
)

// NodeSSH is the provider's attribute node_ssh for this environment: root on the lab's node; on a real server what the
// variables SANDBOX_ACC_NODE_SSH_KEY_FILE, _USERNAME and _HOSTS (as node_ssh's own, "pve1=192.0.2.10") say. The test is
// skipped where there are none.
func (env *Environment) NodeSSH(t testing.TB) map[string]any {
	t.Helper()
	if env.Lab != nil {
		hosts, keys := map[string]any{}, map[string]any{}
		for _, node := range env.Lab.Nodes() {
			hosts[node] = net.JoinHostPort(env.Lab.SSHHost(), strconv.Itoa(env.Lab.SSHPort()))
			keys[node] = env.Lab.SSHHostKey()
		}
		return map[string]any{"username": "root", "private_key_file": env.SSH.PrivateKeyFile, "hosts": hosts, "host_keys": keys}
	}
	key := os.Getenv(prefix + varNodeSSHKeyFile)
	if key == "" {
		t.Skipf("needs SSH to the node: %s%s", prefix, varNodeSSHKeyFile)
	}
	out := map[string]any{"private_key_file": key}
	hosts := map[string]any{}
	for _, pair := range strings.FieldsFunc(os.Getenv(prefix+varNodeSSHHosts), func(c rune) bool { return c == ',' }) {
		if node, host, ok := strings.Cut(pair, "="); ok {
			hosts[node] = host
		}
	}
	if len(hosts) > 0 {
		out["hosts"] = hosts
	}
	if user := os.Getenv(prefix + varNodeSSHUsername); user != "" {
		out["username"] = user
	}
	return out
}

const (
	varNodeSSHKeyFile  = "NODE_SSH_KEY_FILE"
	varNodeSSHUsername = "NODE_SSH_USERNAME"
	varNodeSSHHosts    = "NODE_SSH_HOSTS"
)

// NodeVariables is the same as variables of the provider.
func (env *Environment) NodeVariables(t testing.TB) map[string]string {
	t.Helper()
	given := env.NodeSSH(t)
	out := map[string]string{}
	for _, name := range []string{"username", "private_key_file"} {
		if text, ok := given[name].(string); ok {
			out[map[string]string{"username": "SANDBOX_NODE_SSH_USERNAME", "private_key_file": "SANDBOX_NODE_SSH_PRIVATE_KEY_FILE"}[name]] = text
		}
	}
	if env.Lab != nil {
		maps.Copy(out, nodeMaps(env.Lab.Lab))
	} else if hosts := os.Getenv(prefix + varNodeSSHHosts); hosts != "" {
		out["SANDBOX_NODE_SSH_HOSTS"] = hosts
	}
	return out
}

func nodeMaps(l *lab.Lab) map[string]string {
	hosts, keys := "", ""
	for _, node := range l.Nodes() {
		if hosts != "" {
			hosts, keys = hosts+",", keys+","
		}
		hosts += node + "=" + net.JoinHostPort(l.SSHHost(), strconv.Itoa(l.SSHPort()))
		keys += node + "=" + l.SSHHostKey()
	}
	return map[string]string{"SANDBOX_NODE_SSH_HOSTS": hosts, "SANDBOX_NODE_SSH_HOST_KEYS": keys}
}
