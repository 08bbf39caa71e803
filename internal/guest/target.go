package guest

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// DefaultPort is where sshd listens when a Target or ProxyJump names no port.
const DefaultPort = 22

// Target says which guest is meant and how to reach it.
type Target struct {
	// ID is the guest's lasting identity, the container's vmid as text. The
	// pool keeps connections and host keys by it.
	ID string
	// Name is for messages only; the hostname as a rule.
	Name string
	// Address is an IP address or a name, without port or prefix length.
	Address string
	// Port is the TCP port of sshd; 0 means Config.Port, then DefaultPort.
	Port int
	// HostKey is the pinned public key in authorized_keys format
	// ("ssh-ed25519 AAAA…"). Empty means first contact: the key that the guest
	// shows is pinned for the life of the pool and returned by WaitReady.
	HostKey string
}

// String names the target in messages: `sandbox "web" (101)`.
func (t Target) String() string {
	switch {
	case t.Name != "" && t.ID != "":
		return fmt.Sprintf("%q (%s)", t.Name, t.ID)
	case t.Name != "":
		return fmt.Sprintf("%q", t.Name)
	case t.ID != "":
		return "guest " + t.ID
	}
	return "guest at " + t.Address
}

func (t Target) key() string {
	if t.ID != "" {
		return t.ID
	}
	return t.address(DefaultPort)
}

func (t Target) address(defaultPort int) string {
	port := t.Port
	if port == 0 {
		port = defaultPort
	}
	return net.JoinHostPort(t.Address, strconv.Itoa(port))
}

func (t Target) validate() error {
	if t.Address == "" {
		return fmt.Errorf("%s has no address to reach it at", t)
	}
	if strings.ContainsAny(t.Address, "/ \t\n") {
		return fmt.Errorf("%s: %q is not an address (an IP address or a name, without a prefix length)", t, t.Address)
	}
	if t.Port < 0 || t.Port > 65535 {
		return fmt.Errorf("%s: port %d is not a TCP port (1-65535)", t, t.Port)
	}
	if t.HostKey != "" {
		if _, err := parseHostKey(t.HostKey); err != nil {
			return fmt.Errorf("%s: the pinned host key is not in authorized_keys format: %w", t, err)
		}
	}
	return nil
}

func parseHostKey(line string) (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	return key, err
}
