// Package sshnode is the lab's one SSH server on the loopback: a jump host that knows the way to the guests
// (direct-tcpip), as a Proxmox node is for a user whose bridge is private. Root, and keys with a forced command, can run
// commands on the node; nobody else has a shell.
package sshnode

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// Options say how the node is reached and where it leads.
type Options struct {
	// Dial connects to a guest's address, "10.77.0.11:22".
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// AuthorizedKeys are lines in the format of authorized_keys(5). Any user name is accepted with them.
	AuthorizedKeys []string
	// Exec runs a command line on the node as a user; nil has no shell for anybody.
	Exec func(ctx context.Context, user, line string, env []string, stdin io.Reader, stdout, stderr io.Writer) (int, error)
	// Listen is the address to listen on; empty means 127.0.0.1 and a free port.
	Listen string
	// HostKey is the node's key; nil makes a new one.
	HostKey ssh.Signer
}

// Node is a running SSH node.
type Node struct {
	dial     func(ctx context.Context, address string) (net.Conn, error)
	key      ssh.Signer
	listener net.Listener
	ctx      context.Context
	stop     context.CancelFunc
	work     sync.WaitGroup

	exec func(ctx context.Context, user, line string, env []string, stdin io.Reader, stdout, stderr io.Writer) (int, error)

	mu      sync.Mutex
	keys    []authorized
	conns   map[net.Conn]bool
	refused bool // see Refuse
	dropAt  int  // see Drop
}

// authorized is a key that may log in.
type authorized struct {
	key        ssh.PublicKey
	user       string // "" is any
	command    string // forced
	restricted bool   // no forwarding
}

// Start listens. Close ends it.
func Start(o Options) (*Node, error) {
	n := &Node{dial: o.Dial, exec: o.Exec, key: o.HostKey, conns: map[net.Conn]bool{}}
	for _, line := range o.AuthorizedKeys {
		if err := n.Authorize("", line); err != nil {
			return nil, err
		}
	}
	if n.key == nil {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		if n.key, err = ssh.NewSignerFromKey(private); err != nil {
			return nil, err
		}
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("the lab's SSH node can't listen: %w", err)
	}
	n.listener = l
	n.ctx, n.stop = context.WithCancel(context.Background())
	n.work.Go(n.accept)
	return n, nil
}

// Address is where the node listens, "127.0.0.1:40123".
func (n *Node) Address() string { return n.listener.Addr().String() }

// HostKey is the key that the node shows.
func (n *Node) HostKey() ssh.PublicKey { return n.key.PublicKey() }

// Authorize lets a key in, as one user or as any (""): a line of authorized_keys(5), whose options command, restrict and
// port-forwarding count.
func (n *Node) Authorize(user, line string) error {
	key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return fmt.Errorf("authorized key for the lab's SSH node: %w", err)
	}
	a := authorized{key: key, user: user}
	for _, option := range options {
		if command, ok := strings.CutPrefix(option, "command="); ok {
			a.command = strings.ReplaceAll(strings.Trim(command, `"`), `\"`, `"`)
		}
		a.restricted = (a.restricted || option == "restrict" || option == "no-port-forwarding") && option != "port-forwarding"
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.keys = append([]authorized{a}, n.keys...) // the latest counts
	return nil
}

// Refuse has the node take no connections, or take them again; those that are open are cut.
func (n *Node) Refuse(refuse bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refused = refuse
	if refuse {
		for c := range n.conns {
			_ = c.Close()
		}
	}
}

// DropAt cuts the connection at the nth command from now: it is done, and its answer lost.
func (n *Node) DropAt(nth int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dropAt = nth
}

// Close ends all connections and waits for them.
func (n *Node) Close() error {
	n.stop()
	err := n.listener.Close()
	n.mu.Lock()
	for c := range n.conns {
		_ = c.Close()
	}
	n.mu.Unlock()
	n.work.Wait()
	return err
}

func (n *Node) accept() {
	for {
		c, err := n.listener.Accept()
		if err != nil {
			return
		}
		n.mu.Lock()
		n.conns[c] = true
		n.mu.Unlock()
		n.work.Go(func() {
			n.serve(c)
			n.mu.Lock()
			delete(n.conns, c)
			n.mu.Unlock()
		})
	}
}

func (n *Node) authenticate(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.keys {
		if bytes.Equal(a.key.Marshal(), key.Marshal()) && (a.user == "" || a.user == c.User()) {
			p := &ssh.Permissions{Extensions: map[string]string{}}
			if a.command != "" {
				p.Extensions[forcedCommand] = a.command
			}
			if a.restricted {
				p.Extensions[noForwarding] = "yes"
			}
			return p, nil
		}
	}
	return nil, fmt.Errorf("%s is not authorized at the lab's SSH node", ssh.FingerprintSHA256(key))
}

// What a key may do, in the permissions of its connection.
const (
	forcedCommand = "forced-command"
	noForwarding  = "no-forwarding"
)

func (n *Node) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	n.mu.Lock()
	refused := n.refused
	n.mu.Unlock()
	if refused {
		return
	}
	config := &ssh.ServerConfig{PublicKeyCallback: n.authenticate, ServerVersion: "SSH-2.0-SandboxLab"}
	config.AddHostKey(n.key)
	conn, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	var open sync.WaitGroup
	for ch := range channels {
		forced := conn.Permissions.Extensions[forcedCommand]
		switch {
		case ch.ChannelType() == "direct-tcpip" && conn.Permissions.Extensions[noForwarding] == "":
			open.Go(func() { n.forward(ch) })
		case ch.ChannelType() == "session" && n.exec != nil && (forced != "" || conn.User() == "root"):
			open.Go(func() { n.session(conn, ch, forced) })
		default:
			_ = ch.Reject(ssh.Prohibited, "this is the lab's SSH node: it forwards to guests, and only root has a shell")
		}
	}
	_ = conn.Close()
	open.Wait()
}

// Target reads the address out of a direct-tcpip request (RFC 4254, section 7.2).
func Target(b []byte) (string, error) {
	if len(b) < 4 {
		return "", errors.New("malformed forwarding request")
	}
	size := binary.BigEndian.Uint32(b)
	b = b[4:]
	if uint64(len(b)) < uint64(size)+4 {
		return "", errors.New("malformed forwarding request")
	}
	host, port := string(b[:size]), binary.BigEndian.Uint32(b[size:])
	return net.JoinHostPort(host, strconv.FormatUint(uint64(port), 10)), nil
}

func (n *Node) forward(ch ssh.NewChannel) {
	address, err := Target(ch.ExtraData())
	if err != nil {
		_ = ch.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	guest, err := n.dial(n.ctx, address)
	if err != nil {
		_ = ch.Reject(ssh.ConnectionFailed, Reason(err))
		return
	}
	channel, requests, err := ch.Accept()
	if err != nil {
		_ = guest.Close()
		return
	}
	go ssh.DiscardRequests(requests)
	// A guest whose link is down never says that it has ended.
	defer context.AfterFunc(n.ctx, func() { _ = guest.Close() })()
	Splice(channel, guest)
}

// SpliceConns is Splice for two connections.
func SpliceConns(a, b net.Conn) {
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, err := io.Copy(pair[0], pair[1])
			if half, ok := pair[0].(interface{ CloseWrite() error }); ok && err == nil {
				_ = half.CloseWrite()
				return
			}
			_ = pair[0].Close()
		})
	}
	both.Wait()
	_ = a.Close()
	_ = b.Close()
}

// Splice copies in both directions, passing on the end of each, and closes both when both have ended.
func Splice(channel ssh.Channel, conn net.Conn) {
	var both sync.WaitGroup
	both.Go(func() {
		_, err := io.Copy(conn, channel)
		if half, ok := conn.(interface{ CloseWrite() error }); ok && err == nil {
			_ = half.CloseWrite()
			return
		}
		_ = conn.Close()
	})
	both.Go(func() {
		if _, err := io.Copy(channel, conn); err != nil {
			_ = channel.Close()
			return
		}
		_ = channel.CloseWrite()
	})
	both.Wait()
	_ = channel.Close()
	_ = conn.Close()
}

// Reason is the text that OpenSSH gives for a connection that can't be made.
func Reason(err error) string {
	for _, known := range []syscall.Errno{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ETIMEDOUT} {
		if errors.Is(err, known) {
			s := known.Error()
			return strings.ToUpper(s[:1]) + s[1:]
		}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return "Connection timed out"
	}
	return err.Error()
}
