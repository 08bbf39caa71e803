package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// inEngine does something with the guests, without the state lock, which the caller holds. In a lab without an engine
// it does nothing.
func (s *Server) inEngine(ctx context.Context, do func(ctx context.Context, e engine.Engine) error) error {
	if s.engine == nil {
		return nil
	}
	var err error
	s.unlocked(func() { err = do(ctx, s.engine) })
	return err
}

// engineConfig is what a guest gets of its configuration.
func engineConfig(g *guest) engine.Config {
	number := func(key string) int64 {
		n, _ := strconv.ParseInt(g.Config[key], 10, 64)
		return n
	}
	cpu, _ := strconv.ParseFloat(g.Config["cpulimit"], 64)
	cfg := engine.Config{
		Hostname:   g.name(),
		DNSServers: strings.Fields(g.Config["nameserver"]),
		DNSDomain:  firstWord(g.Config["searchdomain"]),
		Limits: engine.Limits{
			Cores: int(number("cores")), CPU: cpu,
			MemoryBytes: g.megabytes("memory", 512), SwapBytes: number("swap") << 20,
		},
	}
	named := map[string]bool{}
	for _, key := range optionsOf(g.Config, "net") {
		net := parseNet(g.Config[key])
		if named[net["name"]] { // accepted by the server; in the guest only one can have the name
			continue
		}
		named[net["name"]] = true
		cfg.NICs = append(cfg.NICs, engine.NIC{
			Name: net["name"], Bridge: net["bridge"], MAC: net["hwaddr"],
			IPv4: withoutManual(net["ip"]), IPv6: withoutManual(net["ip6"]),
			Gateway4: net["gw"], Gateway6: net["gw6"], LinkDown: net["link_down"] == "1",
		})
	}
	return cfg
}

func withoutManual(address string) string {
	if address == "manual" {
		return ""
	}
	return address
}

func firstWord(text string) string {
	if words := strings.Fields(text); len(words) > 0 {
		return words[0]
	}
	return ""
}

// configureGuest gives a guest its present configuration: at its start, and when it is changed while it runs.
func (s *Server) configureGuest(ctx context.Context, g *guest) error {
	cfg, vmid := engineConfig(g), g.VMID
	return s.inEngine(ctx, func(ctx context.Context, e engine.Engine) error { return e.Configure(ctx, vmid, cfg) })
}

// mountsOf are a container's extra volumes by the engine's name for them, which is the volume's id.
func mountsOf(config map[string]string) map[string]engine.Mount {
	mounts := map[string]engine.Mount{}
	for _, key := range optionsOf(config, "mp") {
		if m := parseMount(key, config[key]); m.kind() == "volume" {
			path := m.values["mp"]
			if !strings.HasPrefix(path, "/") {
				path = "/" + path
			}
			mounts[m.volid()] = engine.Mount{Path: path, ReadOnly: m.values["ro"] == "1"}
		}
	}
	return mounts
}

// mountGuest makes the guest's attached volumes those of its configuration.
func (s *Server) mountGuest(ctx context.Context, g *guest) error {
	want, vmid := mountsOf(g.Config), g.VMID
	sizes := map[string]int64{}
	for volid := range want {
		if v := s.volumeOn(g.Node, volid); v != nil {
			sizes[volid] = v.Size
		}
	}
	return s.inEngine(ctx, func(ctx context.Context, e engine.Engine) error {
		status, err := e.Inspect(ctx, vmid)
		if err != nil {
			return err
		}
		for volid, mount := range status.Volumes {
			if want[volid] != mount {
				if err := e.DetachVolume(ctx, vmid, volid); err != nil {
					return err
				}
			} else {
				delete(want, volid)
			}
		}
		for volid, mount := range want {
			err := e.AttachVolume(ctx, vmid, volid, mount)
			if errors.Is(err, engine.ErrNotFound) {
				// A volume that was made before it was a mount point (a former root, an unused one).
				if err = e.AllocVolume(ctx, volid, sizes[volid]); err == nil {
					err = e.AttachVolume(ctx, vmid, volid, mount)
				}
			}
			// Two mount points at one path are accepted by the server; the later one hides the earlier.
			if err != nil && !errors.Is(err, engine.ErrInUse) {
				return fmt.Errorf("mounting '%s': %w", volid, err)
			}
		}
		return nil
	})
}

// destroyVolumeInEngine removes what the guests' side has of a volume. A volume that it never had is no error.
func (s *Server) destroyVolumeInEngine(ctx context.Context, volid string) error {
	return s.inEngine(ctx, func(ctx context.Context, e engine.Engine) error {
		if err := e.DestroyVolume(ctx, volid); err != nil && !errors.Is(err, engine.ErrNotFound) {
			return err
		}
		return nil
	})
}
