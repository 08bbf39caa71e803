package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/placement"
)

// Clock gives the time and waits, by the context too. The system's is used
// unless a test hands in another one.
type Clock = pve.Clock

// systemClock is the real time.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// SystemClock is the real time.
func SystemClock() Clock { return systemClock{} }

// Options are what comes in from outside: time, randomness and where to log.
type Options struct {
	Clock Clock
	// NewClaim makes a claim of ClaimLength characters; nil draws 128 random
	// bits.
	NewClaim func() string
	// Jitter gives a number in [0, 1); nil uses math/rand.
	Jitter func() float64
	// Lookup finds the addresses of a domain; nil asks the system's resolver.
	Lookup func(ctx context.Context, domain string) ([]netip.Addr, error)
	// Logger gets what the domain decides; never a secret. nil discards.
	Logger *slog.Logger
	// ProofPatience is how long what a network mode forbids may still be reached
	// from inside after its rules have had their time; 0 means
	// DefaultProofPatience.
	ProofPatience time.Duration
	// AuditPatience is how long an audit waits for the inside of a container, which
	// may be hostile and never answer; 0 means DefaultAuditPatience.
	AuditPatience time.Duration
}

func newClaim() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// Manager runs the life of sandboxes on one Proxmox VE endpoint. It is safe
// for concurrent use; one process needs one Manager per endpoint, because the
// queue of clones and the ids that are taken live in it.
type Manager struct {
	pve      *pve.Client
	guests   *guest.Pool
	node     *nodeShell // nil where node_ssh isn't configured
	settings Settings
	clock    Clock
	newClaim func() string
	jitter   func() float64
	lookup   func(ctx context.Context, domain string) ([]netip.Addr, error)
	log      *slog.Logger
	// firewall is held while the datacenter's firewall file is written: the
	// server locks it as a whole, and makes others wait for seconds.
	firewall sync.Mutex

	ids       *idPool
	queues    *queues
	templates *templateCache
	bridges   *bridgeCache

	surroundings  *surroundings
	proofPatience time.Duration
	auditPatience time.Duration

	// known holds the claims that a caller has shown to hold: such a container
	// is never taken for one that a dead process left behind.
	known sync.Map
	// settled holds the ids of guests that were seen complete: none of them is
	// a leftover of a creation.
	settled sync.Map
	// nodes holds, by id, the node where one of our guests was seen last: a hint
	// that spares the cluster's list.
	nodes sync.Map
	// checked holds, by id, the configuration that a check at plan has just read,
	// and storageTypes, by node and name, the kinds of storages that lists said.
	checked, storageTypes sync.Map
	// unguarded holds the networks whose way to their node has been warned about.
	unguarded sync.Map
	// runs counts the commands under way, by id.
	runs runs
	// placing is held while pools choose nodes: each must know of those before.
	// reserved is what they have chosen and not made yet, by node; shapes, by id,
	// what was made in this run, which lists show without its size at first.
	placing  sync.Mutex
	reserved map[string]placement.Use
	shapes   sync.Map
	// paces are how long tasks of a kind take.
	paces paces
	// claiming holds the ids of members that a claim of this process is trying.
	claiming sync.Map
	// exposing lets one exposure at a time be made on a node; exposed are those
	// that were made here.
	exposing nodeLocks
	exposed  names
}

// NewManager makes a manager. It sends no request. Settings that contradict
// themselves are reported by Settings.Check, not here.
func NewManager(client *pve.Client, settings Settings, options Options) (*Manager, error) {
	if client == nil {
		return nil, errors.New("sandbox: no client")
	}
	guests, err := guest.NewPool(settings.Guest)
	if err != nil {
		return nil, err
	}
	node, err := newNodeShell(settings.Node)
	if err != nil {
		return nil, err
	}
	m := &Manager{
		pve: client, guests: guests, node: node, settings: settings.withDefaults(),
		clock: options.Clock, newClaim: options.NewClaim, jitter: options.Jitter, lookup: options.Lookup, log: options.Logger,
	}
	m.ids = newIDPool(m.settings.VMIDs)
	m.queues = newQueues()
	m.reserved = map[string]placement.Use{}
	if m.clock == nil {
		m.clock = systemClock{}
	}
	if m.newClaim == nil {
		m.newClaim = newClaim
	}
	if m.jitter == nil {
		m.jitter = mathrand.Float64
	}
	if m.lookup == nil {
		m.lookup = func(ctx context.Context, domain string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", domain)
		}
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	m.templates = newTemplateCache(client, m.clock)
	m.bridges = newBridgeCache(client)
	m.surroundings = newSurroundings(client)
	m.auditPatience = cmp.Or(options.AuditPatience, DefaultAuditPatience)
	if m.proofPatience = options.ProofPatience; m.proofPatience == 0 {
		m.proofPatience = DefaultProofPatience
	}
	return m, nil
}
