package guest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// withSFTP opens an SFTP session for one operation. Each operation has its own:
// the protocol has no cancellation, so when ctx ends the session is closed
// under it, which must not hit another's.
//
// When it returns an error, do may still be running: its results are not to be
// read then.
func (p *Pool) withSFTP(ctx context.Context, target Target, do func(*sftp.Client) error) error {
	s, c, release, err := p.session(ctx, target)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		defer release()
		defer func() { _ = s.Close() }() // EOF when the guest closed it first
		ended <- serveSFTP(s, target, do)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	go func() { _ = s.Close() }()
	grace := time.NewTimer(p.cfg.Timing.KillGrace)
	defer grace.Stop()
	select {
	case <-ended: //nolint:errcheck // how it ended is our own doing
	case <-grace.C:
		c.close() // not even the end of the session is answered: it is dead
	}
	return fmt.Errorf("stopped while working on files in %s: %w", target, context.Cause(ctx))
}

func serveSFTP(s *ssh.Session, target Target, do func(*sftp.Client) error) error {
	in, err := s.StdinPipe()
	if err != nil {
		return err
	}
	out, err := s.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.RequestSubsystem("sftp"); err != nil {
		return noSFTP(target, err)
	}
	// Writes go to a temporary file only, where a hole left by a failed
	// concurrent write does no harm.
	client, err := sftp.NewClientPipe(out, in, sftp.UseConcurrentWrites(true))
	if err != nil {
		return noSFTP(target, err)
	}
	defer func() { _ = client.Close() }() // the session ends with it
	return do(client)
}

func noSFTP(target Target, err error) error {
	return fmt.Errorf("%s offers no SFTP (%w): the template needs openssh-sftp-server and the line \"Subsystem sftp …\" in sshd_config", target, err)
}

// pathError words a failed file operation, keeping fs.ErrNotExist and
// fs.ErrPermission recognisable.
func pathError(target Target, verb, name string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("unable to %s %s in %s: %w (the user who is logged in may not)", verb, name, target, err)
	}
	return fmt.Errorf("unable to %s %s in %s: %w", verb, name, target, err)
}

// checkPath refuses paths whose meaning would depend on where sshd starts.
func checkPath(name string) error {
	if !path.IsAbs(name) {
		return fmt.Errorf("path %q is not absolute", name)
	}
	if strings.ContainsRune(name, 0) {
		return fmt.Errorf("path %q holds a NUL byte", name)
	}
	return nil
}
