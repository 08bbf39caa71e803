//go:build linux

package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
)

// filter is the lab's packet filter: the text of nftables' rules as the API's side made it, with this network's addresses
// defined in front.
type filter struct {
	rules string
	set   bool
}

// setRules replaces the rules, all at once.
func (s *Supervisor) setRules(ctx context.Context, text string) error {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	if err := s.network.load(ctx, text); err != nil {
		return err
	}
	s.network.filter = filter{rules: text, set: true}
	return nil
}

// renew loads the rules again after the node got another address.
func (n *network) renew() error {
	if !n.filter.set {
		return nil
	}
	return n.load(context.Background(), n.filter.rules)
}

func (n *network) load(ctx context.Context, text string) error {
	c := exec.CommandContext(ctx, "nft", "-f", "-")
	c.Stdin = strings.NewReader(n.definitions() + text)
	out, err := c.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("the packet filter needs nft (on Debian: apt-get install nftables): %w", err)
	}
	if err != nil {
		return fmt.Errorf("nft: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// definitions are the node's own addresses and networks, by the names that package nftrules refers to.
func (n *network) definitions() string {
	own4, own6, local4 := []string{"127.0.0.1"}, []string{"::1"}, []string{"127.0.0.0/8"}
	for _, name := range slices.Sorted(maps.Keys(n.bridges)) {
		b := n.bridges[name]
		own6 = append(own6, eui64(linkLocal, b.mac).Addr().String())
		for _, a := range slices.SortedFunc(maps.Keys(b.own), netip.Addr.Compare) {
			if a.Is4() {
				own4 = append(own4, a.String())
			} else {
				own6 = append(own6, a.String())
			}
		}
		if n.home[name] {
			local4 = append(local4, b.gateway4.Masked().String())
		}
	}
	var text strings.Builder
	for _, d := range []struct {
		name     string
		elements []string
	}{{"node4", own4}, {"node6", own6}, {"local4", local4}, {"local6", []string{"::1"}}} {
		fmt.Fprintf(&text, "define %s = { %s }\n", d.name, strings.Join(d.elements, ", "))
	}
	return text.String()
}

var linkLocal = netip.MustParsePrefix("fe80::/64")
