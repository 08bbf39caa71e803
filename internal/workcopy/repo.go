package workcopy

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Repo is a repository to work in.
type Repo struct {
	// URL is https, http, ssh, "user@host:path", or file (a path in the guest).
	URL string
	// Ref is a branch, a tag or a commit; empty for what the server's HEAD is.
	Ref string
	// Depth is how many commits of history come along; 0 for all.
	Depth int
	// Branch is the branch that is worked on.
	Branch string
	// Credentials to clone and push with; nil for none.
	Credentials *Credentials
}

// Credentials open a repository: a token, or a key. They are never in a command line, a configuration or on a disk.
type Credentials struct {
	Username, Token string
	// SSHKey is a private key in OpenSSH's or PEM format, without a passphrase; KnownHosts are the host's lines of a
	// known_hosts file, which are required with it.
	SSHKey, KnownHosts string
}

// Secrets are the texts that must not get out.
func (c *Credentials) Secrets() []string {
	if c == nil {
		return nil
	}
	var out []string
	for _, s := range []string{c.Token, c.SSHKey} {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

var scpLike = regexp.MustCompile(`^(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:[^:]`)

// CheckURL refuses what git would take for something else than the address of a repository, and credentials in it.
func CheckURL(address string) error {
	unprintable := strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f })
	if scpLike.MatchString(address) && !strings.Contains(address, "://") && !unprintable {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || unprintable {
		return refused("%q is not the address of a repository", address)
	}
	switch u.Scheme {
	case "https", "http", "ssh":
		if u.Host == "" || strings.HasPrefix(u.Host, "-") {
			return refused("the address %q names no host", u.Redacted())
		}
	case "file":
		if u.Host != "" || u.Path == "" {
			return refused("the address %q names no path", u.Redacted())
		}
	default:
		return refused("the address of a repository is https://…, ssh://…, user@host:path or file://…, which %q is not", u.Redacted())
	}
	if _, has := u.User.Password(); has {
		return refused("the address %q has a password in it, which would stand in the state: use credentials_wo", u.Redacted())
	}
	return nil
}

// overSSH says whether an address is reached by ssh.
func overSSH(address string) bool {
	return strings.HasPrefix(address, "ssh://") || !strings.Contains(address, "://")
}

// Check refuses what can't work, before anything is sent.
func (r Repo) Check() error {
	if err := CheckURL(r.URL); err != nil {
		return err
	}
	if err := CheckBranch(r.Branch); err != nil {
		return err
	}
	if strings.HasPrefix(r.Ref, "-") || strings.ContainsAny(r.Ref, "\x00\n :*^~") {
		return refused("%q is not a branch, tag or commit", r.Ref)
	}
	c := r.Credentials
	switch {
	case c == nil:
	case c.SSHKey != "" && c.Token != "":
		return refused("credentials are a token or an SSH key, not both")
	case c.SSHKey != "" && strings.TrimSpace(c.KnownHosts) == "":
		return refused("an SSH key needs known_hosts: without it, anybody could answer in the host's place")
	case c.SSHKey != "" && !overSSH(r.URL):
		return refused("an SSH key opens no %q", r.URL)
	case c.Token != "" && overSSH(r.URL):
		return refused("a token opens nothing over SSH (%q)", r.URL)
	case c.Token != "" && strings.HasPrefix(r.URL, "http://") && !isLoopback(r.URL):
		return refused("a token isn't sent over http, where everybody on the way reads it: use https")
	}
	return nil
}

func isLoopback(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Hostname() == "127.0.0.1" || u.Hostname() == "::1" || u.Hostname() == "localhost")
}

// CheckBranch refuses what git check-ref-format would.
func CheckBranch(name string) error {
	bad := name == "" || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "refs/") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") || strings.Contains(name, "@{") || name == "@" ||
		strings.ContainsAny(name, " ~^:?*[\\\x7f") || len(name) > 200
	for part := range strings.SplitSeq(name, "/") {
		bad = bad || part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock")
	}
	for _, r := range name {
		bad = bad || r < 0x20
	}
	if bad {
		return refused("%q can't be the name of a branch", name)
	}
	return nil
}

// InNamespace says whether a branch lies in a namespace: "agents" holds "agents/x", not "agents" and not "agentsx".
func InNamespace(branch, namespace string) bool {
	return namespace != "" && strings.HasPrefix(branch, strings.TrimSuffix(namespace, "/")+"/")
}

// WorkBranch is the branch that a run works on: NAME#sbx-VMID, in the namespace where there is one.
func WorkBranch(namespace, name string, vmid int) string {
	branch := fmt.Sprintf("%s#sbx-%d", name, vmid)
	if namespace = strings.Trim(namespace, "/"); namespace != "" {
		branch = namespace + "/" + branch
	}
	return branch
}

// cleanGit are the settings that git is called with, here and in guests: nothing is run that a repository or a
// configuration names, and only protocols that are meant are spoken.
var cleanGit = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.untrackedCache=false", "core.alternateRefsCommand=", "core.pager=cat", "core.editor=true",
	"credential.helper=", "submodule.recurse=false", "fetch.recurseSubmodules=false", "fetch.writeCommitGraph=false", "gc.auto=0", "maintenance.auto=false", "init.defaultBranch=main", "advice.detachedHead=false",
	"protocol.allow=never", "protocol.https.allow=always", "protocol.http.allow=always", "protocol.ssh.allow=always", "protocol.file.allow=always",
	"http.followRedirects=initial", "core.protectHFS=true", "core.protectNTFS=true",
}

// cleanGitEnv are the variables that go with them. Nobody is asked for anything.
var cleanGitEnv = map[string]string{
	"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_ATTR_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1",
	"GIT_LITERAL_PATHSPECS": "1", "GIT_OPTIONAL_LOCKS": "0", "GCM_INTERACTIVE": "never", "LC_ALL": "C",
}
