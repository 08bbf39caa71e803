package lab

import (
	"context"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/nftrules"
)

// ruleTaker is an engine with a packet filter of nftables.
type ruleTaker interface {
	SetRules(ctx context.Context, text string) error
}

// filterLook is how often the lab looks whether the firewall service has compiled something new. The service has the
// real server's delay; this is on top of it.
const filterLook = 20 * time.Millisecond

// filterLoop hands what the firewall service compiles to the engine's packet filter, until ctx ends.
func (l *Lab) filterLoop(ctx context.Context, to ruleTaker, problem func(error)) {
	tick := time.NewTicker(filterLook)
	defer tick.Stop()
	loaded, refused := nftrules.Ruleset(nil), ""
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		round := l.server.FirewallRounds()
		text := nftrules.Ruleset(l.server.FirewallInForce())
		if text == loaded || text == refused {
			l.rounds.Store(round)
			continue
		}
		if err := to.SetRules(ctx, text); err != nil {
			if ctx.Err() == nil {
				refused = text
				problem(err)
			}
			continue
		}
		loaded, refused = text, ""
		l.rounds.Store(round)
	}
}
