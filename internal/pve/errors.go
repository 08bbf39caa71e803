package pve

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Error is an answer of the server that isn't a success.
type Error struct {
	Method string
	// Path is the API path, without "/api2/json" and without the query.
	Path string
	// Status is the HTTP status, 500 for most failures of Proxmox VE.
	Status int
	// Message is the server's own, from the body where it has one, else from the
	// reason phrase. It may have several lines.
	Message string
	// Params holds a message for each parameter that was refused (400).
	Params map[string]string
	// Privilege and PrivilegePath are what a 403 misses: "VM.Clone" on
	// "/vms/9000". Several privileges of which one is enough are joined by "|".
	// Both are empty where the server doesn't say.
	Privilege, PrivilegePath string
	// Meaning is what the table of messages makes of it.
	Meaning Meaning
	// LockedBy is the kind of lock, where Meaning is Locked.
	LockedBy string
	// RetryAfter is what the answer's header of this name asks for, else 0.
	RetryAfter time.Duration
	// identity is who asked, for the text of a 401 or 403: "API token a@pve!b".
	identity string
}

func (e *Error) meaning() Meaning { return e.Meaning }

// Error names the call, the server's answer and, where the reader can do
// something about it, the remedy.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %d %s", e.Method, e.Path, e.Status, e.Message)
	for i, name := range slices.Sorted(maps.Keys(e.Params)) {
		b.WriteString(map[bool]string{true: " ", false: "; "}[i == 0])
		fmt.Fprintf(&b, "%s: %s", name, strings.TrimSpace(e.Params[name]))
	}
	if hint := e.Hint(); hint != "" {
		b.WriteString(" (" + hint + ")")
	}
	return b.String()
}

// Hint says what to do next, for the meanings that have one answer; else it is
// empty.
func (e *Error) Hint() string {
	who := orDefault(e.identity, "this identity")
	switch e.Meaning {
	case Unauthorised:
		return e.unauthorisedHint(who)
	case Forbidden:
		if e.Privilege != "" && e.PrivilegePath != "" {
			return fmt.Sprintf("give %s the privilege %s on %s; a token with privilege separation needs it itself, besides its user",
				who, e.Privilege, e.PrivilegePath)
		}
		return fmt.Sprintf("%s lacks a privilege; a token with privilege separation needs its own, besides its user", who)
	case RootOnly:
		return "only a login as root@pam with its password may do this, no API token; bake it into the template instead"
	case NodeUnreachable:
		return "the node that answered can't reach the one meant: it is down, or their certificates or times disagree; " +
			"this is between the nodes, and no TLS setting of the client changes it"
	case NotProxmox:
		return "what answers there is not the Proxmox VE API; its address is https://host:8006"
	case UnsupportedPath:
		return "this server has no such call; is it older than Proxmox VE 8, or another product?"
	}
	return ""
}

func (e *Error) unauthorisedHint(who string) string {
	switch {
	case strings.Contains(e.Message, "csrf"):
		return "the login's ticket ended"
	case e.Path == ticketPath:
		return "user, realm or password of " + who + " is wrong, or a second factor is needed; the realm is part of the name: root@pam, ci@pve"
	case strings.HasPrefix(who, "API token"):
		return who + " was refused: check its user, name and value, and that neither it nor its user has expired"
	}
	return "the login of " + who + " was refused"
}

// TransportError is a request that got no answer.
type TransportError struct {
	Method, Path string
	// Sent says that the request, or a part of it, may have reached the server:
	// a write may have been carried out.
	Sent bool
	// Attempts is how often it was tried.
	Attempts int
	// Err is the cause.
	Err error
}

func (e *TransportError) Error() string {
	text := fmt.Sprintf("%s %s: no answer", e.Method, e.Path)
	if e.Attempts > 1 {
		text += fmt.Sprintf(" in %d attempts", e.Attempts)
	}
	if !e.Sent {
		text = fmt.Sprintf("%s %s: not sent", e.Method, e.Path)
	}
	return text + ": " + e.Err.Error()
}

func (e *TransportError) Unwrap() error { return e.Err }

// LostAnswer reports whether a write that returned err may have been carried
// out all the same: it was sent and no answer came, or the answer is that of a
// proxy on the way. The caller looks at the server before it does anything else.
func LostAnswer(err error) bool {
	var te *TransportError
	if errors.As(err, &te) {
		return te.Sent
	}
	var e *Error
	if errors.As(err, &e) {
		switch e.Status {
		case 502, 503, 504, 596, 597, 598, 599:
			return true
		}
	}
	var bad *AnswerError
	return errors.As(err, &bad)
}

// TLSError is a server whose certificate isn't trusted.
type TLSError struct {
	// Host is the endpoint's host and port.
	Host string
	// Fingerprint is the SHA-256 fingerprint of the certificate that it showed,
	// in Proxmox's form (AA:BB:…).
	Fingerprint string
	// Pinned is the fingerprint that was asked for, "" where none was.
	Pinned string
	// Err is what the check of it said.
	Err error
}

func (e *TLSError) Error() string {
	if e.Pinned != "" {
		return fmt.Sprintf("the certificate of %s is not trusted: %v. Its SHA-256 fingerprint is %s, the configured one %s. "+
			"If the server's certificate was renewed, compare it with the one under Node, Certificates in the server's web interface and set fingerprint anew",
			e.Host, e.Err, e.Fingerprint, e.Pinned)
	}
	return fmt.Sprintf("the certificate of %s is not trusted: %v. Its SHA-256 fingerprint is %s. "+
		"Compare that with the one under Node, Certificates in the server's web interface; "+
		"if it is the same, set fingerprint to it, or set ca_file to the server's /etc/pve/pve-root-ca.pem",
		e.Host, e.Err, e.Fingerprint)
}

func (e *TLSError) Unwrap() error { return e.Err }

// AnswerError is a success whose content isn't what the API promises.
type AnswerError struct {
	Method, Path string
	// Err says what is wrong with it.
	Err error
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("%s %s: unexpected answer: %v", e.Method, e.Path, e.Err)
}

func (e *AnswerError) Unwrap() error { return e.Err }
