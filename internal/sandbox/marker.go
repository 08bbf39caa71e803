package sandbox

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a guest's description.
const (
	// MaxDescription is how long a user's description may be, in characters.
	MaxDescription = 7600
	// maxServerDescription is the server's limit for the whole, in characters.
	maxServerDescription = 8192

	markerOpen   = "<!-- sandbox v1 "
	markerClose  = " -->"
	markerPrefix = "<!-- sandbox v" // any version

	// ClaimLength is the length of a claim: 128 random bits in base32.
	ClaimLength = 26
)

// Kind says what a marked guest is for.
type Kind string

// The kinds of guests that carry our marker.
const (
	KindContainer Kind = "container"
	KindMember    Kind = "member"   // of a pool of sandboxes
	KindHolder    Kind = "holder"   // of a workspace volume
	KindTemplate  Kind = "template" // built by Packer
)

// Phase says how far a guest has come.
type Phase string

// The phases of a guest. A guest that is still creating when Until is past was
// left behind by a process that died.
const (
	PhaseCreating Phase = "creating"
	PhaseReady    Phase = "ready"
	// PhaseRetired is that of a pool's member that is about to be destroyed:
	// nobody can claim it any more.
	PhaseRetired Phase = "retired"
)

// Marker is the last line of a guest's description: the proof of ownership. It
// lives on the server because state can be lost, and goes in with the very
// call that creates the guest.
type Marker struct {
	Owner string
	Claim string
	VMID  int
	Kind  Kind
	Phase Phase
	// TemplateID and TemplateBuild are the clone's source and the generation
	// of it that was cloned; TemplateFile is the file of a create.
	TemplateID    int
	TemplateBuild string
	TemplateFile  string
	RestoredFrom  string    // the backup that it was made from
	Mode          string    // the network mode
	Pool          string    // a pool of sandboxes (not a Proxmox pool)
	Generation    string    // of the pool's settings that a member was made with
	Expires       time.Time // end of the lease; zero means none
	// TTL, Renewed, Keepalive and IdleStop are the rest of the lease (lease.go).
	TTL       time.Duration
	Renewed   string // what stands for Lease.Renew
	Keepalive bool
	IdleStop  time.Duration
	Born      time.Time // when it was made, or claimed from a pool; zero for one that was adopted
	Until     time.Time // a creation that isn't ready by then is abandoned
	// Workspaces are those that the sandbox has, Released those that it lets go
	// when it stops; At is where a holder's volume is.
	Workspaces []Mounted
	Released   []Released
	At         *Place
	// Extra keeps keys that this version doesn't know, as "key=value".
	Extra []string
}

// Matches says whether the marker proves that the guest with the id vmid is
// the one that owner and claim name. A hand-made clone or a restore carries a
// copy of the marker with another vmid in it, so all three must match.
func (m *Marker) Matches(owner, claim string, vmid int) bool {
	return m != nil && owner != "" && claim != "" &&
		m.Owner == owner && m.Claim == claim && m.VMID == vmid
}

// String is the marker's line, without a newline.
func (m *Marker) String() string {
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(markerOpen, " "))
	put := func(key, value string) {
		if value != "" {
			b.WriteString(" " + key + "=" + value)
		}
	}
	put("owner", m.Owner)
	put("claim", m.Claim)
	if m.VMID != 0 {
		put("vmid", strconv.Itoa(m.VMID))
	}
	put("kind", string(m.Kind))
	put("phase", string(m.Phase))
	switch {
	case m.TemplateID != 0 && m.TemplateBuild != "":
		put("template", strconv.Itoa(m.TemplateID)+":"+m.TemplateBuild)
	case m.TemplateID != 0:
		put("template", strconv.Itoa(m.TemplateID))
	}
	put("file", m.TemplateFile)
	put("from", m.RestoredFrom)
	put("mode", m.Mode)
	put("pool", m.Pool)
	put("gen", m.Generation)
	put("expires", markerTime(m.Expires))
	put("ttl", LeaseDuration(m.TTL))
	put("renew", m.Renewed)
	if m.Keepalive {
		put("keepalive", "1")
	}
	put("idle", LeaseDuration(m.IdleStop))
	put("born", markerTime(m.Born))
	put("until", markerTime(m.Until))
	put("ws", formatMounted(m.Workspaces))
	put("off", formatReleased(m.Released))
	if m.At != nil {
		put("at", m.At.String())
	}
	for _, kv := range m.Extra {
		b.WriteString(" " + kv)
	}
	b.WriteString(markerClose)
	return b.String()
}

func markerTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Truncate(time.Second).Format(time.RFC3339)
}

// validMarkerValue says whether s can stand in a marker.
func validMarkerValue(s string) bool {
	if s == "" {
		return false
	}
	for _, r := range s {
		switch {
		case r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r >= '0' && r <= '9':
		case strings.ContainsRune("._:/+-", r):
		default:
			return false
		}
	}
	// "--" would end the comment for a Markdown renderer.
	return !strings.Contains(s, "--")
}

// JoinDescription puts the user's text and the marker into one description.
func JoinDescription(text string, m *Marker) (string, error) {
	line := m.String()
	for _, field := range strings.Fields(line[len(markerOpen) : len(line)-len(markerClose)]) {
		key, value, _ := strings.Cut(field, "=")
		if !validMarkerValue(value) {
			return "", fmt.Errorf("marker: %s=%q holds a character outside [A-Za-z0-9._:/+-]", key, value)
		}
	}
	if n := utf8.RuneCountInString(text); n > MaxDescription {
		return "", fmt.Errorf("description: %d characters, at most %d fit", n, MaxDescription)
	}
	whole := line
	if text != "" {
		whole = text + "\n" + line
	}
	if n := utf8.RuneCountInString(whole); n > maxServerDescription {
		return "", fmt.Errorf("description and marker: %d characters, the server takes %d", n, maxServerDescription)
	}
	return whole, nil
}

// SplitDescription takes a description apart as the server returns it (with a
// newline at its end). The marker is nil when the last line isn't one that
// this version understands; the text is then the whole description.
func SplitDescription(description string) (text string, m *Marker) {
	description = strings.TrimSuffix(description, "\n")
	head, last := "", description
	cut := strings.LastIndexByte(description, '\n')
	if cut >= 0 {
		head, last = description[:cut], description[cut+1:]
	}
	m = parseMarker(last)
	if m == nil {
		return description, nil
	}
	return head, m
}

// parseMarker reads one line; nil means that it is no marker of ours. It is
// strict about what ownership rests on and lenient about the rest: a key that
// a newer version added must neither hide the marker nor get lost.
func parseMarker(line string) *Marker {
	line = strings.TrimRight(line, " \t\r")
	if !strings.HasPrefix(line, markerOpen) || !strings.HasSuffix(line, markerClose) ||
		len(line) < len(markerOpen)+len(markerClose) {
		return nil
	}
	m := &Marker{}
	seen := map[string]bool{}
	for _, field := range strings.Fields(line[len(markerOpen) : len(line)-len(markerClose)]) {
		key, value, ok := strings.Cut(field, "=")
		if !ok || !validMarkerValue(value) || seen[key] {
			return nil
		}
		seen[key] = true
		if !m.set(key, value) {
			return nil
		}
	}
	if m.Owner == "" || m.Claim == "" || m.VMID == 0 {
		return nil
	}
	return m
}

func (m *Marker) set(key, value string) bool {
	var err error
	var ok bool
	switch key {
	case "owner":
		m.Owner = value
	case "claim":
		m.Claim = value
	case "vmid":
		m.VMID, err = strconv.Atoi(value)
		return err == nil && m.VMID > 0 && strconv.Itoa(m.VMID) == value
	case "kind":
		m.Kind = Kind(value)
	case "phase":
		m.Phase = Phase(value)
	case "template":
		id, build, _ := strings.Cut(value, ":")
		m.TemplateID, err = strconv.Atoi(id)
		m.TemplateBuild = build
		return err == nil && m.TemplateID > 0
	case "file":
		m.TemplateFile = value
	case "from":
		m.RestoredFrom = value
	case "mode":
		m.Mode = value
	case "pool":
		m.Pool = value
	case "gen":
		m.Generation = value
	case "expires":
		m.Expires, err = time.Parse(time.RFC3339, value)
		return err == nil
	case "ttl", "idle", "keepalive":
		m.setLease(key, value)
	case "renew":
		m.Renewed = value
	case "born":
		m.Born, err = time.Parse(time.RFC3339, value)
		return err == nil
	case "until":
		m.Until, err = time.Parse(time.RFC3339, value)
		return err == nil
	case "ws":
		m.Workspaces, ok = parseMounted(value)
		return ok
	case "off":
		m.Released, ok = parseReleased(value)
		return ok
	case "at":
		m.At, ok = parsePlace(value)
		return ok
	default:
		m.Extra = append(m.Extra, key+"="+value)
	}
	return true
}

// MemberTag is the tag of a pool's member that nobody has claimed. Like OwnerTag
// it is an index for lists, never proof.
const MemberTag = "sbx-member"

// OwnerTag is the tag that a guest of owner carries so that lists can be
// filtered by it. It is an index, never a proof. The server lower-cases tags.
func OwnerTag(owner string) string { return "sbx-" + strings.ToLower(owner) }
