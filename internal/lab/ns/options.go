package ns

import (
	"log/slog"
	"net/netip"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// Options change how the engine behaves; the zero value is fine.
type Options struct {
	// Folder keeps the guests between runs. Empty: they are in a folder of the cache that goes with the engine.
	Folder string
	// Cache keeps base images. Empty: $SANDBOX_LAB_CACHE, else .cache/lab of the checkout that the working directory is in,
	// else sandbox-lab in the user's cache folder.
	Cache string
	// Image is what CreateRoot takes when it isn't told; empty is image.Default.
	Image string
	// Clock is the lab's time; nil is the machine's. Guests see the machine's.
	Clock engine.Clock
	// SharedHostKeys makes clones keep their source's SSH host keys, as careless templates do.
	SharedHostKeys bool
	// DHCP are the ranges of bridges that serve addresses; others get one of their own on first use. The node has the
	// first address of the /16 around a range.
	DHCP map[string]netip.Prefix
	// Outside puts the rest of the world behind the node: every address that the lab doesn't have answers, at ports 22, 25,
	// 53, 80, 443, 853, 8006 and 8080 of TCP and 53, 123 and 443 of UDP, and remembers who asked. Without it nothing leads out.
	Outside bool
	// Log is for what this machine can't do and what goes wrong inside; nil discards.
	Log *slog.Logger
}
