package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// A profile is a set of settings under a name, as a sandbox_container's attributes
// have them: a nested attribute is a map of its own. Profiles are merged from left
// to right; a modifier is one that says little and goes on top.
type profile struct {
	means    string
	modifier bool
	settings map[string]any
}

// ProfileInfo explains a profile.
type ProfileInfo struct {
	Name     string
	Means    string
	Modifier bool
}

// profiles are the catalogue. Each that stands alone has a lease that ends
// abandoned work within the day.
var profiles = map[string]profile{
	"yolo-ephemeral": {
		means: "an agent that asks nobody, on nothing that must last: 3 hours, only the web, stopped when idle for half an hour",
		settings: map[string]any{
			"cores": 2, "memory": 4096, "swap": 512, "tags": []string{"yolo"},
			"network": map[string]any{"mode": string(ModeWeb)},
			"lease":   map[string]any{"ttl": "3h", "idle_stop": "30m", "on_expiry": string(ExpiryStop)},
		},
	},
	"yolo-workspace": {
		means: "an agent that asks nobody, on work that must last: 8 hours, then stopped and kept, only the web",
		settings: map[string]any{
			"cores": 2, "memory": 4096, "swap": 512, "tags": []string{"yolo"}, "snapshot_before_update": true,
			"network": map[string]any{"mode": string(ModeWeb)},
			"lease":   map[string]any{"ttl": "8h", "keepalive": true, "idle_stop": "2h", "on_expiry": string(ExpiryStop)},
		},
	},
	"interactive-dev": {
		means: "somebody at work in it: 12 hours, then a warning, the internet but no private networks",
		settings: map[string]any{
			"cores": 4, "memory": 8192, "swap": 1024, "tags": []string{"dev"}, "snapshot_before_update": true,
			"network": map[string]any{"mode": string(ModeNAT)},
			"lease":   map[string]any{"ttl": "12h", "on_expiry": string(ExpiryWarn)},
		},
	},
	"docker-agent": {
		means: "an agent that runs containers of its own: nesting, 8 hours, only the web",
		settings: map[string]any{
			"cores": 4, "memory": 8192, "swap": 1024, "nesting": true, "tags": []string{"docker"},
			"network": map[string]any{"mode": string(ModeWeb)},
			"lease":   map[string]any{"ttl": "8h", "idle_stop": "1h", "on_expiry": string(ExpiryStop)},
		},
	},
	"small": {
		means: "1 core and 2 GiB", modifier: true,
		settings: map[string]any{"cores": 1, "memory": 2048, "swap": 512},
	},
	"large": {
		means: "8 cores and 16 GiB", modifier: true,
		settings: map[string]any{"cores": 8, "memory": 16384, "swap": 2048},
	},
	"secure": {
		means: "nothing out but DNS and what `network.allow` names, a small share of the node's CPU and a limit on traffic", modifier: true,
		settings: map[string]any{"cpu_units": 50, "network": map[string]any{"mode": string(ModeAllowlist), "rate_limit": 10}, "tags": []string{"secure"}},
	},
}

// Profiles lists the catalogue: those that stand alone, then the modifiers, by name.
func Profiles() []ProfileInfo {
	out := make([]ProfileInfo, 0, len(profiles))
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		out = append(out, ProfileInfo{Name: name, Means: profiles[name].means, Modifier: profiles[name].modifier})
	}
	slices.SortStableFunc(out, func(a, b ProfileInfo) int {
		switch {
		case a.Modifier == b.Modifier:
			return 0
		case b.Modifier:
			return -1
		}
		return 1
	})
	return out
}

// MergeProfiles merges profiles by name, then further settings. What comes later
// wins, nested attribute by nested attribute; tags add up, other lists are
// replaced. A nil value takes a setting back. An unknown name is an error that
// suggests the nearest.
func MergeProfiles(names []string, more ...map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for _, name := range names {
		p, ok := profiles[name]
		if !ok {
			return nil, unknownName("profile", name, slices.Sorted(maps.Keys(profiles)))
		}
		mergeSettings(out, p.settings)
	}
	for _, settings := range more {
		mergeSettings(out, settings)
	}
	return out, nil
}

func mergeSettings(into, from map[string]any) {
	for name, value := range from {
		switch value := value.(type) {
		case nil:
			delete(into, name)
		case map[string]any:
			inner, ok := into[name].(map[string]any)
			if !ok {
				inner = map[string]any{}
			} else {
				inner = maps.Clone(inner)
			}
			mergeSettings(inner, value)
			into[name] = inner
		case []string:
			before, _ := into[name].([]string)
			if name != "tags" {
				before = nil
			}
			list := slices.Clone(before)
			for _, v := range value {
				if !slices.Contains(list, v) {
					list = append(list, v)
				}
			}
			into[name] = list
		default:
			into[name] = value
		}
	}
}

// UnknownSetting is the error for a setting that no profile can have.
func UnknownSetting(name string, known []string) error { return unknownName("setting", name, known) }

// unknownName suggests the nearest of what there is.
func unknownName(kind, name string, known []string) error {
	best, distance := "", len(name)/2+1
	for _, k := range known {
		if d := levenshtein.Distance(strings.ToLower(name), k, nil); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return fmt.Errorf("there is no %s %q; there are %s", kind, name, strings.Join(known, ", "))
	}
	return fmt.Errorf("there is no %s %q; did you mean %q?", kind, name, best)
}
