package server

import (
	"crypto/sha1" //nolint:gosec // the server's digests are SHA-1
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fwDigest is the digest of a list as the firewall's API makes it: over the values of the entries, not over the file. Equal
// content has equal digests, on any server: they are those of the recorded exchanges. What isn't a plain value (a rule's
// errors) doesn't count.
func fwDigest(entries ...map[string]any) string {
	h := sha1.New() //nolint:gosec // as above
	for _, entry := range entries {
		for _, key := range slices.Sorted(maps.Keys(entry)) {
			if _, nested := entry[key].(map[string]string); !nested {
				_, _ = fmt.Fprintf(h, "%s:%v\n", key, entry[key])
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// withDigest puts the list's digest into every entry.
func withDigest(entries []map[string]any) []map[string]any {
	digest := fwDigest(entries...)
	for _, entry := range entries {
		entry["digest"] = digest
	}
	return entries
}

// fwComment is a comment as it survives the file: what is after its first line is lost, as is the white space around it.
func fwComment(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(line)
}
