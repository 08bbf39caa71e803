package lxc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"
)

// node is the SSH login on the node that builds, for what the API can't do.
type node struct {
	pool   *guest.Pool
	target guest.Target
}

// newNode makes the login; nil without one. Nothing is contacted.
func newNode(n NodeSSH) (*node, error) {
	if !n.wanted() {
		return nil, nil //nolint:nilnil // no login is wanted, which is no failure
	}
	pool, err := guest.NewPool(guest.Config{Username: n.NodeSSHUsername, Auth: n.auth(), Port: n.NodeSSHPort})
	if err != nil {
		return nil, fmt.Errorf("node_ssh: %w", err)
	}
	return &node{pool: pool, target: guest.Target{ID: "node", Name: n.NodeSSHHost, Address: n.NodeSSHHost, Port: n.NodeSSHPort, HostKey: n.NodeSSHHostKey}}, nil
}

func (n *node) close() {
	if n != nil {
		_ = n.pool.Close()
	}
}

// pctExec is what runs one line of shell code, read from standard input, in a container: neither the node's process list
// nor the container's shows what it is.
const pctExec = `__n=$(printf "\nx"); __n=${__n%x}; IFS= read -r __h || exit 126; eval "$__h"`

// header is the line for pctExec that runs script.
func header(script string) string {
	return "eval '" + strings.NewReplacer("'", `'"'"'`, "\n", `'"$__n"'`).Replace(script) + "'\n"
}

// pctCommand runs a script in a container. What follows the header on standard input is the script's own.
func pctCommand(vmid int) guest.Command {
	return guest.Command{Path: "pct", Args: []string{"exec", strconv.Itoa(vmid), "--", "sh", "-c", pctExec}}
}

// enter runs a script in a container.
func (n *node) enter(ctx context.Context, vmid int, s remote.Script) (remote.Result, error) {
	var words strings.Builder
	for _, a := range s.Args {
		words.WriteString(" " + word(a))
	}
	cmd := pctCommand(vmid)
	cmd.Stdin = io.MultiReader(strings.NewReader(header("set --"+words.String()+"\n"+s.Text)), orEmpty(s.Stdin))
	cmd.StdoutLimit = cmp.Or(s.Limit, remote.DefaultLimit)
	cmd.StderrLimit = cmd.StdoutLimit
	res, err := n.pool.Exec(ctx, n.target, cmd)
	if err != nil {
		return remote.Result{}, fmt.Errorf("over the node's SSH: %w", err)
	}
	return remote.Result{ExitCode: res.ExitCode, Stdout: res.Stdout, Stderr: res.Stderr, Truncated: res.StdoutTruncated}, nil
}

// rawScript appends the lines on standard input to the configuration of a stopped container that has no snapshots. The
// file is replaced as a whole by the cluster's file system, or not at all.
const rawScript = `set -eu
f=/etc/pve/lxc/$1.conf
test -f "$f"
if grep -q '^\[' "$f"; then echo "it has snapshots" >&2; exit 1; fi
cat >>"$f"`

// writeRaw writes lines of LXC's own, and reads them back by the API.
func (w *work) writeRaw(ctx context.Context, lines []string) error {
	if w.node == nil {
		return errors.New("there is no login on the node")
	}
	ref := w.build.Ref()
	res, err := w.node.pool.Exec(ctx, w.node.target, guest.Command{
		Script: rawScript, Args: []string{strconv.Itoa(ref.VMID)}, Stdin: strings.NewReader(strings.Join(lines, "\n") + "\n"),
	})
	if err != nil {
		return err
	}
	if res.ExitCode != 0 {
		return fmt.Errorf("exit status %d on the node: %s", res.ExitCode, strings.TrimSpace(string(res.Stderr)))
	}
	cfg, err := w.client.LXCConfig(ctx, ref.Node, ref.VMID)
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for _, l := range cfg.RawLines {
		have[l.Key+": "+l.Value] = true
	}
	for _, line := range lines {
		if !have[line] {
			return fmt.Errorf("%q was written on %s, and the API doesn't show it: is it the node that has the container (%s)?", line, w.config.NodeSSH.NodeSSHHost, ref.Node)
		}
	}
	return nil
}
