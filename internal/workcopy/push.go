package workcopy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// Push says where changes go, and as what.
type Push struct {
	Repo
	// Base is the commit that the changes were made on.
	Base string
	// Namespace is what Branch must lie in.
	Namespace string
	// Message of the commit; Author is "Name <mail>".
	Message, Author string
	// When is the commit's time. The same changes at the same time are the same commit, so that a push that is tried
	// again changes nothing.
	When time.Time
}

// PushChanges applies changes to a fresh clone on this machine and pushes the commit. The guest has no part in it, and
// the clone knows no configuration but ours. A branch that holds other commits already is not overwritten. It returns
// the commit.
func PushChanges(ctx context.Context, p Push, c Changes) (commit string, err error) {
	if err := p.Check(); err != nil {
		return "", err
	}
	if !InNamespace(p.Branch, p.Namespace) {
		return "", refused("branch %q isn't in the namespace %q, which is all that may be pushed to", p.Branch, p.Namespace)
	}
	if len(c.List) == 0 {
		return "", refused("there are no changes to push")
	}
	dir, err := os.MkdirTemp("", "sandbox-push-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	g, err := newHostGit(dir, p.Repo)
	if err != nil {
		return "", err
	}
	defer g.close()
	if err := g.checkout(ctx, p); err != nil {
		return "", err
	}
	if err := Apply(ctx, g.tree, c); err != nil {
		return "", err
	}
	var paths bytes.Buffer
	for _, change := range c.List {
		paths.WriteString(change.Path + "\x00")
	}
	// By name and with force: a file that was there at first is changed whatever .gitignore says.
	if _, err := g.run(ctx, &paths, "add", "--force", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"); err != nil {
		return "", err
	}
	name, mail, _ := strings.Cut(strings.TrimSuffix(p.Author, ">"), " <")
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		g.env["GIT_"+who+"_NAME"], g.env["GIT_"+who+"_EMAIL"], g.env["GIT_"+who+"_DATE"] = name, mail, p.When.UTC().Format(time.RFC3339)
	}
	if _, err := g.run(ctx, strings.NewReader(p.Message), "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim", "--file=-"); err != nil {
		return "", err
	}
	if commit, err = g.run(ctx, nil, "rev-parse", "HEAD"); err != nil {
		return "", err
	}
	if _, err := g.run(ctx, nil, "push", "--quiet", "--no-verify", "--recurse-submodules=no", "origin", "HEAD:refs/heads/"+p.Branch); err != nil {
		return "", fmt.Errorf("%w (a branch that holds other commits isn't overwritten: name another push_branch, or delete it)", err)
	}
	return commit, nil
}

// hostGit is git on this machine, on a repository that only this process writes.
type hostGit struct {
	tree  string
	env   map[string]string
	agent net.Listener
	// secrets are taken out of what git says.
	secrets []string
}

func newHostGit(dir string, repo Repo) (*hostGit, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, &MissingTool{Tool: "git", Here: true, For: "push a branch"}
	}
	g := &hostGit{tree: filepath.Join(dir, "tree"), env: maps.Clone(cleanGitEnv), secrets: repo.Credentials.Secrets()}
	if err := os.Mkdir(g.tree, 0o700); err != nil {
		return nil, err
	}
	c := repo.Credentials
	switch {
	case c == nil:
	case c.Token != "":
		// The script holds no secret: git's own environment does.
		askpass := filepath.Join(dir, "askpass")
		script := "#!/bin/sh\ncase $1 in Username*) printf '%s\\n' \"$SBX_USERNAME\";; *) printf '%s\\n' \"$SBX_TOKEN\";; esac\n"
		if err := os.WriteFile(askpass, []byte(script), 0o700); err != nil { //nolint:gosec // it has to be run, by us alone
			return nil, err
		}
		g.env["GIT_ASKPASS"], g.env["SBX_USERNAME"], g.env["SBX_TOKEN"] = askpass, orDefault(c.Username, "x-access-token"), c.Token
	case c.SSHKey != "":
		if err := g.serveKey(dir, *c); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// serveKey gives ssh the key by an agent of ours, so that it is in no file.
func (g *hostGit) serveKey(dir string, c Credentials) error {
	key, err := ssh.ParseRawPrivateKey([]byte(c.SSHKey))
	if err != nil {
		return fmt.Errorf("the SSH key of the credentials can't be read: %w", err)
	}
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		return err
	}
	hosts, socket := filepath.Join(dir, "known_hosts"), filepath.Join(dir, "agent")
	if err := os.WriteFile(hosts, []byte(strings.TrimSpace(c.KnownHosts)+"\n"), 0o600); err != nil {
		return err
	}
	if g.agent, err = net.Listen("unix", socket); err != nil { //nolint:noctx // a socket of our own, at once
		return fmt.Errorf("no SSH agent could be opened for git: %w", err)
	}
	go func() {
		for {
			conn, err := g.agent.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = agent.ServeAgent(ring, conn) // its end is the client's
				_ = conn.Close()
			}()
		}
	}()
	g.env["SSH_AUTH_SOCK"] = socket
	g.env["GIT_SSH_COMMAND"] = fmt.Sprintf("ssh -F /dev/null -o IdentityAgent=%s -o IdentityFile=/dev/null -o UserKnownHostsFile=%s -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes -o BatchMode=yes",
		guest.Quote(socket), guest.Quote(hosts))
	return nil
}

func (g *hostGit) close() {
	if g.agent != nil {
		_ = g.agent.Close()
	}
}

// checkout makes the tree what the changes were made on.
func (g *hostGit) checkout(ctx context.Context, p Push) error {
	if _, err := g.run(ctx, nil, "init", "--quiet", "--template="); err != nil {
		return err
	}
	if _, err := g.run(ctx, nil, "remote", "add", "origin", p.URL); err != nil {
		return err
	}
	if _, err := g.run(ctx, nil, "fetch", "--quiet", "--no-tags", "--depth=1", "origin", p.Base); err != nil {
		if ctx.Err() != nil {
			return err
		}
		// A server that gives no commits by name.
		if _, err := g.run(ctx, nil, "fetch", "--quiet", "--tags", "origin", "+refs/heads/*:refs/remotes/origin/*"); err != nil {
			return err
		}
	}
	_, err := g.run(ctx, nil, "checkout", "--quiet", "--detach", p.Base)
	return err
}

// run runs git in the tree; it returns what it printed, without the end of the line.
func (g *hostGit) run(ctx context.Context, stdin interface{ Read([]byte) (int, error) }, args ...string) (string, error) {
	full := make([]string, 0, 2*len(cleanGit)+len(args))
	for _, setting := range cleanGit {
		full = append(full, "-c", setting)
	}
	c := exec.CommandContext(ctx, "git", append(full, args...)...)
	c.Dir = g.tree
	c.WaitDelay = 5 * time.Second
	c.Env = g.environment()
	if stdin != nil {
		c.Stdin = stdin
	}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		said := lastLines(stderr.Bytes())
		for _, secret := range g.secrets {
			said = strings.ReplaceAll(said, secret, "[redacted]")
		}
		return "", fmt.Errorf("git %s: %w: %s: %w", args[0], ErrGit, said, err)
	}
	return strings.TrimSpace(stdout.String()), nil
}

// environment is what git gets of ours: where programs and certificates are, proxies, and the user's SSH agent. No
// variable of git's own comes through.
func (g *hostGit) environment() []string {
	pass := []string{"PATH", "HOME", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "USERPROFILE", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
		"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"}
	var env []string
	for _, name := range pass {
		if value, ok := os.LookupEnv(name); ok && g.env[name] == "" {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.env)) {
		env = append(env, name+"="+g.env[name])
	}
	return env
}
