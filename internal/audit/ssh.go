package audit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const bySSHD = "sshd -T, as root and as the agent user"

var sshChecks = []check{
	{Check: Check{ID: "G1.1", Title: "Nobody logs in over SSH without a key", Severity: Critical, Cap: GradeC, How: bySSHD,
		Remedy: "PermitRootLogin prohibit-password; PasswordAuthentication, KbdInteractiveAuthentication, PermitEmptyPasswords and HostbasedAuthentication no; IgnoreRhosts yes. sandbox-harden writes them to /etc/ssh/sshd_config.d/00-sandbox.conf, where they come first."},
		guest: sshCheck(func(c sshd) []string {
			return c.differ(map[string][]string{
				"permitrootlogin":        {"no", "prohibit-password", "without-password", "forced-commands-only"},
				"passwordauthentication": {"no"}, "kbdinteractiveauthentication": {"no"}, "permitemptypasswords": {"no"},
				"hostbasedauthentication": {"no"}, "ignorerhosts": {"yes"}, "pubkeyauthentication": {"yes"},
			})
		})},
	{Check: Check{ID: "G1.2", Title: "Only root and the agent may log in over SSH", Severity: Medium, How: bySSHD, Remedy: "AllowUsers root agent."},
		guest: func(g *system) verdict {
			return sshCheck(func(c sshd) []string {
				users := c.all["allowusers"]
				if len(users) == 0 {
					return []string{"AllowUsers isn't set"}
				}
				var found []string
				for _, u := range users {
					if u != "root" && u != g.o.AgentUser {
						found = append(found, "AllowUsers "+u)
					}
				}
				return found
			})(g)
		}},
	{Check: Check{ID: "G1.3", Title: "SSH forwards TCP to and from the loopback only, and nothing else", Severity: Medium, How: bySSHD,
		Remedy: "X11Forwarding, AllowAgentForwarding, PermitTunnel, PermitUserEnvironment and GatewayPorts no. The provider forwards ports, so AllowTcpForwarding may be yes, with PermitListen 127.0.0.1:*."},
		guest: sshCheck(func(c sshd) []string {
			found := c.differ(map[string][]string{
				"x11forwarding": {"no"}, "allowagentforwarding": {"no"}, "permittunnel": {"no"}, "permituserenvironment": {"no"}, "gatewayports": {"no"},
			})
			switch c.one("allowtcpforwarding") {
			case "no", "local":
			default:
				for _, l := range c.all["permitlisten"] {
					if host, _, _ := cutLast(l, ":"); host != "127.0.0.1" && host != "localhost" && host != "[::1]" && l != "none" {
						found = append(found, "permitlisten "+l)
					}
				}
			}
			return found
		})},
	{Check: Check{ID: "G1.4", Title: "SSH limits guesses and idle connections", Severity: Low, How: bySSHD,
		Remedy: "MaxAuthTries 4 or less, MaxSessions 10 or less, LoginGraceTime at most 60, ClientAliveInterval above 0, MaxStartups with a limit, LogLevel INFO or VERBOSE."},
		guest: sshCheck(func(c sshd) []string {
			found := c.atMost("maxauthtries", 4)
			found = append(found, c.atMost("maxsessions", 10)...)
			found = append(found, c.atMost("logingracetime", 60)...)
			found = append(found, c.atMost("clientaliveinterval", 3600)...)
			if _, full, ok := cutLast(c.one("maxstartups"), ":"); !ok || atoi(full) < 1 || atoi(full) > 100 {
				found = append(found, "maxstartups "+c.one("maxstartups"))
			}
			return append(found, c.differ(map[string][]string{"loglevel": {"INFO", "VERBOSE"}})...)
		})},
	{Check: Check{ID: "G1.5", Title: "SSH offers no weak algorithm", Severity: Low, How: bySSHD,
		Remedy: "Leave out CBC, RC4 and 3DES ciphers, MACs with MD5, SHA-1 or 64 bits, and key exchanges and signatures with SHA-1."},
		guest: sshCheck(func(c sshd) []string {
			var found []string
			for key, weak := range weakAlgorithms {
				for name := range strings.SplitSeq(c.one(key), ",") {
					if slices.ContainsFunc(weak, func(w string) bool { return strings.Contains(name, w) }) || slices.Contains(weak, "="+name) {
						found = append(found, key+" "+name)
					}
				}
			}
			slices.Sort(found)
			return found
		})},
	{Check: Check{ID: "G1.6", Title: "No socket unit goes past the SSH server's limits", Severity: Low, How: "/etc/systemd/system",
		Remedy: "systemctl disable ssh.socket, and mask it: a server that is started for each connection knows no MaxStartups."},
		guest: func(g *system) verdict {
			if !g.hasSSHServer() {
				return notApplicable("there is no SSH server")
			}
			var found []string
			for _, name := range []string{"ssh.socket", "sshd.socket"} {
				if where, on := g.enabled(name); on {
					found = append(found, name+" is enabled by /"+where)
				}
			}
			return judge("/etc/systemd/system", found)
		}},
}

// weakAlgorithms are parts of names; with "=", the whole name.
var weakAlgorithms = map[string][]string{
	"ciphers":                     {"-cbc", "arcfour", "3des", "blowfish", "cast128"},
	"macs":                        {"md5", "hmac-sha1", "umac-64", "ripemd"},
	"kexalgorithms":               {"-sha1", "group1-"},
	"hostkeyalgorithms":           {"ssh-dss", "=ssh-rsa", "ssh-rsa-cert"},
	"pubkeyacceptedalgorithms":    {"ssh-dss", "=ssh-rsa", "ssh-rsa-cert"},
	"casignaturealgorithms":       {"=ssh-rsa"},
	"gssapikexalgorithms":         {},
	"hostbasedacceptedalgorithms": {"ssh-dss", "=ssh-rsa", "ssh-rsa-cert"},
}

// sshd is what "sshd -T" says for one user.
type sshd struct {
	user string
	all  map[string][]string
}

func parseSSHD(user, out string) sshd {
	c := sshd{user: user, all: map[string][]string{}}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		key := strings.ToLower(fields[0])
		c.all[key] = append(c.all[key], fields[1:]...)
	}
	return c
}

func (c sshd) one(key string) string {
	if v := c.all[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// differ lists the settings that are none of those wanted.
func (c sshd) differ(want map[string][]string) []string {
	var found []string
	for key, values := range want {
		if got := c.one(key); !slices.Contains(values, got) {
			if got == "" {
				got = "isn't said"
			}
			found = append(found, key+" "+got)
		}
	}
	slices.Sort(found)
	return found
}

func (c sshd) atMost(key string, most int) []string {
	n, err := strconv.Atoi(c.one(key))
	if err != nil || n < 1 || n > most {
		return []string{fmt.Sprintf("%s %s, not 1 to %d", key, c.one(key), most)}
	}
	return nil
}

// sshCheck judges the server's settings for root and for the agent user: a Match
// block may give one of them more.
func sshCheck(find func(sshd) []string) func(*system) verdict {
	return func(g *system) verdict {
		if !g.hasSSHServer() {
			return notApplicable("there is no SSH server")
		}
		var found []string
		for _, user := range []string{"root", g.o.AgentUser} {
			p, asked := g.probes["sshd-"+user]
			switch {
			case !asked:
				return unknown(bySSHD, "sshd can't be asked in a folder; run the audit inside, or allow it to run the folder's own programs")
			case p.exit != 0:
				return unknown(bySSHD, "sshd -T failed: "+lastLine([]byte(p.out), "it said nothing"))
			}
			for _, f := range find(parseSSHD(user, p.out)) {
				found = append(found, f+" (for "+user+")")
			}
		}
		return judge(bySSHD, found)
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }
