package pve

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
)

// check finds what can't be right, without reading a file.
func (t TLSConfig) check() []error {
	var problems []error
	bad := func(field, problem string) { problems = append(problems, &ConfigError{Field: field, Problem: problem}) }
	if t.CAFile != "" && t.CAPEM != "" {
		bad("TLS.CAFile", "is given beside TLS.CAPEM; give one of them")
	}
	if t.Insecure && (t.CAFile != "" || t.CAPEM != "" || t.Fingerprint != "") {
		bad("TLS.Insecure", "accepts any certificate, so a CA or fingerprint beside it would not be looked at; drop one")
	}
	if t.Fingerprint != "" {
		if _, err := parseFingerprint(t.Fingerprint); err != nil {
			bad("TLS.Fingerprint", err.Error())
		}
	}
	return problems
}

// parseFingerprint reads "AA:BB:…" or plain hex, in any case.
func parseFingerprint(s string) ([sha256.Size]byte, error) {
	var out [sha256.Size]byte
	s = strings.TrimSpace(s)
	if len(s) > 7 && strings.EqualFold(s[:7], "sha256:") {
		s = s[7:]
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(s, ":", ""))
	switch {
	case err != nil:
		return out, errors.New("is not a fingerprint: 32 bytes in hex are expected, as AA:BB:…")
	case len(raw) == 20:
		return out, errors.New("is a SHA-1 fingerprint; give the SHA-256 one (32 bytes), as Proxmox VE shows it")
	case len(raw) != sha256.Size:
		return out, fmt.Errorf("has %d bytes; a SHA-256 fingerprint has 32", len(raw))
	}
	copy(out[:], raw)
	return out, nil
}

// Fingerprint returns the SHA-256 fingerprint of a certificate (DER) in Proxmox's
// form, "AA:BB:…".
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return formatFingerprint(sum)
}

func formatFingerprint(sum [sha256.Size]byte) string {
	parts := make([]string, len(sum))
	for i, b := range sum {
		parts[i] = fmt.Sprintf("%02X", b)
	}
	return strings.Join(parts, ":")
}

// tlsConfig returns the TLS settings of the transport. host is for messages.
func (t TLSConfig) tlsConfig(host string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" || t.CAPEM != "" {
		field, text := "TLS.CAPEM", []byte(t.CAPEM)
		if t.CAFile != "" {
			field = "TLS.CAFile"
			var err error
			if text, err = os.ReadFile(t.CAFile); err != nil {
				return nil, &ConfigError{Field: field, Problem: "cannot be read: " + err.Error()}
			}
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, &ConfigError{Field: field, Problem: "holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)"}
		}
	}
	if t.Insecure {
		cfg.InsecureSkipVerify = true // asked for; the provider warns on each run
		return cfg, nil
	}
	if t.Fingerprint == "" {
		return cfg, nil
	}
	want, err := parseFingerprint(t.Fingerprint)
	if err != nil {
		return nil, &ConfigError{Field: "TLS.Fingerprint", Problem: err.Error()}
	}
	// The pin takes the place of chain and name: VerifyConnection below runs for
	// every handshake, resumed ones too. With a CA both are checked.
	cfg.InsecureSkipVerify = cfg.RootCAs == nil
	cfg.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return &TLSError{Host: host, Pinned: formatFingerprint(want), Err: errors.New("it showed none")}
		}
		der := state.PeerCertificates[0].Raw
		if sha256.Sum256(der) == want {
			return nil
		}
		return &TLSError{Host: host, Fingerprint: Fingerprint(der), Pinned: formatFingerprint(want), Err: errors.New("it is not the pinned one")}
	}
	return cfg, nil
}

// asTLSError returns err as a *TLSError if it is about trust in the server's
// certificate, else nil.
func asTLSError(host string, err error) *TLSError {
	var own *TLSError
	if errors.As(err, &own) {
		return own
	}
	var verification *tls.CertificateVerificationError
	if !errors.As(err, &verification) {
		return nil
	}
	out := &TLSError{Host: host, Err: verification.Err}
	if len(verification.UnverifiedCertificates) > 0 {
		out.Fingerprint = Fingerprint(verification.UnverifiedCertificates[0].Raw)
	}
	return out
}
