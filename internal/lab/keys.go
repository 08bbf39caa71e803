package lab

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
)

// keys are a lab's secrets. They are kept with its state, so that a configuration stays right over a restart.
type keys struct {
	Private  string `json:"private_key"`   // OpenSSH PEM
	NodeKey  string `json:"node_host_key"` // OpenSSH PEM
	Token    string `json:"token"`
	Password string `json:"password"`
	Secret   string `json:"secret"`
}

// loadKeys reads the keys of a folder, or makes new ones and keeps them there.
func loadKeys(dir string) (keys, error) {
	var k keys
	if dir == "" {
		return newKeys()
	}
	path := filepath.Join(dir, "keys.json")
	raw, err := os.ReadFile(path)
	if err == nil {
		if err := json.Unmarshal(raw, &k); err != nil {
			return k, fmt.Errorf("%s: %w; remove the folder to start over", path, err)
		}
		return k, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return k, fmt.Errorf("read the lab's keys: %w", err)
	}
	if k, err = newKeys(); err != nil {
		return k, err
	}
	raw, err = json.MarshalIndent(k, "", "  ") //nolint:gosec // the file is for its owner only
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		return k, fmt.Errorf("keep the lab's keys: %w", err)
	}
	return k, nil
}

func newKeys() (keys, error) {
	private, err := newKeyPEM("lab")
	if err != nil {
		return keys{}, err
	}
	node, err := newKeyPEM("lab node")
	if err != nil {
		return keys{}, err
	}
	token := randomHex()
	return keys{
		Private: private, NodeKey: node, Secret: randomHex(), Password: randomHex(),
		Token: token[:8] + "-" + token[8:12] + "-4" + token[13:16] + "-a" + token[17:20] + "-" + token[20:],
	}, nil
}

func newKeyPEM(comment string) (string, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return "", fmt.Errorf("make the lab's SSH key: %w", err)
	}
	return string(pem.EncodeToMemory(block)), nil
}

func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand.Read ends the program instead
	return hex.EncodeToString(b[:])
}

// authorized is the guests' key as a line of authorized_keys.
func (k keys) authorized() string {
	line := string(ssh.MarshalAuthorizedKey(signer(k.Private).PublicKey()))
	return line[:len(line)-1] + " lab"
}

// node is the SSH node's host key.
func (k keys) node() ssh.Signer { return signer(k.NodeKey) }

// signer reads a key that newKeyPEM made.
func signer(text string) ssh.Signer {
	s, err := ssh.ParsePrivateKey([]byte(text))
	if err != nil {
		panic(fmt.Sprintf("lab: the kept SSH key can't be read: %v", err))
	}
	return s
}
