package sandbox

import (
	"context"
	"fmt"

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

// Exec runs a command in a sandbox whose marker is read back first. A command
// that ran is no error, whatever its exit code. An empty prior.SSHHostKey pins
// the key on first contact; the login says which it was.
func (m *Manager) Exec(ctx context.Context, prior Prior, cmd Command) (CommandResult, Login, error) {
	t, login, err := m.enter(ctx, prior)
	if err != nil {
		return CommandResult{}, login, err
	}
	result, err := m.guests.Exec(ctx, t, cmd)
	return result, login, err
}

// WriteFile writes a file so that readers see the old content or the new.
func (m *Manager) WriteFile(ctx context.Context, prior Prior, file File) (FileInfo, error) {
	t, _, err := m.enter(ctx, prior)
	if err != nil {
		return FileInfo{}, err
	}
	return m.guests.WriteFile(ctx, t, file)
}

// ReadFile reads a file of at most limit bytes. A missing file is
// fs.ErrNotExist.
func (m *Manager) ReadFile(ctx context.Context, prior Prior, path string, limit int64) ([]byte, error) {
	t, _, err := m.enter(ctx, prior)
	if err != nil {
		return nil, err
	}
	return m.guests.ReadFile(ctx, t, path, limit)
}

// StatFile looks at a file and, with hash, at its content. A missing file is
// fs.ErrNotExist.
func (m *Manager) StatFile(ctx context.Context, prior Prior, path string, hash bool) (FileInfo, error) {
	t, _, err := m.enter(ctx, prior)
	if err != nil {
		return FileInfo{}, err
	}
	return m.guests.Stat(ctx, t, path, hash)
}

// RemoveFile removes a file; a missing one is a success.
func (m *Manager) RemoveFile(ctx context.Context, prior Prior, path string) error {
	t, _, err := m.enter(ctx, prior)
	if err != nil {
		return err
	}
	return m.guests.Remove(ctx, t, path)
}

// enter proves that a sandbox is ours, runs and can be logged in to.
func (m *Manager) enter(ctx context.Context, prior Prior) (guest.Target, Login, error) {
	login := Login{Ref: prior.Ref, HostKey: prior.SSHHostKey}
	s, err := m.Read(ctx, prior)
	if err != nil {
		return guest.Target{}, login, err
	}
	login.Ref = s.Ref
	if s.Status != StatusRunning {
		return guest.Target{}, login, &Error{Op: "connect", Ref: s.Ref, Kind: ErrNotRunning, What: fmt.Sprintf("it is %s", s.Status), Remedy: "start it (started = true)"}
	}
	if !s.address().IsValid() {
		return guest.Target{}, login, &Error{Op: "connect", Ref: s.Ref, Kind: ErrNotReady, What: "it has no address yet"}
	}
	up, err := m.guests.WaitReady(ctx, target(s.Ref, s, prior.SSHHostKey))
	if err != nil {
		return guest.Target{}, login, &Error{Op: "connect", Ref: s.Ref, Kind: ErrNotReady, What: "log in over SSH", Err: err}
	}
	login.HostKey = up.HostKey
	return target(s.Ref, s, up.HostKey), login, nil
}

// Close ends what the manager holds open.
func (m *Manager) Close() error { return m.guests.Close() }
