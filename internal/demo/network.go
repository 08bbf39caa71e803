package demo

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// tryNetwork tries addresses from inside a sandbox whose network mode is the default. In the lab's outside every address
// answers, so what doesn't was stopped by the sandbox's firewall.
func (r *run) tryNetwork(ctx context.Context) ([]string, error) {
	pool, err := guest.NewPool(r.target.GuestAccess())
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	m := r.fleet[0]
	told := []string{fmt.Sprintf("%s is a container of this machine's kernel; its network mode is the default, nat", m.name)}
	for _, t := range []struct {
		what, address string
		port          int
		open          bool
	}{
		{"a public site", "93.184.215.14", 443, true},
		{"a home network", "192.168.1.10", 443, false},
		{"cloud metadata", "169.254.169.254", 80, false},
		{"its neighbour " + r.fleet[1].name, r.fleet[1].address, 22, false},
	} {
		script := fmt.Sprintf("timeout 3 bash -c ': <>/dev/tcp/%s/%d' 2>/dev/null", t.address, t.port)
		result, err := pool.Exec(ctx, guest.Target{ID: strconv.Itoa(m.vmid), Name: m.name, Address: m.address}, guest.Command{Script: script})
		if err != nil {
			return told, err
		}
		said := map[bool]string{true: "connected", false: "blocked"}
		told = append(told, fmt.Sprintf("  %-28s %s:%d %s %s", t.what, t.address, t.port, strings.Repeat(".", max(1, 18-len(t.address))), said[result.ExitCode == 0]))
		if open := result.ExitCode == 0; open != t.open {
			return told, fmt.Errorf("%s at %s, port %d: %s, should be %s", t.what, t.address, t.port, said[open], said[t.open])
		}
	}
	return told, nil
}
