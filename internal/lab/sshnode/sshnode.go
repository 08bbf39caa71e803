// Package sshnode is the lab's one SSH server on the loopback: a jump host that knows the way to the guests. It only
// forwards (direct-tcpip), as a Proxmox node does for a user whose bridge is private; it has no shell.
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

	mu    sync.Mutex
	keys  []ssh.PublicKey
	conns map[net.Conn]bool
}

// Start listens. Close ends it.
func Start(o Options) (*Node, error) {
	n := &Node{dial: o.Dial, key: o.HostKey, conns: map[net.Conn]bool{}}
	for _, line := range o.AuthorizedKeys {
		if err := n.Authorize(line); err != nil {
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

// Authorize lets a key in: a line of authorized_keys(5).
func (n *Node) Authorize(line string) error {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return fmt.Errorf("authorized key for the lab's SSH node: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.keys = append(n.keys, key)
	return nil
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

func (n *Node) authorized(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range n.keys {
		if bytes.Equal(k.Marshal(), key.Marshal()) {
			return nil, nil
		}
	}
	return nil, fmt.Errorf("%s is not authorized at the lab's SSH node", ssh.FingerprintSHA256(key))
}

func (n *Node) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	config := &ssh.ServerConfig{PublicKeyCallback: n.authorized, ServerVersion: "SSH-2.0-SandboxLab"}
	config.AddHostKey(n.key)
	conn, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	var open sync.WaitGroup
	for ch := range channels {
		if ch.ChannelType() != "direct-tcpip" {
			_ = ch.Reject(ssh.Prohibited, "this is the lab's SSH node: it forwards to guests and has no shell")
			continue
		}
		open.Go(func() { n.forward(ch) })
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
	Splice(channel, guest)
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
