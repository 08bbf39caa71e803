package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

// MaxSnapshotName is Proxmox VE's limit for a snapshot's name.
const MaxSnapshotName = 40

// SnapshotName turns any text into a name that Proxmox VE takes for a
// snapshot: [A-Za-z][A-Za-z0-9_-]+, 2 to 40 characters, not one of the
// reserved "current" and "vzdump". A name that is already right is returned
// unchanged. Runs of other characters become one dash; a name that doesn't
// begin with a letter gets the prefix "s-". A name that had to be cut, or that
// is reserved, ends in a hash of the text, so that different long texts stay
// different.
func SnapshotName(text string) (string, error) {
	if text == "" {
		return "", errors.New("a snapshot's name can't be made from an empty text")
	}
	if validSnapshotName(text) {
		return text, nil
	}
	var b strings.Builder
	dash := false
	for _, r := range text {
		switch {
		case isLetter(r), r >= '0' && r <= '9', r == '_', r == '-':
			b.WriteRune(r)
			dash = r == '-'
		case !dash:
			b.WriteByte('-')
			dash = true
		}
	}
	name := strings.Trim(b.String(), "-")
	if name == "" || !isLetter(rune(name[0])) {
		name = "s-" + name
	}
	name = strings.TrimSuffix(name, "-")
	if validSnapshotName(name) && len(name) >= 2 {
		return name, nil
	}
	sum := sha256.Sum256([]byte(text))
	suffix := "-" + hex.EncodeToString(sum[:4])
	if len(name) > MaxSnapshotName-len(suffix) {
		name = strings.TrimRight(name[:MaxSnapshotName-len(suffix)], "-")
	}
	return name + suffix, nil
}

func validSnapshotName(s string) bool {
	if len(s) < 2 || len(s) > MaxSnapshotName || !isLetter(rune(s[0])) {
		return false
	}
	if strings.EqualFold(s, "current") || strings.EqualFold(s, "vzdump") {
		return false
	}
	for _, r := range s {
		if !isLetter(r) && (r < '0' || r > '9') && r != '_' && r != '-' {
			return false
		}
	}
	return true
}

func isLetter(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' }
