package sim

import (
	"bytes"
	"fmt"
	"net"
	"path"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sshnode"
)

const (
	sshVersion = "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u7"
	// maxSessions is sshd's default MaxSessions: clients that open more channels on one connection are refused.
	maxSessions = 10
)

// sshServer is a machine's sshd. It has no goroutine while nobody is connected.
type sshServer struct {
	engine  *Engine
	machine *machine.Machine
	opensAt time.Time // on the lab's clock
}

// accept serves a connection; false (connection refused) before the boot is over and while the unit is stopped.
func (s *sshServer) accept(c net.Conn) bool {
	if s.engine.clock.Now().Before(s.opensAt) {
		return false
	}
	if active, _ := s.machine.Unit("ssh.service"); !active {
		return false
	}
	go s.serve(c)
	return true
}

func (s *sshServer) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	key, err := s.hostKey()
	if err != nil {
		s.engine.log.Warn("simulated sshd has no usable host key", "error", err)
		return
	}
	config := &ssh.ServerConfig{ServerVersion: sshVersion, PublicKeyCallback: s.authenticate}
	config.AddHostKey(key)
	conn, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return
	}
	user, ok := s.machine.User(conn.User())
	if !ok {
		return
	}
	go s.globalRequests(conn, requests)
	var (
		mu   sync.Mutex
		open int
	)
	for ch := range channels {
		switch ch.ChannelType() {
		case "session":
			mu.Lock()
			full := open >= maxSessions
			if !full {
				open++
			}
			mu.Unlock()
			if full {
				_ = ch.Reject(ssh.ConnectionFailed, "open failed")
				continue
			}
			go func() {
				s.session(conn, user, ch)
				mu.Lock()
				open--
				mu.Unlock()
			}()
		case "direct-tcpip":
			go s.forward(ch)
		default:
			_ = ch.Reject(ssh.UnknownChannelType, "unknown channel type")
		}
	}
}

func (s *sshServer) hostKey() (ssh.Signer, error) {
	b, err := s.machine.FS.ReadFile(vfs.Root, hostKeyFile)
	if err != nil {
		return nil, err
	}
	return ssh.ParsePrivateKey(b)
}

// authenticate checks a key against the user's authorized_keys, with sshd's StrictModes: a file or a directory on the
// way that others may write isn't trusted.
func (s *sshServer) authenticate(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	denied := fmt.Errorf("key %s of user %s is not authorized", ssh.FingerprintSHA256(key), c.User())
	user, ok := s.machine.User(c.User())
	if !ok {
		return nil, denied
	}
	file := path.Join(user.Home, ".ssh/authorized_keys")
	for _, name := range []string{user.Home, path.Dir(file), file} {
		in, err := s.machine.FS.Stat(vfs.Root, name)
		if err != nil {
			return nil, denied
		}
		if uid, _ := in.Owner(); uid != 0 && uid != user.UID || in.Mode()&0o022 != 0 {
			return nil, fmt.Errorf("%w: bad ownership or modes for %s", denied, name)
		}
	}
	b, err := s.machine.FS.ReadFile(vfs.Cred{UID: user.UID, GID: user.GID}, file)
	if err != nil {
		return nil, denied
	}
	for line := range bytes.Lines(b) {
		allowed, _, _, _, err := ssh.ParseAuthorizedKey(line)
		if err == nil && bytes.Equal(allowed.Marshal(), key.Marshal()) {
			return nil, nil
		}
	}
	return nil, denied
}

// forward connects a direct-tcpip channel from inside the guest.
func (s *sshServer) forward(ch ssh.NewChannel) {
	address, err := sshnode.Target(ch.ExtraData())
	if err == nil {
		var conn net.Conn
		if conn, err = s.machine.Network.Dial(s.machine.Down, address); err == nil {
			channel, requests, err := ch.Accept()
			if err != nil {
				_ = conn.Close()
				return
			}
			go ssh.DiscardRequests(requests)
			sshnode.Splice(channel, conn)
			return
		}
	}
	_ = ch.Reject(ssh.ConnectionFailed, sshnode.Reason(err))
}
