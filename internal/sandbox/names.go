package sandbox

import (
	"slices"
	"strings"
)

// problemWithHostname says what a DNS name (RFC 1123) forbids in s; empty when
// nothing is wrong. Proxmox VE refuses the same, but only after an id is taken.
func problemWithHostname(s string) string {
	if s == "" {
		return "it is empty"
	}
	if len(s) > 255 {
		return "it is longer than 255 characters"
	}
	for label := range strings.SplitSeq(s, ".") {
		switch {
		case label == "":
			return "it has an empty label (two dots, or one at an end)"
		case len(label) > 63:
			return "the label \"" + label + "\" is longer than 63 characters"
		case label[0] == '-' || label[len(label)-1] == '-':
			return "the label \"" + label + "\" begins or ends with a dash"
		}
		for _, r := range label {
			if !isLetter(r) && (r < '0' || r > '9') && r != '-' {
				return "it holds \"" + string(r) + "\"; letters, digits, dashes and dots are allowed"
			}
		}
	}
	return ""
}

// NormalizeTags returns tags as the server keeps them: lower-cased, sorted and
// without duplicates.
func NormalizeTags(tags []string) []string {
	out := make([]string, 0, len(tags))
	for _, t := range tags {
		if t = strings.ToLower(strings.TrimSpace(t)); t != "" {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// splitTags reads the server's list, whose separator is a semicolon (and, when
// somebody wrote it so, a comma or a space).
func splitTags(s string) []string {
	return NormalizeTags(strings.FieldsFunc(s, func(r rune) bool { return r == ';' || r == ',' || r == ' ' }))
}

// joinTags is the server's form.
func joinTags(tags []string) string { return strings.Join(NormalizeTags(tags), ";") }

// validTag follows Proxmox VE's rule for a tag, in the lower case that it keeps.
func validTag(s string) bool {
	for i, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
		case i > 0 && strings.ContainsRune("-+.", r):
		default:
			return false
		}
	}
	return s != ""
}

// validID follows Proxmox VE's rule for the names of storages, pools' segments
// and the like.
func validID(s string) bool {
	for i, r := range s {
		switch {
		case isLetter(r):
		case i > 0 && (r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)):
		default:
			return false
		}
	}
	return len(s) >= 2
}

// validPool accepts nested pools, whose name is a path of at most three.
func validPool(s string) bool {
	parts := strings.Split(s, "/")
	if len(parts) > 3 {
		return false
	}
	for _, part := range parts {
		if part == "" {
			return false
		}
		for _, r := range part {
			if !isLetter(r) && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r) {
				return false
			}
		}
	}
	return true
}

// validBridge follows the pattern of net0's bridge.
func validBridge(s string) bool {
	for _, r := range s {
		if !isLetter(r) && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r) {
			return false
		}
	}
	return s != "" && len(s) <= 15
}
