package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// PostureChange is one deviation of a posture from its baseline.
type PostureChange struct {
	// Part is the field: "unprivileged", "features", "mounts", "devices",
	// "raw", "hookscript" or "extra_nics".
	Part string
	What string // e.g. `mp0 was added: /srv,mp=/srv`
	// Repairable says that Update can undo it through the API. The rest (a
	// privileged container, devices, hookscripts, raw lines, features other
	// than nesting) is reserved to root@pam's password login or impossible, so
	// only replacement helps.
	Repairable bool
	// Setting is the configuration key to delete or restore, for Update.
	Setting string
	// Want is the setting's value in the baseline; empty deletes it.
	Want string
}

// Diff lists how p deviates from baseline. Pending is no part of it, and
// neither is nesting, which has a setting of its own.
func (p Posture) Diff(baseline Posture) []PostureChange {
	var changes []PostureChange
	if p.Unprivileged != baseline.Unprivileged {
		what := "the container became unprivileged"
		if !p.Unprivileged {
			what = "the container is privileged: root inside is root on the node"
		}
		changes = append(changes, PostureChange{Part: "unprivileged", What: what})
	}
	changes = append(changes, diffLines("features", withoutNesting(p.Features), withoutNesting(baseline.Features), nil)...)
	changes = append(changes, diffLines("mounts", p.Mounts, baseline.Mounts, repairableMount)...)
	changes = append(changes, diffLines("devices", p.Devices, baseline.Devices, nil)...)
	changes = append(changes, diffLines("raw", rawLines(p.Raw), rawLines(baseline.Raw), nil)...)
	if p.Hookscript != baseline.Hookscript {
		changes = append(changes, PostureChange{Part: "hookscript", What: fmt.Sprintf("the hookscript is %q, was %q", p.Hookscript, baseline.Hookscript)})
	}
	changes = append(changes, diffWall(p.Firewall, baseline.Firewall)...)
	changes = append(changes, diffLines("extra_nics", p.ExtraNICs, baseline.ExtraNICs, func(string, string) bool { return true })...)
	return changes
}

// diffLines compares lists of "key=value".
func diffLines(part string, now, base []string, repairable func(key, added string) bool) []PostureChange {
	var changes []PostureChange
	for _, line := range now {
		if slices.Contains(base, line) {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		was := valueOf(base, key)
		c := PostureChange{Part: part, What: fmt.Sprintf("%s was added: %s", key, value)}
		if was != "" {
			c.What = fmt.Sprintf("%s is %s, was %s", key, value, was)
		} else if repairable != nil && repairable(key, value) {
			c.Repairable, c.Setting = true, key
		}
		changes = append(changes, c)
	}
	for _, line := range base {
		if key, value, _ := strings.Cut(line, "="); valueOf(now, key) == "" {
			changes = append(changes, PostureChange{Part: part, What: fmt.Sprintf("%s is gone, was %s", key, value)})
		}
	}
	return changes
}

func valueOf(lines []string, key string) string {
	for _, line := range lines {
		if k, v, _ := strings.Cut(line, "="); k == key {
			return v
		}
	}
	return ""
}

// repairableMount: a token may take out a mount point that somebody added (a
// volume becomes unusedN and loses no data); the root disk it may not.
func repairableMount(key, _ string) bool { return strings.HasPrefix(key, "mp") }

func withoutNesting(features []string) []string {
	return slices.DeleteFunc(slices.Clone(features), func(f string) bool { return strings.HasPrefix(f, "nesting=") })
}

func rawLines(raw [][]string) []string {
	lines := make([]string, 0, len(raw))
	for _, kv := range raw {
		lines = append(lines, strings.Join(kv, "="))
	}
	return lines
}
