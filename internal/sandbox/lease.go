package sandbox

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// OnExpiry says what a plan makes of a sandbox whose lease is over.
type OnExpiry string

// What can become of a sandbox whose lease is over.
const (
	ExpiryWarn    OnExpiry = "warn"    // a warning (the default)
	ExpiryReplace OnExpiry = "replace" // replaced by a new one
	ExpiryStop    OnExpiry = "stop"    // stopped in place
)

const (
	// MinTTL is the shortest lease: a creation must fit into it.
	MinTTL = time.Minute
	// MaxTTL keeps the end of a lease within the years that RFC 3339 can say.
	MaxTTL = 100 * 365 * 24 * time.Hour
	// MinIdleStop is the shortest idleness that counts: the guest's timer looks
	// once a minute.
	MinIdleStop = time.Minute

	// renewMarkLength is how long a Renew may be to stand in the marker itself.
	renewMarkLength = 64
	renewHashPrefix = "sha256:"
)

// Lease says how long a sandbox may live. Its end is absolute, stands in the
// marker, and goes in with the call that makes the container.
type Lease struct {
	// TTL is how long it lives from its creation, or from its last renewal.
	TTL time.Duration
	// Renew is any text; another one renews the lease, as another TTL does.
	Renew string
	// Keepalive keeps the sandbox when its lease is over: nothing destroys it.
	Keepalive bool
	// IdleStop is how long nothing may happen inside until the guest stops itself;
	// 0 means that it never does for that.
	IdleStop time.Duration
	OnExpiry OnExpiry // empty means ExpiryWarn
}

func (l *Lease) same(other *Lease) bool {
	return l == other || l != nil && other != nil && *l == *other
}

// RenewMark is what stands for a Renew in the marker: itself where it can, so
// that people see it and an import finds it, else its hash.
func RenewMark(renew string) string {
	if renew == "" || len(renew) <= renewMarkLength && validMarkerValue(renew) && !strings.HasPrefix(renew, renewHashPrefix) {
		return renew
	}
	sum := sha256.Sum256([]byte(renew))
	return renewHashPrefix + base64.RawStdEncoding.EncodeToString(sum[:])
}

// take brings the marker's lease to what is wanted and says whether anything
// changed. The end moves only when the lease is new or is to be renewed, so that
// a run that is repeated doesn't renew twice. A nil lease ends none.
func (m *Marker) take(want *Lease, now time.Time) (changed bool) {
	was := *m
	if want == nil {
		m.Expires, m.TTL, m.Renewed, m.Keepalive, m.IdleStop = time.Time{}, 0, "", false, 0
	} else {
		mark := RenewMark(want.Renew)
		if m.Expires.IsZero() || m.TTL != want.TTL || m.Renewed != mark {
			m.Expires = now.Add(want.TTL).UTC().Truncate(time.Second)
		}
		m.TTL, m.Renewed, m.Keepalive, m.IdleStop = want.TTL, mark, want.Keepalive, want.IdleStop
	}
	return !m.Expires.Equal(was.Expires) || m.TTL != was.TTL || m.Renewed != was.Renewed ||
		m.Keepalive != was.Keepalive || m.IdleStop != was.IdleStop
}

// expired says whether the lease is over; without one it never is.
func (m *Marker) expired(now time.Time) bool {
	return m != nil && !m.Expires.IsZero() && !now.Before(m.Expires)
}

// setLease reads what a marker says of a lease beside its end. Ownership doesn't
// rest on it, so what can't be read is kept and counts as not there.
func (m *Marker) setLease(key, value string) {
	d, err := time.ParseDuration(value)
	switch {
	case key == "keepalive" && value == "1":
		m.Keepalive = true
	case key == "ttl" && err == nil && d > 0:
		m.TTL = d
	case key == "idle" && err == nil && d > 0:
		m.IdleStop = d
	default:
		m.Extra = append(m.Extra, key+"="+value)
	}
}

// LeaseDuration writes a duration in as few units as it takes: "8h", "1h30m";
// empty for none.
func LeaseDuration(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// fillLease fills in what the marker says of the lease, and what this machine's
// clock makes of it.
func (m *Manager) fillLease(s *Sandbox) {
	if s.Marker == nil || s.Marker.Expires.IsZero() {
		return
	}
	s.Lease = &Lease{TTL: s.Marker.TTL, Renew: s.Marker.Renewed, Keepalive: s.Marker.Keepalive, IdleStop: s.Marker.IdleStop}
	s.ExpiresAt = s.Marker.Expires.UTC()
	s.LeaseLeft = s.ExpiresAt.Sub(m.clock.Now())
}

// Expired says whether there is a lease that is over.
func (s Sandbox) Expired() bool { return s.Lease != nil && s.LeaseLeft <= 0 }

// ExpiresSoon says whether less than a tenth of the lease is left.
func (s Sandbox) ExpiresSoon() bool {
	return s.Lease != nil && s.LeaseLeft > 0 && s.LeaseLeft < s.Lease.TTL/10
}

// ParseLeaseDuration reads a lease's duration in Go's form: whole seconds, more
// than none.
func ParseLeaseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || d <= 0:
		return 0, fmt.Errorf("%q is no duration such as \"90s\", \"30m\" or \"8h\"", text)
	case d%time.Second != 0:
		return 0, fmt.Errorf("%q holds a fraction of a second", text)
	}
	return d, nil
}

func checkLease(p *problems, l *Lease) {
	if l == nil {
		return
	}
	if l.TTL < MinTTL || l.TTL > MaxTTL {
		p.add("lease.ttl", fmt.Sprintf("%s is out of range", l.TTL), fmt.Sprintf("A lease lasts from %s to %s.", LeaseDuration(MinTTL), LeaseDuration(MaxTTL)))
	}
	if l.IdleStop != 0 && (l.IdleStop < MinIdleStop || l.IdleStop > MaxTTL) {
		p.add("lease.idle_stop", fmt.Sprintf("%s is out of range", l.IdleStop), fmt.Sprintf("Idleness counts from %s on. Leave idle_stop out to keep an idle sandbox running.", LeaseDuration(MinIdleStop)))
	}
	switch l.OnExpiry {
	case "", ExpiryWarn, ExpiryStop:
	case ExpiryReplace:
		if l.Keepalive {
			p.add("lease.on_expiry", "A kept sandbox can't be replaced", `keepalive = true keeps the sandbox when its lease is over, and on_expiry = "replace" destroys it then. Set on_expiry to "warn" or "stop", or keepalive to false.`)
		}
	default:
		p.add("lease.on_expiry", fmt.Sprintf("%q can't be done", l.OnExpiry), `Use "warn", "replace" or "stop".`)
	}
}
