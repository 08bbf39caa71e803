package provider

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var systemGetenv = os.Getenv

func settleGuest(ctx context.Context, s *settler, m model) guest.Config {
	return settleLogin(ctx, s, "guest_ssh", open[guestSSHModel](ctx, s, "guest_ssh", m.GuestSSH))
}

// settleNode reads node_ssh; nil where neither the block nor a variable says anything of it.
func settleNode(ctx context.Context, s *settler, m model, endpoint string) *sandbox.NodeAccess {
	n := open[nodeSSHModel](ctx, s, "node_ssh", m.NodeSSH)
	access := &sandbox.NodeAccess{
		SSH:      settleLogin(ctx, s, "node_ssh", n.guestSSHModel),
		Hosts:    s.pairs("node_ssh.hosts", n.Hosts),
		HostKeys: s.pairs("node_ssh.host_keys", n.HostKeys),
	}
	if m.NodeSSH.IsNull() && access.SSH.Auth == (guest.Auth{}) && len(access.Hosts) == 0 || len(s.unknown) > 0 {
		return nil
	}
	if u, err := url.Parse(endpoint); err == nil {
		access.DefaultHost = u.Hostname()
	}
	if len(access.HostKeys) == 0 {
		s.diags.AddAttributeWarning(base.AttributePath("node_ssh.host_keys"), "The nodes' keys are not pinned",
			"Without host_keys, a node is believed at the first contact of every run, and somebody who poses as it could be told what is meant for it. "+
				"`ssh-keyscan <node>` shows its key, to be compared with the node's own /etc/ssh/ssh_host_ed25519_key.pub.")
	}
	return access
}

// settleLogin reads guest_ssh or node_ssh, named by parent.
func settleLogin(ctx context.Context, s *settler, parent string, g guestSSHModel) guest.Config {
	login := guest.Config{
		Username: s.text(parent+".username", g.Username),
		Auth: guest.Auth{
			PrivateKey: settleKey(s, parent, g.PrivateKey, g.PrivateKeyFile),
			Agent:      s.truth(parent+".agent", g.Agent),
		},
		Port:    s.number(parent+".port", g.Port),
		Timeout: settleTimeout(s, parent+".timeout", s.text(parent+".timeout", g.Timeout)),
	}
	j := open[proxyJumpModel](ctx, s, parent+".proxy_jump", g.ProxyJump)
	jump := guest.ProxyJump{
		Host:     s.text(parent+".proxy_jump.host", j.Host),
		Port:     s.number(parent+".proxy_jump.port", j.Port),
		Username: s.text(parent+".proxy_jump.username", j.Username),
		HostKey:  s.text(parent+".proxy_jump.host_key", j.HostKey),
		Auth:     guest.Auth{PrivateKey: settleKey(s, parent+".proxy_jump", j.PrivateKey, j.PrivateKeyFile)},
	}
	if len(s.unknown) > 0 {
		return login
	}
	if login.Auth.Agent && login.Auth.PrivateKey != "" {
		// One in the configuration and the other in the environment is one choice and one leftover.
		switch {
		case !g.Agent.IsNull() && g.PrivateKey.IsNull() && g.PrivateKeyFile.IsNull():
			login.Auth.PrivateKey = ""
		case g.Agent.IsNull():
			login.Auth.Agent = false
		default:
			addSettingError(s.diags, parent+".agent", "is set beside a private key: give one of them")
		}
	}
	switch {
	case jump.Host != "":
		if jump.HostKey == "" {
			s.diags.AddAttributeWarning(base.AttributePath(parent+".proxy_jump.host_key"), "The jump host's key is not pinned",
				fmt.Sprintf("Without host_key, %s is believed at the first contact of every run, and somebody who poses as it could read everything. "+
					"`ssh-keyscan %s` shows its key, to be compared with the host's own /etc/ssh/ssh_host_ed25519_key.pub.", jump.Host, jump.Host))
		}
		login.ProxyJump = &jump
	case !g.ProxyJump.IsNull():
		addSettingError(s.diags, parent+".proxy_jump.host", "is missing")
	}
	return login
}

// settleKey reads a private key: its text or its file, the configuration's before the environment's.
func settleKey(s *settler, parent string, text, file types.String) string {
	textName, fileName := parent+".private_key", parent+".private_key_file"
	if !file.IsNull() && text.IsNull() {
		return s.readKey(fileName, s.text(fileName, file))
	}
	if key := s.text(textName, text); key != "" {
		// A key without its last line end is refused by parsers; editors and Terraform's trimspace take it away.
		return strings.TrimRight(key, "\n") + "\n"
	}
	return s.readKey(fileName, s.text(fileName, file))
}

func (s *settler) readKey(attribute, name string) string {
	if name == "" {
		return ""
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			addSettingError(s.diags, attribute, fmt.Sprintf("begins with ~/, but there is no home folder: %v", err))
			return ""
		}
		name = filepath.Join(home, rest)
	}
	key, err := os.ReadFile(name)
	if err != nil {
		addSettingError(s.diags, attribute, fmt.Sprintf("can't be read: %v", err))
		return ""
	}
	if info, err := os.Stat(name); err == nil && readableByOthers(info.Mode()) {
		s.diags.AddAttributeWarning(base.AttributePath(attribute), "Others can read the private key",
			fmt.Sprintf("%s has mode %04o, so other users of this machine can read it and log in to every sandbox. Run: chmod 600 %s",
				name, info.Mode().Perm(), name))
	}
	return string(key)
}

// readableByOthers is always false on Windows, whose permissions aren't in the mode.
func readableByOthers(mode fs.FileMode) bool {
	return runtime.GOOS != "windows" && mode.Perm()&0o077 != 0
}
