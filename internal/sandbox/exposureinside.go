package sandbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// A hardened template has a filter of its own inside, that lets in SSH and nothing
// else, and a program by which root opens a port in it. See the guide "Hardening".
const (
	openPort     = "/usr/local/lib/sandbox/open-port"
	openedPort   = "/etc/sandbox/nftables.d/50-port-%d.nft"
	filterAnswer = 15 * time.Second
)

const tellFilter = `
[ -x "$1" ] || exit 0
if [ "$2" = add ] && [ -e "$4" ] || [ "$2" = remove ] && [ ! -e "$4" ]; then exit 0; fi
exec "$1" "$2" "$3"
`

// letIn opens or closes ("add", "remove") a port in the filter inside a container,
// where there is one. Who can't be asked isn't told: an exposure needs no login,
// and its state says whether something answers.
func (m *Manager) letIn(ctx context.Context, s Sandbox, hostKey, verb string, port int) error {
	if s.Status != StatusRunning || !s.address().IsValid() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, filterAnswer)
	defer cancel()
	res, err := m.guests.Exec(ctx, target(s.Ref, s, hostKey), guest.Command{
		Script: tellFilter, Args: []string{openPort, verb, strconv.Itoa(port), fmt.Sprintf(openedPort, port)},
	})
	if err != nil {
		m.log.InfoContext(ctx, "the filter inside could not be told", "vmid", s.VMID, "port", port, "cause", err)
		return nil
	}
	if res.ExitCode != 0 {
		return &Error{Op: "expose", Ref: s.Ref, What: fmt.Sprintf("open port %d in the filter inside it: %s", port, strings.TrimSpace(string(res.Stderr))), Kind: ErrWall,
			Remedy: fmt.Sprintf("log in as root (guest_ssh.username), or run \"%s add %d\" in the template", openPort, port)}
	}
	return nil
}
