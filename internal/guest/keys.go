package guest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// identity is what we authenticate with. Its signers are asked for at each
// login, because an agent's keys come and go.
type identity struct {
	setting string // the user's setting it came from, for messages
	signers func() ([]ssh.Signer, error)
	close   func()
}

// loadIdentity reads the key that auth names. The setting is the attribute
// group that auth came from ("guest_ssh"), for messages.
func loadIdentity(auth Auth, setting string) (*identity, []Warning, error) {
	named := 0
	for _, set := range []bool{auth.PrivateKey != "", auth.PrivateKeyFile != "", auth.Agent} {
		if set {
			named++
		}
	}
	id := &identity{setting: setting, close: func() {}}
	switch {
	case named > 1:
		return nil, nil, fmt.Errorf("%s names more than one key: set one of private_key, private_key_file and agent", setting)
	case named == 0:
		id.signers = func() ([]ssh.Signer, error) {
			return nil, fmt.Errorf("%w: set %s.private_key_file (or private_key, or agent = true) to a key that the authorized_keys there hold", ErrNoKey, setting)
		}
		return id, nil, nil
	case auth.Agent:
		a := &agentKeys{}
		id.signers, id.close = a.signers, a.close
		return id, nil, nil
	}

	pem, source, warnings := []byte(auth.PrivateKey), setting+".private_key", []Warning(nil)
	if auth.PrivateKeyFile != "" {
		source = fmt.Sprintf("%s.private_key_file %q", setting, auth.PrivateKeyFile)
		var err error
		if pem, warnings, err = readKeyFile(auth.PrivateKeyFile); err != nil {
			return nil, nil, fmt.Errorf("%s can't be read: %w", source, err)
		}
	}
	signer, err := parsePrivateKey(pem, source)
	if err != nil {
		return nil, nil, err
	}
	id.signers = func() ([]ssh.Signer, error) { return []ssh.Signer{signer}, nil }
	return id, warnings, nil
}

func readKeyFile(path string) ([]byte, []Warning, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, nil, err
		}
		path = filepath.Join(home, rest)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	// Windows keeps access in ACLs, which the mode bits don't show.
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return pem, []Warning{{
			Summary: "Private key file is open to other users",
			Detail: fmt.Sprintf("%s has mode %04o: others on this machine can use the key to log in to every sandbox that trusts it. "+
				"Close it with: chmod 600 %s", path, mode, path),
		}}, nil
	}
	return pem, nil, nil
}

// parsePrivateKey reads a PEM key. Errors name the source and never show any
// part of the key.
func parsePrivateKey(pem []byte, source string) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(pem)
	var encrypted *ssh.PassphraseMissingError
	switch text := strings.TrimSpace(string(pem)); {
	case err == nil:
		return signer, nil
	case errors.As(err, &encrypted):
		return nil, fmt.Errorf("%s is encrypted with a passphrase, which nobody is there to type: "+
			"add it to an SSH agent (ssh-add) and set agent = true, or use a key without a passphrase made for this purpose", source)
	case strings.HasPrefix(text, "ssh-"), strings.HasPrefix(text, "ecdsa-"):
		return nil, fmt.Errorf("%s holds a public key: name the private key (the file without .pub)", source)
	case strings.HasPrefix(text, "PuTTY-User-Key-File"):
		return nil, fmt.Errorf("%s is in PuTTY's format: convert it with puttygen KEY -O private-openssh-new", source)
	case !strings.Contains(text, "-----BEGIN"):
		return nil, fmt.Errorf("%s is no private key: it has no PEM header (-----BEGIN … KEY-----)", source)
	}
	return nil, fmt.Errorf("%s is no private key that can be used: %w", source, err)
}

// offered returns the public keys that we log in with, for messages and templates.
func (id *identity) offered() ([]ssh.PublicKey, error) {
	signers, err := id.signers()
	if err != nil {
		return nil, err
	}
	keys := make([]ssh.PublicKey, len(signers))
	for i, s := range signers {
		keys[i] = s.PublicKey()
	}
	return keys, nil
}

func (id *identity) fingerprints() []string {
	keys, err := id.offered()
	if err != nil {
		return nil
	}
	prints := make([]string, len(keys))
	for i, k := range keys {
		prints[i] = ssh.FingerprintSHA256(k)
	}
	return prints
}

// agentKeys talks to the SSH agent over one connection, made when first needed
// and again when the agent was restarted.
type agentKeys struct {
	mu     sync.Mutex
	conn   net.Conn
	client agent.ExtendedAgent
}

func (a *agentKeys) signers() ([]ssh.Signer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil {
		if signers, err := a.client.Signers(); err == nil && len(signers) > 0 {
			return signers, nil
		}
		a.drop()
	}
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, fmt.Errorf("%w: agent = true, but SSH_AUTH_SOCK is not set: start an SSH agent and add a key (ssh-add), or set private_key_file", ErrNoKey)
	}
	conn, err := net.Dial("unix", socket) //nolint:noctx // a local socket answers at once or not at all
	if err != nil {
		return nil, fmt.Errorf("%w: the SSH agent at SSH_AUTH_SOCK doesn't answer: %w", ErrNoKey, err)
	}
	a.conn, a.client = conn, agent.NewClient(conn)
	signers, err := a.client.Signers()
	if err != nil {
		a.drop()
		return nil, fmt.Errorf("%w: the SSH agent at SSH_AUTH_SOCK doesn't list its keys: %w", ErrNoKey, err)
	}
	if len(signers) == 0 {
		a.drop()
		return nil, fmt.Errorf("%w: the SSH agent holds no key: add one with ssh-add", ErrNoKey)
	}
	return signers, nil
}

func (a *agentKeys) drop() {
	if a.conn != nil {
		_ = a.conn.Close() // read side only; nothing to lose
	}
	a.conn, a.client = nil, nil
}

func (a *agentKeys) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop()
}
