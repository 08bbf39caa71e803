package pve

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
)

// LXCEntry is a container of a node's list. Its status is the present one, other
// than that of [Client.ClusterResources].
type LXCEntry struct {
	VMID int    `pve:"vmid,must"`
	Name string `pve:"name"`
	// Status is "running" or "stopped".
	Status   string `pve:"status"`
	Template bool   `pve:"template"`
	Lock     string `pve:"lock"`
	// Tags is the server's text, joined by ";".
	Tags string `pve:"tags"`
	// Uptime is in seconds, 0 when stopped.
	Uptime int64 `pve:"uptime"`
	// CPUs is the limit or number of cores; a fraction where cpulimit is one.
	CPUs float64 `pve:"cpus"`
	// Mem, MaxMem, Disk, MaxDisk and MaxSwap are in bytes.
	Mem     int64 `pve:"mem"`
	MaxMem  int64 `pve:"maxmem"`
	MaxSwap int64 `pve:"maxswap"`
	Disk    int64 `pve:"disk"`
	MaxDisk int64 `pve:"maxdisk"`
	Extra   Extra
}

// TagList returns the tags one by one.
func (e LXCEntry) TagList() []string { return splitTags(e.Tags) }

// Running reports whether the container runs.
func (e LXCEntry) Running() bool { return e.Status == "running" }

// LXCList lists the containers of a node that the identity may see (VM.Audit):
// one that is missing may be hidden, so absence here proves nothing.
func (c *Client) LXCList(ctx context.Context, node string) ([]LXCEntry, error) {
	return getList[LXCEntry](ctx, c, nodePath(node)+"/lxc", nil)
}

// LXCStatus is the present state of a container.
type LXCStatus struct {
	VMID int    `pve:"vmid,must"`
	Name string `pve:"name"`
	// Status is "running" or "stopped".
	Status   string `pve:"status,must"`
	Template bool   `pve:"template"`
	Lock     string `pve:"lock"`
	Tags     string `pve:"tags"`
	// Uptime is in seconds, 0 when stopped.
	Uptime int64   `pve:"uptime"`
	CPUs   float64 `pve:"cpus"`
	Mem    int64   `pve:"mem"`
	MaxMem int64   `pve:"maxmem"`
	// PID is that of the container's init on the node, 0 when stopped.
	PID int64 `pve:"pid"`
	// HA is set where the high-availability manager has it.
	HA    HAState `pve:"ha"`
	Extra Extra
}

// Running reports whether the container runs.
func (s LXCStatus) Running() bool { return s.Status == "running" }

// HAState is what the high-availability manager says of a guest.
type HAState struct {
	Managed bool   `pve:"managed"`
	State   string `pve:"state"`
	Group   string `pve:"group"`
	Extra   Extra
}

// UnmarshalJSON takes the server's 0 and 1.
func (h *HAState) UnmarshalJSON(data []byte) error { return decodeObject(data, h) }

// LXCStatus returns the present state of a container. One that isn't on that
// node is an error that means NoSuchGuest.
func (c *Client) LXCStatus(ctx context.Context, node string, vmid int) (LXCStatus, error) {
	return getObject[LXCStatus](ctx, c, lxcPath(node, vmid)+"/status/current", nil)
}

// Interface is a network interface inside a running container.
type Interface struct {
	Name string
	// MAC is in lower case, whatever the configuration has.
	MAC string
	// Addresses are all of it, link-local ones included, as the server lists
	// them.
	Addresses []netip.Prefix
}

// LXCInterfaces returns the interfaces of a container, nil while it is stopped.
// The server answers nil, not an error, for one that doesn't exist.
func (c *Client) LXCInterfaces(ctx context.Context, node string, vmid int) ([]Interface, error) {
	wire, err := getList[wireInterface](ctx, c, lxcPath(node, vmid)+"/interfaces", nil)
	if err != nil || wire == nil {
		return nil, err
	}
	out := make([]Interface, 0, len(wire))
	for _, w := range wire {
		out = append(out, w.normalise())
	}
	return out, nil
}

// wireInterface holds both shapes: the list of addresses, and the older inet and
// inet6, of which each names one at most.
type wireInterface struct {
	Name            string        `pve:"name"`
	HardwareAddress string        `pve:"hardware-address"`
	HWAddr          string        `pve:"hwaddr"`
	Inet            string        `pve:"inet"`
	Inet6           string        `pve:"inet6"`
	Addresses       []wireAddress `pve:"ip-addresses"`
	Extra           Extra
}

type wireAddress struct {
	Address string `pve:"ip-address"`
	Type    string `pve:"ip-address-type"`
	Prefix  string `pve:"prefix"`
	Extra   Extra
}

func (a *wireAddress) UnmarshalJSON(data []byte) error { return decodeObject(data, a) }

func (w wireInterface) normalise() Interface {
	out := Interface{Name: w.Name, MAC: strings.ToLower(orDefault(w.HardwareAddress, w.HWAddr))}
	add := func(text string) {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, err := netip.ParseAddr(text)
			if err != nil {
				return
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		for _, have := range out.Addresses {
			if have.Addr() == prefix.Addr() {
				return
			}
		}
		out.Addresses = append(out.Addresses, prefix)
	}
	for _, a := range w.Addresses {
		if a.Prefix != "" {
			add(a.Address + "/" + a.Prefix)
		} else {
			add(a.Address)
		}
	}
	for _, old := range []string{w.Inet, w.Inet6} {
		if old != "" {
			add(old)
		}
	}
	return out
}

// PendingChange is a key whose value differs from what the container runs with.
type PendingChange struct {
	Key string `pve:"key,must"`
	// Value is what it runs with, nil where the key isn't set.
	Value *string `pve:"value"`
	// Pending is what it gets at its next start, nil where nothing is pending.
	Pending *string `pve:"pending"`
	// Delete says that the key is removed at the next start (2: by force).
	Delete int `pve:"delete"`
	Extra  Extra
}

// LXCPending returns the keys that wait for the container's next start; the
// server's list also has all others, which are left out.
func (c *Client) LXCPending(ctx context.Context, node string, vmid int) ([]PendingChange, error) {
	all, err := getList[PendingChange](ctx, c, lxcPath(node, vmid)+"/pending", nil)
	if err != nil {
		return nil, err
	}
	var pending []PendingChange
	for _, p := range all {
		if p.Pending != nil || p.Delete != 0 {
			pending = append(pending, p)
		}
	}
	return pending, nil
}

// LXCUpdate is a change of a container's configuration.
type LXCUpdate struct {
	// Set holds the keys to set, as the API's text; booleans by [Bool]. Percent
	// encoding is done here.
	Set map[string]string
	// Delete names the keys that get the server's default; one that isn't set is
	// no error.
	Delete []string
	// Digest refuses the change when the configuration has another (error that
	// means DigestMismatch). Empty asks for no check.
	Digest string
}

// Empty reports whether it changes nothing.
func (u LXCUpdate) Empty() bool { return len(u.Set) == 0 && len(u.Delete) == 0 }

// UpdateLXC changes a container's configuration. What a running container can't
// take at once becomes pending ([Client.LXCPending]). An empty update sends
// nothing: the server has an error for it.
func (c *Client) UpdateLXC(ctx context.Context, node string, vmid int, update LXCUpdate) error {
	if update.Empty() {
		return nil
	}
	p := params{}.with(update.Set)
	for _, key := range update.Delete {
		if _, both := p[key]; both {
			return fmt.Errorf("pve: update of container %d sets and deletes %q at once", vmid, key)
		}
	}
	p.setText("delete", joinKeys(update.Delete))
	p.setText("digest", update.Digest)
	return c.put(ctx, lxcPath(node, vmid)+"/config", p)
}
