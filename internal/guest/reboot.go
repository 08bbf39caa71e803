package guest

import "context"

// BootID reads the guest's boot id, a UUID that is new after each start (LXC
// gives each container its own).
func (p *Pool) BootID(ctx context.Context, target Target) (string, error) { panic("todo") }

// WaitReboot waits until the guest is up again with another boot id than old,
// by a machine of two states: down seen (or another boot id), then up. The
// error says how far it got. It is bounded by ctx alone.
func (p *Pool) WaitReboot(ctx context.Context, target Target, old string) (Ready, error) {
	panic("todo")
}
