package guest

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrNoKey is the cause when there is no private key to log in with: none is
// configured, or the agent has none.
var ErrNoKey = errors.New("no SSH key to log in with")

// ErrClosed is the cause when the pool was closed.
var ErrClosed = errors.New("the SSH connections of this run were closed")

// NotReady says which rung of the way to a guest wasn't reached, and why. Its
// text carries the remedies.
type NotReady struct {
	Target   Target
	Rung     Rung   // not reached; 0 when the login went well, but the connection didn't last
	Address  string // host:port that was tried
	Through  string // jump host, host:port; empty when reached directly
	Cause    error
	Waited   time.Duration // 0 when a single attempt was made
	Attempts int
	// Ended is the context's error when that ended the wait; else nil.
	Ended error

	plain bool // the remedies are those of guests, and this is none
}

func (e *NotReady) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s isn't ready over SSH at %s", e.Target, e.Address)
	if e.Through != "" {
		fmt.Fprintf(&b, " through %s", e.Through)
	}
	if e.Waited > 0 {
		fmt.Fprintf(&b, " after %s (%d attempts)", e.Waited.Round(time.Millisecond), e.Attempts)
	}
	fmt.Fprintf(&b, ": %s: %v", rungFailures[e.Rung], e.Cause)
	if e.Ended != nil && !errors.Is(e.Cause, e.Ended) {
		fmt.Fprintf(&b, " (stopped waiting: %v)", e.Ended)
	}
	if remedy := e.remedy(); remedy != "" && !e.plain {
		b.WriteString(". " + remedy)
	}
	return b.String()
}

// Unwrap gives the cause and, where it ended the wait, the context's error.
func (e *NotReady) Unwrap() []error {
	if e.Ended != nil {
		return []error{e.Cause, e.Ended}
	}
	return []error{e.Cause}
}

var rungFailures = map[Rung]string{
	0:           "the connection didn't last",
	RungTCP:     "no TCP connection",
	RungBanner:  "the port is open, but no SSH server spoke",
	RungHostKey: "an SSH server answered, but its host key wasn't settled",
	RungAuth:    "its host key is right, but the login failed",
}

func (e *NotReady) remedy() string {
	switch {
	case e.Rung == RungTCP && e.Through == "":
		return "If the sandbox runs but its network can't be reached from here, do one of: " +
			"set guest_ssh.proxy_jump to a host that can reach it (the Proxmox VE node as a rule), " +
			"add a route to the sandboxes' subnet, " +
			"or advertise the subnet by a Tailscale subnet router"
	case e.Rung == RungTCP:
		return "The jump host answers, but can't reach the sandbox: check that it runs, that its address is on a network of the jump host, " +
			"and that its firewall lets the jump host in (management_cidrs). Other ways: a route to the sandboxes' subnet, " +
			"or a Tailscale subnet router, without guest_ssh.proxy_jump"
	case e.Rung == RungBanner:
		return "Check in the template that openssh-server is installed and its service enabled, and that guest_ssh.port is sshd's"
	}
	return "" // HostKeyChanged and AuthRefused say it themselves
}

// AuthRefused says that sshd accepted none of our keys.
type AuthRefused struct {
	Username     string
	Fingerprints []string // of the keys offered, "SHA256:…"
	Setting      string   // the setting they came from, "guest_ssh"
	Message      string   // what the server had to say, if anything
	Jump         bool     // it was the jump host
}

func (e *AuthRefused) Error() string {
	keys := "our key " + strings.Join(e.Fingerprints, ", ")
	if len(e.Fingerprints) != 1 {
		keys = "every key that we have (" + strings.Join(e.Fingerprints, ", ") + ")"
	}
	text := fmt.Sprintf("%s was refused for user %q", keys, e.Username)
	if e.Message != "" {
		text += fmt.Sprintf(" (the server says %q)", e.Message)
	}
	if e.Jump {
		return text + fmt.Sprintf(". Add the public key to %s on the jump host, or set %s to a key that it trusts", authorizedKeysOf(e.Username), e.Setting)
	}
	if strings.HasPrefix(e.Setting, "node_ssh") {
		return text + fmt.Sprintf(". Add the public key to %s on the node, or set %s to a key that it trusts", authorizedKeysOf(e.Username), e.Setting)
	}
	return text + fmt.Sprintf(". The template must carry the public key in %s (owned by that user, mode 0600, in a folder with mode 0700), the account must not be locked, "+
		"and its sshd must allow the login (PermitRootLogin prohibit-password, PubkeyAuthentication yes); or set %s to a key that it trusts",
		authorizedKeysOf(e.Username), e.Setting)
}

func authorizedKeysOf(user string) string {
	if user == "root" {
		return "/root/.ssh/authorized_keys"
	}
	return "~" + user + "/.ssh/authorized_keys"
}

// JumpError says that the jump host can't be used: no guest behind it was tried.
type JumpError struct {
	Host  string // host:port
	Rung  Rung   // not reached on the jump host; 0 when it refuses to forward
	Cause error
	// Final says that trying again can't help: its key or ours was refused.
	Final bool
}

func (e *JumpError) Error() string {
	if e.Rung == 0 {
		return fmt.Sprintf("jump host %s won't connect us to the sandboxes: %v. "+
			"Its sshd must allow TCP forwarding for this user (AllowTcpForwarding yes or local, no PermitOpen that excludes them)", e.Host, e.Cause)
	}
	remedy := ""
	if e.Rung == RungTCP || e.Rung == RungBanner {
		remedy = ". Check guest_ssh.proxy_jump (host, port) and that its sshd runs"
	}
	return fmt.Sprintf("jump host %s (guest_ssh.proxy_jump) can't be used, so no sandbox behind it was tried: %s: %v%s",
		e.Host, rungFailures[e.Rung], e.Cause, remedy)
}

// Unwrap gives the cause.
func (e *JumpError) Unwrap() error { return e.Cause }

// HostKeyChanged says that a host shows another key than the pinned one.
type HostKeyChanged struct {
	Name string // of the guest or jump host
	Jump bool
	Want string // pinned, "SHA256:…"
	Got  string // shown; empty when the host no longer has a key of that type
}

func (e *HostKeyChanged) Error() string {
	got := "the one shown now is " + e.Got
	if e.Got == "" {
		got = "the host no longer has a key of that type"
	}
	if e.Jump {
		return fmt.Sprintf("the host key of jump host %s isn't the expected one: guest_ssh.proxy_jump.host_key is %s, %s. "+
			"Either the host was set up anew or somebody answers in its place. Compare with ssh-keygen -lf on the host's console; "+
			"if it is right, set host_key to the new public key", e.Name, e.Want, got)
	}
	return fmt.Sprintf("the host key of %s changed: pinned is %s, %s. "+
		"Either the sandbox was rolled back, restored or rebuilt outside of this run, its keys were made anew, another guest has its address, or somebody is in the middle. "+
		"Nothing was sent to it. If you know why it changed, accept the new key by replacing the sandbox, or by removing it from state and importing it again", e.Name, e.Want, got)
}

// LostError says that the connection broke after a command was sent, so that
// nobody knows whether it ran, runs still, or how it ended.
type LostError struct {
	Target Target
	Cause  error
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the SSH connection to %s was lost while a command was under way: %v. "+
		"Its fate is unknown: it may have finished, failed or still be running, so it was not sent again. Look at its effects in the sandbox before running it once more", e.Target, e.Cause)
}

// Unwrap gives the cause.
func (e *LostError) Unwrap() error { return e.Cause }

// CancelledError says that the context ended before the command did.
type CancelledError struct {
	Target Target
	// Stopped says that the guest confirmed the command's end.
	Stopped bool
	Cause   error
}

func (e *CancelledError) Error() string {
	if e.Stopped {
		return fmt.Sprintf("the command in %s was stopped: %v", e.Target, e.Cause)
	}
	return fmt.Sprintf("the command in %s was told to stop (%v), but its end wasn't confirmed: it may still be running", e.Target, e.Cause)
}

// Unwrap gives the context's error.
func (e *CancelledError) Unwrap() error { return e.Cause }
