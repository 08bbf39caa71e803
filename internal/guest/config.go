package guest

import (
	"cmp"
	"time"
)

// Config is how guests are reached: what a user writes as guest_ssh.
type Config struct {
	// Username to log in as; "root" when empty. Setting owners, other users'
	// authorized keys and Command.User need root.
	Username string
	// Auth is the key that the guests' authorized_keys hold.
	Auth Auth
	// Port of the guests' sshd where a Target names none; 0 means DefaultPort.
	Port int
	// Timeout bounds WaitReady from first attempt to login. The context may
	// end it earlier. 0 means DefaultTimeout.
	Timeout time.Duration
	// ProxyJump is the host that dials the guests for us (direct-tcpip); nil
	// means that the guests are reached directly.
	ProxyJump *ProxyJump
	// Timing tunes waiting; zero values mean defaults. For tests, mostly.
	Timing Timing
	// Setting is the user's setting that all this comes from, for messages;
	// "guest_ssh" when empty.
	Setting string
}

// Auth names a private key. At most one of the three may be set; with none,
// a pool can be made, but its first use fails and says which settings to make.
type Auth struct {
	// PrivateKey is the key itself in PEM (OpenSSH or PKCS), unencrypted.
	PrivateKey string
	// PrivateKeyFile is a file holding it; a leading ~/ is the home folder.
	// A file that others can read works but is reported by Pool.TakeWarnings.
	PrivateKeyFile string
	// Agent uses the agent that SSH_AUTH_SOCK names, for encrypted keys and tokens.
	Agent bool
}

func (a Auth) empty() bool { return a == Auth{} }

// ProxyJump is an SSH host that can reach the guests: a Proxmox VE node with
// their bridge, or the lab's node.
type ProxyJump struct {
	Host string
	// Port of its sshd; 0 means DefaultPort.
	Port int
	// Username to log in as; Config.Username when empty.
	Username string
	// HostKey is its public key in authorized_keys format. Empty pins the key
	// of the first contact for the life of the pool, which a warning says.
	HostKey string
	// Auth is the key for the jump host; Config.Auth when empty.
	Auth Auth
}

const defaultSetting = "guest_ssh"

// DefaultTimeout is how long WaitReady climbs when Config.Timeout is 0.
const DefaultTimeout = 2 * time.Minute

// Timing holds every interval and bound of the package. A zero field means the
// default that stands behind it.
type Timing struct {
	PollMin time.Duration // 25ms; wait after the first failed attempt, doubling
	PollMax time.Duration // 500ms
	// Connect bounds one TCP connection (also one made by the jump host); 5s.
	Connect time.Duration
	// Handshake bounds banner, key exchange and authentication; 15s, because a
	// loaded sshd that looks up names is slow rather than broken.
	Handshake time.Duration
	// AuthGrace is how long refusals of our key are taken for a guest whose
	// keys aren't written yet; 4s.
	AuthGrace time.Duration
	// AuthRetry is the wait between two refused logins, doubling; 1s. Short
	// waits would bring sshd's PerSourcePenalties (OpenSSH 9.8) down on us:
	// five seconds of penalty per refusal, enforced from fifteen on.
	AuthRetry time.Duration
	// JumpGrace is how long an unreachable jump host is tried again; 5s.
	JumpGrace time.Duration
	// KeepAlive is the interval between two keep-alive requests on a
	// connection, and how long an answer may take; 15s.
	KeepAlive time.Duration
	// Idle is how long a guest's connection stays open without a session, looked
	// at when the keep-alive is due; 2m.
	Idle time.Duration
	// Probe is how long a pooled connection may take to open a session before
	// it counts as dead; 5s.
	Probe time.Duration
	// KillGrace is how long a cancelled command has between TERM and KILL; 3s.
	KillGrace time.Duration
	// Dials bounds connections being made at the same time, over all guests; 32.
	Dials int
	// Sessions bounds sessions per connection; 8, as sshd's MaxSessions is 10.
	Sessions int
}

func (t Timing) withDefaults() Timing {
	t.PollMin = cmp.Or(t.PollMin, 25*time.Millisecond)
	t.PollMax = cmp.Or(t.PollMax, 500*time.Millisecond)
	t.Connect = cmp.Or(t.Connect, 5*time.Second)
	t.Handshake = cmp.Or(t.Handshake, 15*time.Second)
	t.AuthGrace = cmp.Or(t.AuthGrace, 4*time.Second)
	t.AuthRetry = cmp.Or(t.AuthRetry, time.Second)
	t.JumpGrace = cmp.Or(t.JumpGrace, 5*time.Second)
	t.KeepAlive = cmp.Or(t.KeepAlive, 15*time.Second)
	t.Idle = cmp.Or(t.Idle, 2*time.Minute)
	t.Probe = cmp.Or(t.Probe, 5*time.Second)
	t.KillGrace = cmp.Or(t.KillGrace, 3*time.Second)
	t.Dials = cmp.Or(t.Dials, 32)
	t.Sessions = cmp.Or(t.Sessions, 8)
	return t
}

func (c Config) withDefaults() Config {
	c.Setting = cmp.Or(c.Setting, defaultSetting)
	c.Username = cmp.Or(c.Username, "root")
	c.Port = cmp.Or(c.Port, DefaultPort)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Timing = c.Timing.withDefaults()
	if c.ProxyJump != nil {
		jump := *c.ProxyJump
		jump.Port = cmp.Or(jump.Port, DefaultPort)
		jump.Username = cmp.Or(jump.Username, c.Username)
		if jump.Auth.empty() {
			jump.Auth = c.Auth
		}
		c.ProxyJump = &jump
	}
	return c
}
