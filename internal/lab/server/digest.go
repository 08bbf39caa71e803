package server

import (
	"crypto/sha1" //nolint:gosec // the server's digests are SHA-1
	"encoding/hex"
	"sort"
	"strings"
)

// digestOf is the digest of a configuration, 40 hex digits: any change of a key or value changes it.
func digestOf(parts ...map[string]string) string {
	h := sha1.New() //nolint:gosec // as above
	for _, part := range parts {
		keys := make([]string, 0, len(part))
		for key := range part {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, key := range keys {
			h.Write([]byte(key + ": " + strings.ReplaceAll(part[key], "\n", "%0A") + "\n"))
		}
		h.Write([]byte("[]\n"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// checkDigest compares a digest that a request gives with the present one. An empty one asks for nothing.
func checkDigest(given, present string) error {
	if given != "" && given != present {
		return failf("detected modified configuration - file changed by other user? Try again.")
	}
	return nil
}

// digest of a container's configuration file: options, raw lines, pending values and snapshots.
func (g *guest) digest() string {
	parts := []map[string]string{g.Config, g.Pending, {}}
	for _, line := range g.Raw {
		parts[2][line[0]] += line[1] + "\n"
	}
	for key := range g.PendingDelete {
		parts[2]["delete:"+key] = "1"
	}
	names := make([]string, 0, len(g.Snapshots))
	for name := range g.Snapshots {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		parts = append(parts, map[string]string{"name": name}, g.Snapshots[name].Config)
	}
	return digestOf(parts...)
}
