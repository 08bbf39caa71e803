package provider

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var systemGetenv = os.Getenv

func settleGuest(ctx context.Context, s *settler, m model) guest.Config {
	g := open[guestSSHModel](ctx, s, "guest_ssh", m.GuestSSH)
	login := guest.Config{
		Username: s.text("guest_ssh.username", g.Username),
		Auth: guest.Auth{
			PrivateKey: settleKey(s, "guest_ssh", g.PrivateKey, g.PrivateKeyFile),
			Agent:      s.truth("guest_ssh.agent", g.Agent),
		},
		Port:    s.number("guest_ssh.port", g.Port),
		Timeout: settleTimeout(s, "guest_ssh.timeout", s.text("guest_ssh.timeout", g.Timeout)),
	}
	j := open[proxyJumpModel](ctx, s, "guest_ssh.proxy_jump", g.ProxyJump)
	jump := guest.ProxyJump{
		Host:     s.text("guest_ssh.proxy_jump.host", j.Host),
		Port:     s.number("guest_ssh.proxy_jump.port", j.Port),
		Username: s.text("guest_ssh.proxy_jump.username", j.Username),
		HostKey:  s.text("guest_ssh.proxy_jump.host_key", j.HostKey),
		Auth:     guest.Auth{PrivateKey: settleKey(s, "guest_ssh.proxy_jump", j.PrivateKey, j.PrivateKeyFile)},
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
			addSettingError(s.diags, "guest_ssh.agent", "is set beside a private key: give one of them")
		}
	}
	switch {
	case jump.Host != "":
		if jump.HostKey == "" {
			s.diags.AddAttributeWarning(base.AttributePath("guest_ssh.proxy_jump.host_key"), "The jump host's key is not pinned",
				fmt.Sprintf("Without host_key, %s is believed at the first contact of every run, and somebody who poses as it could read everything. "+
					"`ssh-keyscan %s` shows its key, to be compared with the host's own /etc/ssh/ssh_host_ed25519_key.pub.", jump.Host, jump.Host))
		}
		login.ProxyJump = &jump
	case !g.ProxyJump.IsNull():
		addSettingError(s.diags, "guest_ssh.proxy_jump.host", "is missing")
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
