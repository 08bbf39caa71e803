package pve

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// listAge is how long a list is used when nothing is written meanwhile. It
// covers the refresh of a large fleet; a run that waits longer asks again.
const listAge = time.Minute

// Lists holds the lists that all readers of a run share. The first reader asks
// the server and the others wait for its answer; every write of the client, and
// every task that it has waited for, drops them. A list that failed is an error
// for those who waited, and is asked for again by the next. No list proves that
// a guest is gone: the server hides what the identity may not see, and a node
// that is away has none.
type Lists struct {
	client *Client
	mu     sync.Mutex
	flight map[string]*sharedList
}

type sharedList struct {
	done   chan struct{}
	epoch  uint64
	asked  time.Time
	value  any
	err    error
	failed bool
}

func newLists(c *Client) *Lists { return &Lists{client: c, flight: map[string]*sharedList{}} }

// Drop forgets all lists, for changes that the client doesn't make itself.
func (l *Lists) Drop() { l.client.writes.Add(1) }

// Resources returns the cluster's list of everything. An answer that names no
// node is an error: a cluster has at least the node that answers.
func (l *Lists) Resources(ctx context.Context) ([]Resource, error) {
	return shared(ctx, l, "resources", func(ctx context.Context) ([]Resource, error) {
		list, err := l.client.ClusterResources(ctx, "")
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			if r.Type == "node" {
				return list, nil
			}
		}
		return nil, &AnswerError{Method: "GET", Path: "/cluster/resources", Err: fmt.Errorf("the list names no node: it is not complete")}
	})
}

// Recent is Resources for a reader that can do with a list as it was up to age ago,
// whatever was written since: one that only looks for what is there for longer, and
// is told by the server where the list is behind.
func (l *Lists) Recent(ctx context.Context, age time.Duration) ([]Resource, error) {
	l.mu.Lock()
	if s := l.flight["resources"]; s != nil && l.client.cfg.Clock.Now().Sub(s.asked) <= age {
		select {
		case <-s.done:
			if list, ok := s.value.([]Resource); ok && s.err == nil {
				l.mu.Unlock()
				return list, nil
			}
		default:
		}
	}
	l.mu.Unlock()
	return l.Resources(ctx)
}

// LXC returns the containers of a node, with their present status.
func (l *Lists) LXC(ctx context.Context, node string) ([]LXCEntry, error) {
	return shared(ctx, l, "lxc "+node, func(ctx context.Context) ([]LXCEntry, error) {
		list, err := l.client.LXCList(ctx, node)
		if err == nil && list == nil {
			err = &AnswerError{Method: "GET", Path: nodePath(node) + "/lxc", Err: fmt.Errorf("a list was expected, got nothing")}
		}
		return list, err
	})
}

// Snapshots returns the snapshots of a container: one request, however many of
// them are looked at in a refresh.
func (l *Lists) Snapshots(ctx context.Context, node string, vmid int) (Snapshots, error) {
	return shared(ctx, l, fmt.Sprintf("snapshots %s %d", node, vmid), func(ctx context.Context) (Snapshots, error) {
		return l.client.Snapshots(ctx, node, vmid)
	})
}

// Fleet is all guests that the identity may see.
type Fleet struct {
	// Guests by vmid; of a virtual machine only the Resource is set.
	Guests map[int]FleetGuest
	// Nodes are the cluster's, by name.
	Nodes map[string]Resource
	// Unreached says, by node, why its own list isn't in: the node is offline, or
	// the request failed. What is there is unknown, not gone.
	Unreached map[string]error
}

// FleetGuest is a guest as both lists have it.
type FleetGuest struct {
	VMID int
	Node string
	// Resource is the cluster's entry, up to 10 s old; nil for a guest that only
	// its node lists so far.
	Resource *Resource
	// LXC is the node's entry, of now; nil for a virtual machine, and while the
	// node is unreached.
	LXC *LXCEntry
}

// Complete reports whether every node's list is in.
func (f Fleet) Complete() bool { return len(f.Unreached) == 0 }

// Fleet joins the cluster's list with the list of each online node. A node that
// fails is in Unreached and fails nothing else; only without the cluster's list,
// or when ctx ends, is there an error. Like the lists it is shared by all readers
// of a run, which don't change it: joining thousands of guests for each of a
// thousand readers would cost more than all their requests.
func (l *Lists) Fleet(ctx context.Context) (Fleet, error) {
	fleet, err := shared(ctx, l, "fleet", l.joined)
	if err == nil && !fleet.Complete() {
		l.forget("fleet") // a node that failed is asked again by the next reader
	}
	return fleet, err
}

// forget drops what is kept under a name.
func (l *Lists) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.flight, name)
}

func (l *Lists) joined(ctx context.Context) (Fleet, error) {
	resources, err := l.Resources(ctx)
	if err != nil {
		return Fleet{}, err
	}
	fleet := Fleet{Guests: map[int]FleetGuest{}, Nodes: map[string]Resource{}, Unreached: map[string]error{}}
	for i := range resources {
		r := &resources[i]
		switch {
		case r.Type == "node":
			fleet.Nodes[r.Node] = *r
		case r.IsGuest() && r.VMID > 0:
			fleet.Guests[r.VMID] = FleetGuest{VMID: r.VMID, Node: r.Node, Resource: r}
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for name, node := range fleet.Nodes {
		if node.Status == "offline" {
			fleet.Unreached[name] = fmt.Errorf("pve: node %s is offline", name)
			continue
		}
		wg.Go(func() {
			list, err := l.LXC(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				fleet.Unreached[name] = err
				return
			}
			fleet.join(name, list)
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return Fleet{}, err
	}
	return fleet, nil
}

// join adds a node's list: it is fresher than the cluster's, also about where a
// container is.
func (f Fleet) join(node string, list []LXCEntry) {
	for i := range list {
		guest := f.Guests[list[i].VMID]
		guest.VMID, guest.Node, guest.LXC = list[i].VMID, node, &list[i]
		f.Guests[guest.VMID] = guest
	}
}

// shared returns the list of that name: the one at hand, the one under way, or a
// new one. The request goes on when the reader that began it gives up, for the
// others.
func shared[T any](ctx context.Context, l *Lists, name string, fetch func(context.Context) (T, error)) (T, error) {
	var zero T
	l.mu.Lock()
	epoch := l.client.writes.Load()
	now := l.client.cfg.Clock.Now()
	s := l.flight[name]
	if s == nil || s.failed || s.epoch != epoch || now.Sub(s.asked) > listAge {
		s = &sharedList{done: make(chan struct{}), epoch: epoch, asked: now}
		l.flight[name] = s
		go func() {
			value, err := fetch(context.WithoutCancel(ctx))
			l.mu.Lock()
			s.value, s.err, s.failed = value, err, err != nil
			l.mu.Unlock()
			close(s.done)
		}()
	}
	l.mu.Unlock()
	select {
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	case <-s.done:
	}
	if s.err != nil {
		return zero, s.err
	}
	value, ok := s.value.(T)
	if !ok {
		return zero, fmt.Errorf("pve: the shared list %q holds a %T", name, s.value)
	}
	return value, nil
}
