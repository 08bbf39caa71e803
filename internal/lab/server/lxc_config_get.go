package server

import (
	"maps"
	"slices"
	"strconv"
)

// lxcNumbers are the options that answers have as numbers. All others are text, also cpulimit ("1.5").
var lxcNumbers = map[string]bool{
	"memory": true, "swap": true, "cores": true, "cpuunits": true, "tty": true, "onboot": true, "protection": true,
	"unprivileged": true, "console": true, "debug": true, "template": true, "snaptime": true,
}

// lxcValue is an option's value as answers have it.
func lxcValue(key, value string) any {
	if lxcNumbers[key] {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return n
		}
	}
	return value
}

// lxcAnswer is a configuration as the answer to a GET.
func lxcAnswer(config map[string]string, raw [][2]string) map[string]any {
	out := make(map[string]any, len(config)+2)
	for key, value := range config {
		out[key] = lxcValue(key, value)
	}
	if len(raw) > 0 {
		out["lxc"] = raw
	}
	return out
}

// withPending is the configuration as it will be after the next start.
func (g *guest) withPending() map[string]string {
	config := maps.Clone(g.Config)
	maps.Copy(config, g.Pending)
	for key := range g.PendingDelete {
		delete(config, key)
	}
	return config
}

// lxcConfigGet: pending values by default, current=1 the running ones, snapshot=NAME those of a snapshot.
func (s *Server) lxcConfigGet(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	config, raw := g.withPending(), g.Raw
	switch name := c.params.str("snapshot"); {
	case name != "" && c.params.flag("current"):
		return nil, paramError("snapshot", "cannot use 'snapshot' parameter with 'current'")
	case name != "":
		snap, err := g.snapshotNamed(name)
		if err != nil {
			return nil, err
		}
		config, raw = snap.options(), snap.Raw
	case c.params.flag("current"):
		config = maps.Clone(g.Config)
	}
	if !c.may("/vms/"+strconv.Itoa(g.VMID), "VM.Config.Options") {
		delete(config, "env")
	}
	out := lxcAnswer(config, raw)
	out["digest"] = g.digest()
	return out, nil
}

// lxcPending lists every option with its value and what waits for the next start.
func (s *Server) lxcPending(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for key := range g.Config {
		keys[key] = true
	}
	for key := range g.Pending {
		keys[key] = true
	}
	out := []map[string]any{{"key": "digest", "value": g.digest()}}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		entry := map[string]any{"key": key}
		if value, ok := g.Config[key]; ok {
			entry["value"] = lxcValue(key, value)
		}
		if value, ok := g.Pending[key]; ok {
			entry["pending"] = lxcValue(key, value)
		}
		if g.PendingDelete[key] {
			entry["delete"] = 1
		}
		out = append(out, entry)
	}
	return out, nil
}
