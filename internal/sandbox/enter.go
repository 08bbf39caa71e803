package sandbox

import (
	"context"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// Inside is a sandbox that was entered: its marker was read back, and it runs.
// It is how longer work in a sandbox, such as a run of an agent, gets at it
// without proving each step anew.
type Inside struct {
	Login
	manager *Manager
	target  guest.Target
}

// Inside enters a sandbox and waits until it can be logged in to. Errors are
// those of Exec.
func (m *Manager) Inside(ctx context.Context, prior Prior) (*Inside, error) {
	s, t, err := m.enter(ctx, prior)
	if err != nil {
		return nil, err
	}
	in := &Inside{Login: Login{Ref: s.Ref}, manager: m, target: t}
	if in.HostKey, err = m.await(ctx, s, &in.target); err != nil {
		return nil, err
	}
	return in, nil
}

// Peek enters a sandbox and waits for nothing: what can't be reached at once
// is ErrNotReady when it is used.
func (m *Manager) Peek(ctx context.Context, prior Prior) (*Inside, error) {
	s, t, err := m.enter(ctx, prior)
	if err != nil {
		return nil, err
	}
	return &Inside{Login: Login{Ref: s.Ref, HostKey: prior.SSHHostKey}, manager: m, target: t}, nil
}

// Exec runs a command in the sandbox, as guest.Pool does.
func (i *Inside) Exec(ctx context.Context, cmd Command) (CommandResult, error) {
	result, err := i.manager.guests.Exec(ctx, i.target, cmd)
	return result, unreached(i.Ref, err)
}

// Guests is the pool that reaches the sandbox, by Target.
func (i *Inside) Guests() *guest.Pool { return i.manager.guests }

// Target is where the sandbox is reached.
func (i *Inside) Target() guest.Target { return i.target }

// Begin notes that work is under way in the sandbox, so that it isn't rolled
// back meanwhile. The returned function must be called at its end.
func (i *Inside) Begin() (end func()) { return i.manager.runs.begin(i.VMID) }
