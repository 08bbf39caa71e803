package guest

import (
	"fmt"
	"sort"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// SharedHostKey says that two guests have the same host key, as clones of a
// template do that was made with its keys: whoever is root in one can pose as
// the other.
type SharedHostKey struct {
	A, B        Target
	Fingerprint string // "SHA256:…"
}

// Warning words it for a user.
func (s SharedHostKey) Warning() Warning {
	return Warning{
		Summary: "Two sandboxes share one SSH host key",
		Detail: fmt.Sprintf("%s and %s both have the host key %s, as clones of a template do that was made with its keys. "+
			"Whoever is root in one can pose as the other. Remove /etc/ssh/ssh_host_*_key* from the template, have them made at first boot, and replace the sandboxes.",
			s.A, s.B, s.Fingerprint),
	}
}

// hostKeys remembers which guest showed which host key.
type hostKeys struct {
	mu     sync.Mutex
	byID   map[string]ssh.PublicKey
	owners map[string]map[string]Target // marshalled key → target key → target
}

func newHostKeys() *hostKeys {
	return &hostKeys{byID: map[string]ssh.PublicKey{}, owners: map[string]map[string]Target{}}
}

// expected is the key that target must show: the caller's, else the one pinned
// before in this process, else nil (first contact).
func (h *hostKeys) expected(target Target) ssh.PublicKey {
	if target.HostKey != "" {
		if key, err := parseHostKey(target.HostKey); err == nil {
			return key
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byID[target.key()]
}

// note records target's key and returns the pairs that share it, in the order
// of their ids.
func (h *hostKeys) note(target Target, key ssh.PublicKey) []SharedHostKey {
	h.mu.Lock()
	defer h.mu.Unlock()
	id, blob := target.key(), string(key.Marshal())
	if old := h.byID[id]; old != nil && string(old.Marshal()) != blob {
		h.remove(id)
	}
	h.byID[id] = key
	if h.owners[blob] == nil {
		h.owners[blob] = map[string]Target{}
	}
	h.owners[blob][id] = target

	var shared []SharedHostKey
	for other, owner := range h.owners[blob] {
		if other == id {
			continue
		}
		pair := SharedHostKey{A: owner, B: target, Fingerprint: ssh.FingerprintSHA256(key)}
		if id < other {
			pair.A, pair.B = pair.B, pair.A
		}
		shared = append(shared, pair)
	}
	sort.Slice(shared, func(i, j int) bool {
		return shared[i].A.key()+" "+shared[i].B.key() < shared[j].A.key()+" "+shared[j].B.key()
	})
	return shared
}

func (h *hostKeys) forget(target Target) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(target.key())
}

func (h *hostKeys) remove(id string) {
	key := h.byID[id]
	if key == nil {
		return
	}
	blob := string(key.Marshal())
	delete(h.byID, id)
	delete(h.owners[blob], id)
	if len(h.owners[blob]) == 0 {
		delete(h.owners, blob)
	}
}

// hostKeyAlgorithms are those to negotiate. With a pinned key only its own
// type is asked for: a server with several keys would else show another one,
// and look changed. Certificates are never asked for, as nobody checks them.
func hostKeyAlgorithms(pinned ssh.PublicKey) []string {
	rsa := []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	switch {
	case pinned == nil:
		return append([]string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521}, rsa...)
	case pinned.Type() == ssh.KeyAlgoRSA:
		return rsa
	}
	return []string{pinned.Type()}
}

func formatHostKey(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}
