package acctest

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// What identifies a server may be left out of the variables: it is then taken as the tests first see it, once for a
// process, and pinned for all of them. Who doubts the network gives it.

var learned sync.Map // "fingerprint https://…" or "host key host:port": func() (string, error)

func learn(what string, look func() (string, error)) (string, error) {
	f, _ := learned.LoadOrStore(what, sync.OnceValues(look))
	return f.(func() (string, error))() //nolint:forcetypeassert // nothing else is stored
}

// fingerprint is the SHA-256 of an endpoint's certificate; "" when the system trusts it, or nobody answers there.
func fingerprint(endpoint string) string {
	seen, _ := learn("fingerprint "+endpoint, func() (string, error) {
		u, err := url.Parse(endpoint)
		if err != nil {
			return "", err
		}
		address := u.Host
		if u.Port() == "" {
			address = net.JoinHostPort(u.Hostname(), "443")
		}
		ctx, cancel := context.WithTimeout(context.Background(), askPatience)
		defer cancel()
		conn, err := (&tls.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return "", conn.Close()
		}
		var unknown *tls.CertificateVerificationError
		if !errors.As(err, &unknown) || len(unknown.UnverifiedCertificates) == 0 {
			return "", err
		}
		return digest(unknown.UnverifiedCertificates[0]), nil
	})
	return seen
}

func digest(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.Raw)
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

// errSeen ends a handshake whose only purpose was the host key: nothing is ever sent to a host that isn't known yet.
var errSeen = errors.New("the host key was seen")

// hostKey is the key that a jump host shows, in authorized_keys form.
func hostKey(address string) (string, error) {
	return learn("host key "+address, func() (string, error) {
		var key ssh.PublicKey
		_, err := ssh.Dial("tcp", address, &ssh.ClientConfig{
			User: "nobody", Timeout: 10 * time.Second,
			HostKeyAlgorithms: []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoRSASHA256},
			HostKeyCallback:   func(_ string, _ net.Addr, k ssh.PublicKey) error { key = k; return errSeen },
		})
		if key == nil {
			return "", err
		}
		return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
	})
}
