package lab

import (
	"fmt"
	"net/netip"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim"
)

// The engines that a lab's guests can be of.
const (
	// EngineSim simulates guests in this process. It runs everywhere and needs no privilege.
	EngineSim = "sim"
	// EngineNS makes real Linux containers; CheckEngine says whether this machine can.
	EngineNS = "ns"
)

// CheckEngine says why this machine can't run an engine, nil if it can.
func CheckEngine(name string) error {
	switch name {
	case "", EngineSim:
		return nil
	case EngineNS:
		return ns.Check()
	}
	return fmt.Errorf("engine %q: choose %q or %q", name, EngineSim, EngineNS)
}

func newEngine(o Options, clock engine.Clock) (engine.Engine, error) {
	dhcp := map[string]netip.Prefix{Bridge: leased}
	switch o.EngineName {
	case "", EngineSim:
		return sim.New(sim.Options{Folder: subfolder(o.Dir, "guests"), Clock: clock, SharedHostKeys: o.SharedHostKeys, Log: o.Log, DHCP: dhcp})
	case EngineNS:
		return ns.New(ns.Options{Folder: subfolder(o.Dir, "containers"), Clock: clock, SharedHostKeys: o.SharedHostKeys, Log: o.Log, DHCP: dhcp, Outside: o.Outside, Image: o.Image})
	}
	return nil, CheckEngine(o.EngineName)
}
