package sandbox

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// A rollback brings an old configuration back, and only then can the former one
// be written again. A process that dies between the two must not lose it, so
// it is written down before, where a rollback doesn't reach: in the marker,
// because the server leaves the description as it is. Whoever writes the
// container's configuration next (the same rollback, another one, or an update
// of the sandbox) completes it from there.

// Keys of a marker that this file owns.
const (
	markerRollback = "rollback" // the journal
	markerKeys     = "keys"     // a digest of the authorized keys that were written last
)

// journal is what a rollback that isn't finished has to put back.
type journal struct {
	Snapshot string            `json:"s"`
	Running  bool              `json:"r,omitempty"` // before the rollback
	Set      map[string]string `json:"set,omitempty"`
	Delete   []string          `json:"del,omitempty"`
	Sizes    map[string]string `json:"size,omitempty"` // of volumes that had grown, by key
}

// empty says that nothing would be lost without the journal.
func (j *journal) empty() bool {
	return j == nil || !j.Running && len(j.Set) == 0 && len(j.Delete) == 0 && len(j.Sizes) == 0
}

func (j *journal) String() string {
	text, err := json.Marshal(j)
	if err != nil {
		return ""
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		return ""
	}
	_, _ = w.Write(text) // into memory
	_ = w.Close()
	return base64.RawStdEncoding.EncodeToString(b.Bytes())
}

// journalOf is the journal in a marker; nil without one, and for one that this
// version can't read.
func journalOf(marker *Marker) *journal {
	if marker == nil {
		return nil
	}
	packed, err := base64.RawStdEncoding.DecodeString(marker.extra(markerRollback))
	if err != nil || len(packed) == 0 {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), 64<<10))
	if err != nil {
		return nil
	}
	var j journal
	if json.Unmarshal(text, &j) != nil {
		return nil
	}
	return &j
}

// withJournal is the description with a journal in its marker; nil takes it
// out. What doesn't fit into a description is shortened to what fits: the
// container's own resource holds most of it too.
func withJournal(text string, marker Marker, j *journal) (string, error) {
	if j == nil {
		marker = marker.withExtra(markerRollback, "")
		return JoinDescription(text, &marker)
	}
	full := marker.withExtra(markerRollback, j.String())
	description, err := JoinDescription(text, &full)
	if err == nil {
		return description, nil
	}
	short := marker.withExtra(markerRollback, (&journal{Snapshot: j.Snapshot, Running: j.Running}).String())
	if description, err = JoinDescription(text, &short); err == nil {
		return description, nil
	}
	return JoinDescription(text, &marker)
}

// onto is the configuration as it was before the rollback: cfg, with what the
// journal says. A nil journal says nothing.
func (j *journal) onto(cfg *pve.LXCConfig) *pve.LXCConfig {
	former := &pve.LXCConfig{Raw: maps.Clone(cfg.Raw), RawLines: cfg.RawLines, Extra: cfg.Extra}
	if j == nil {
		return former
	}
	for key, value := range j.Set {
		former.Raw[key] = value
	}
	for _, key := range j.Delete {
		delete(former.Raw, key)
	}
	for key, size := range j.Sizes {
		former.Raw[key] = volumeAt(former, key).With("size", size).String()
	}
	return former
}

// into adds to a change what the journal wants and the change doesn't decide.
func (j *journal) into(c *change, now *pve.LXCConfig) {
	if j == nil {
		return
	}
	decided := c.keys()
	for key, value := range j.Set {
		if !slices.Contains(decided, key) && !sameSetting(key, now.Text(key), value, now.Has(key)) {
			c.put(key, value)
		}
	}
	for _, key := range j.Delete {
		if now.Has(key) && !slices.Contains(decided, key) {
			c.del = append(c.del, key)
		}
	}
}

// extra is the value of a key that the marker's own fields don't have.
func (m *Marker) extra(key string) string {
	for _, kv := range m.Extra {
		if value, ok := strings.CutPrefix(kv, key+"="); ok {
			return value
		}
	}
	return ""
}

// withExtra is a copy with another value of such a key; an empty one takes it
// out.
func (m Marker) withExtra(key, value string) Marker {
	extra := slices.Clone(m.Extra)
	at := slices.IndexFunc(extra, func(kv string) bool { return strings.HasPrefix(kv, key+"=") })
	switch {
	case at >= 0 && value == "":
		extra = slices.Delete(extra, at, at+1)
	case at >= 0:
		extra[at] = key + "=" + value
	case value != "":
		extra = append(extra, key+"="+value)
	}
	m.Extra = extra
	return m
}

// keysDigest stands for a list of authorized keys in the marker. It tells the
// keys that we wrote from those that somebody inside has put in their place.
func keysDigest(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	trimmed := make([]string, 0, len(keys))
	for _, key := range keys {
		if key = strings.TrimSpace(key); !slices.Contains(trimmed, key) {
			trimmed = append(trimmed, key)
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(trimmed, "\n")))
	return base64.RawStdEncoding.EncodeToString(sum[:15])
}
