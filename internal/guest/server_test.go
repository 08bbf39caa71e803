package guest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// server is an SSH server in the test's process, with switches for everything
// that a guest can do wrong.
type server struct {
	t        testing.TB
	listener net.Listener
	wg       sync.WaitGroup

	// Set before the first connection.
	exec        func(cmd string, ch *execChannel)    // default: runShell
	sftp        func(ch ssh.Channel)                 // nil: no such subsystem
	forward     func(address string) (string, error) // nil: forwarding is prohibited
	maxSessions int32                                // 0: no limit
	noSignals   bool                                 // signal requests are dropped, as OpenSSH does for root
	authBanner  string

	mute     atomic.Bool  // answers no request and opens nothing, as a frozen guest
	trusted  atomic.Value // string: marshalled public key
	refusals atomic.Int32 // logins refused so far
	logins   atomic.Int32
	sessions atomic.Int32 // open now
	peak     atomic.Int32 // most sessions open at once
	commands atomic.Int32 // exec requests so far

	mu      sync.Mutex
	hostKey ssh.Signer
	conns   map[net.Conn]bool
}

func newSigner(t testing.TB) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// newKey makes a client key: its PEM and its public half.
func newKey(t testing.TB) (string, ssh.PublicKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "test")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block)), key
}

// startServer starts a server that trusts one key, after setting it up.
func startServer(t testing.TB, trusted ssh.PublicKey, setUp ...func(*server)) *server {
	t.Helper()
	s := &server{t: t, hostKey: newSigner(t), conns: map[net.Conn]bool{}}
	s.exec = runShell
	s.trust(trusted)
	for _, f := range setUp {
		f(s)
	}
	s.listen("127.0.0.1:0")
	t.Cleanup(s.stop)
	return s
}

func (s *server) trust(key ssh.PublicKey) { s.trusted.Store(string(key.Marshal())) }

func (s *server) listen(address string) {
	s.t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	s.listener = listener
	s.mu.Unlock()
	s.wg.Go(func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[raw] = true
			s.mu.Unlock()
			s.wg.Go(func() { s.serve(raw) })
		}
	})
}

// stop ends the server and every connection to it, as a guest's stop does.
func (s *server) stop() {
	s.mu.Lock()
	_ = s.listener.Close()
	s.mu.Unlock()
	s.cut()
	s.wg.Wait()
}

// cut breaks all connections that are open.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for raw := range s.conns {
		_ = raw.Close()
	}
}

func (s *server) newHostKey() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hostKey = newSigner(s.t)
}

func (s *server) address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listener.Addr().String()
}

// target names the server as a guest.
func (s *server) target(id string) Target {
	host, port, _ := net.SplitHostPort(s.address())
	n, _ := strconv.Atoi(port)
	return Target{ID: id, Name: "box" + id, Address: host, Port: n}
}

func (s *server) serve(raw net.Conn) {
	defer func() {
		_ = raw.Close()
		s.mu.Lock()
		delete(s.conns, raw)
		s.mu.Unlock()
	}()
	cfg := &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if string(key.Marshal()) == s.trusted.Load().(string) {
				return nil, nil
			}
			s.refusals.Add(1)
			return nil, errors.New("not trusted")
		},
		AuthLogCallback: func(_ ssh.ConnMetadata, _ string, err error) {
			if err == nil { // before the client learns of it
				s.logins.Add(1)
			}
		},
	}
	if s.authBanner != "" {
		cfg.BannerCallback = func(ssh.ConnMetadata) string { return s.authBanner }
	}
	s.mu.Lock()
	cfg.AddHostKey(s.hostKey)
	s.mu.Unlock()
	conn, channels, requests, err := ssh.NewServerConn(raw, cfg)
	if err != nil {
		return
	}
	s.wg.Go(func() {
		for r := range requests {
			if !s.mute.Load() && r.WantReply {
				_ = r.Reply(false, nil)
			}
		}
	})
	for ch := range channels {
		if s.mute.Load() {
			continue
		}
		switch ch.ChannelType() {
		case "session":
			s.session(ch)
		case "direct-tcpip":
			s.direct(ch)
		default:
			_ = ch.Reject(ssh.UnknownChannelType, "unknown")
		}
	}
	_ = conn.Wait()
}

func (s *server) session(offer ssh.NewChannel) {
	n := s.sessions.Add(1)
	if s.maxSessions > 0 && n > s.maxSessions {
		s.sessions.Add(-1)
		_ = offer.Reject(ssh.ConnectionFailed, "open failed")
		return
	}
	for peak := s.peak.Load(); n > peak && !s.peak.CompareAndSwap(peak, n); peak = s.peak.Load() {
	}
	ch, requests, err := offer.Accept()
	if err != nil {
		s.sessions.Add(-1)
		return
	}
	s.wg.Go(func() {
		// Counted down before the client learns of the end, as sshd does.
		end := sync.OnceFunc(func() {
			s.sessions.Add(-1)
			_ = ch.Close()
		})
		defer end()
		s.requests(ch, requests, end)
	})
}

// execChannel is a command's side of a session.
type execChannel struct {
	ssh.Channel
	signals chan string     // names of signals sent to the command
	ctx     context.Context // ends with the channel
}

func (c *execChannel) exit(status int) {
	_, _ = c.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
}

func (c *execChannel) exitSignal(name string) {
	_, _ = c.SendRequest("exit-signal", false, ssh.Marshal(struct {
		Name    string
		Core    bool
		Message string
		Lang    string
	}{name, false, "", ""}))
}

func (s *server) requests(ch ssh.Channel, requests <-chan *ssh.Request, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	run := &execChannel{Channel: ch, signals: make(chan string, 8), ctx: ctx}
	var done sync.WaitGroup
	defer done.Wait()
	defer cancel()
	for r := range requests {
		switch r.Type {
		case "exec":
			var p struct{ Command string }
			_ = ssh.Unmarshal(r.Payload, &p)
			s.commands.Add(1)
			_ = r.Reply(true, nil)
			done.Go(func() {
				defer end()
				s.exec(p.Command, run)
			})
		case "subsystem":
			var p struct{ Name string }
			_ = ssh.Unmarshal(r.Payload, &p)
			ok := p.Name == "sftp" && s.sftp != nil
			_ = r.Reply(ok, nil)
			if ok {
				done.Go(func() {
					defer end()
					s.sftp(ch)
					run.exit(0)
				})
			}
		case "signal":
			var p struct{ Name string }
			_ = ssh.Unmarshal(r.Payload, &p)
			if s.noSignals {
				continue
			}
			select {
			case run.signals <- p.Name:
			default:
			}
		default:
			if r.WantReply {
				_ = r.Reply(false, nil)
			}
		}
	}
}

func (s *server) direct(offer ssh.NewChannel) {
	var p struct {
		Host   string
		Port   uint32
		Origin string
		From   uint32
	}
	_ = ssh.Unmarshal(offer.ExtraData(), &p)
	if s.forward == nil {
		_ = offer.Reject(ssh.Prohibited, "open failed")
		return
	}
	s.wg.Go(func() {
		address, err := s.forward(net.JoinHostPort(p.Host, strconv.Itoa(int(p.Port))))
		if err != nil {
			_ = offer.Reject(ssh.ConnectionFailed, err.Error())
			return
		}
		out, err := net.Dial("tcp", address)
		if err != nil {
			_ = offer.Reject(ssh.ConnectionFailed, err.Error())
			return
		}
		defer func() { _ = out.Close() }()
		ch, requests, err := offer.Accept()
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		defer func() { _ = ch.Close() }()
		go func() {
			_, _ = io.Copy(out, ch)
			_ = out.Close()
		}()
		_, _ = io.Copy(ch, out)
	})
}

// quick are timings under which nothing in a test takes long.
var quick = Timing{
	PollMin: time.Millisecond, PollMax: 5 * time.Millisecond, Connect: 2 * time.Second, Handshake: 5 * time.Second,
	AuthGrace: 20 * time.Millisecond, AuthRetry: 5 * time.Millisecond, JumpGrace: 20 * time.Millisecond,
	KeepAlive: time.Minute, Probe: 5 * time.Second, KillGrace: 2 * time.Second,
}

func newTestPool(t testing.TB, cfg Config) *Pool {
	t.Helper()
	if (cfg.Timing == Timing{}) {
		cfg.Timing = quick
	}
	p, err := NewPool(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}
