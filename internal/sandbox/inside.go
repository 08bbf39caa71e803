package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// What happens inside a sandbox is the guest package's; the names are repeated
// here so that a caller of the domain needs no other package.
type (
	// Command is a command to run inside a sandbox.
	Command = guest.Command
	// CommandResult is how it ended.
	CommandResult = guest.Result
	// File is a file to be written.
	File = guest.File
	// FileInfo is what the guest says of a file.
	FileInfo = guest.FileInfo
)

// Login is the SSH side of a sandbox that was reached.
type Login struct {
	Ref
	HostKey string // authorized_keys format, to be kept
}

// The calls below prove first, by reading the marker back, that the guest is a
// sandbox of ours: of the claim in prior, or of any where that is empty (a
// caller that holds an id only). ErrNotRunning and ErrNotReady say why one
// can't be entered. An empty prior.SSHHostKey pins the key on first contact.

// Exec runs a command. It waits until the sandbox can be logged in to. A
// command that ran is no error, whatever its exit code. The login says which
// host key was seen.
func (m *Manager) Exec(ctx context.Context, prior Prior, cmd Command) (CommandResult, Login, error) {
	s, t, err := m.enter(ctx, prior)
	login := Login{Ref: s.Ref, HostKey: prior.SSHHostKey}
	if err != nil {
		login.Ref = prior.Ref
		return CommandResult{}, login, err
	}
	if login.HostKey, err = m.await(ctx, s, &t); err != nil {
		return CommandResult{}, login, err
	}
	defer m.runs.begin(s.VMID)()
	result, err := m.guests.Exec(ctx, t, cmd)
	return result, login, err
}

// WriteFile writes a file so that readers see the old content or the new. It
// waits until the sandbox can be logged in to.
func (m *Manager) WriteFile(ctx context.Context, prior Prior, file File) (FileInfo, error) {
	s, t, err := m.enter(ctx, prior)
	if err != nil {
		return FileInfo{}, err
	}
	if _, err := m.await(ctx, s, &t); err != nil {
		return FileInfo{}, err
	}
	return m.guests.WriteFile(ctx, t, file)
}

// ReadFile reads a file of at most limit bytes, and waits for nothing. A
// missing file is fs.ErrNotExist.
func (m *Manager) ReadFile(ctx context.Context, prior Prior, path string, limit int64) ([]byte, error) {
	s, t, err := m.enter(ctx, prior)
	if err != nil {
		return nil, err
	}
	content, err := m.guests.ReadFile(ctx, t, path, limit)
	return content, unreached(s.Ref, err)
}

// StatFile looks at a file and, with hash, at its content; it waits for
// nothing. A missing file is fs.ErrNotExist.
func (m *Manager) StatFile(ctx context.Context, prior Prior, path string, hash bool) (FileInfo, error) {
	s, t, err := m.enter(ctx, prior)
	if err != nil {
		return FileInfo{}, err
	}
	info, err := m.guests.Stat(ctx, t, path, hash)
	return info, unreached(s.Ref, err)
}

// RemoveFile removes a file; a missing one is a success. It waits for nothing.
func (m *Manager) RemoveFile(ctx context.Context, prior Prior, path string) error {
	s, t, err := m.enter(ctx, prior)
	if err != nil {
		return err
	}
	return unreached(s.Ref, m.guests.Remove(ctx, t, path))
}

// enter proves that a sandbox is ours and runs.
func (m *Manager) enter(ctx context.Context, prior Prior) (Sandbox, guest.Target, error) {
	prior.WithPending, prior.WithTemplate = false, false
	s, err := m.read(ctx, prior, true)
	switch {
	case err != nil:
		return Sandbox{}, guest.Target{}, err
	case s.Status != StatusRunning:
		return Sandbox{}, guest.Target{}, &Error{Op: "connect", Ref: s.Ref, Kind: ErrNotRunning, What: fmt.Sprintf("it is %s", s.Status), Remedy: "start it (started = true)"}
	case !s.address().IsValid():
		return Sandbox{}, guest.Target{}, &Error{Op: "connect", Ref: s.Ref, Kind: ErrNotReady, What: "it has no address yet"}
	}
	return s, target(s.Ref, s, prior.SSHHostKey), nil
}

// await waits until a sandbox can be logged in to, and pins its host key in t.
func (m *Manager) await(ctx context.Context, s Sandbox, t *guest.Target) (hostKey string, err error) {
	up, err := m.guests.WaitReady(ctx, *t)
	if err != nil {
		return t.HostKey, unreached(s.Ref, err)
	}
	t.HostKey = up.HostKey
	return up.HostKey, nil
}

// unreached says that a failure on the way to a guest is one; other errors
// (a file that isn't there) stay as they are.
func unreached(ref Ref, err error) error {
	var notReady *guest.NotReady
	var jump *guest.JumpError
	if errors.As(err, &notReady) || errors.As(err, &jump) {
		return &Error{Op: "connect", Ref: ref, Kind: ErrNotReady, What: "log in over SSH", Err: err}
	}
	return err
}

// Close ends what the manager holds open.
func (m *Manager) Close() error {
	if m.node != nil {
		_ = m.node.pool.Close()
	}
	return m.guests.Close()
}

// DialGuest connects to an address of a guest, over the jump host where there is one.
func (m *Manager) DialGuest(ctx context.Context, address string) (net.Conn, error) {
	return m.guests.DialGuest(ctx, address)
}
