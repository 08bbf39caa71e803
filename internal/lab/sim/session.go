package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
)

// session is one SSH session channel.
type session struct {
	server  *sshServer
	conn    *ssh.ServerConn
	user    machine.User
	channel ssh.Channel

	env     []string
	pty     bool
	started bool

	ctx  context.Context
	kill context.CancelCauseFunc
}

func (s *sshServer) session(conn *ssh.ServerConn, user machine.User, ch ssh.NewChannel) {
	channel, requests, err := ch.Accept()
	if err != nil {
		return
	}
	ss := &session{server: s, conn: conn, user: user, channel: channel}
	ss.ctx, ss.kill = context.WithCancelCause(s.machine.Down)
	var program sync.WaitGroup
	for r := range requests {
		run, ok := ss.request(r)
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
		if run != nil {
			program.Go(run)
		}
	}
	// The client has gone. A terminal hangs up; without one, programs go on until they write to nobody.
	if ss.pty {
		ss.kill(machine.Killed(machine.SIGHUP))
	}
	program.Wait()
	_ = channel.Close()
}

// request answers a session request; run is what is to be started, once.
func (ss *session) request(r *ssh.Request) (run func(), ok bool) {
	switch r.Type {
	case "env":
		var kv struct{ Name, Value string }
		if ssh.Unmarshal(r.Payload, &kv) != nil || !acceptEnv(kv.Name) {
			return nil, false
		}
		ss.env = append(ss.env, kv.Name+"="+kv.Value)
		return nil, true
	case "pty-req":
		var p struct {
			Term string
			Rest []byte `ssh:"rest"`
		}
		if ssh.Unmarshal(r.Payload, &p) != nil {
			return nil, false
		}
		ss.pty, ss.env = true, append(ss.env, "TERM="+p.Term)
		return nil, true
	case "window-change":
		return nil, true
	case "signal":
		var s struct{ Name string }
		// sshd refuses root's: "session signalling requires privilege separation".
		if ssh.Unmarshal(r.Payload, &s) != nil || ss.user.UID == 0 {
			return nil, false
		}
		if n := machine.Signals[s.Name]; n != 0 {
			ss.kill(machine.Killed(n))
		}
		return nil, true
	case "shell", "exec", "subsystem":
		var p struct{ Text string }
		if ss.started || len(r.Payload) > 0 && ssh.Unmarshal(r.Payload, &p) != nil {
			return nil, false
		}
		if r.Type == "subsystem" && p.Text != "sftp" {
			return nil, false
		}
		ss.started = true
		if r.Type == "subsystem" {
			return ss.sftp, true
		}
		return func() { ss.program(r.Type == "exec", p.Text) }, true
	}
	return nil, false
}

// acceptEnv is Debian's AcceptEnv: everything else that a client sends is refused.
func acceptEnv(name string) bool { return name == "LANG" || strings.HasPrefix(name, "LC_") }

// program runs a command by the user's shell, or the shell itself.
func (ss *session) program(command bool, text string) {
	m := ss.server.machine
	sh := ss.user.Shell
	if sh == "" {
		sh = "/bin/sh"
	}
	argv := []string{"-" + path.Base(sh)}
	if command {
		argv = []string{path.Base(sh), "-c", text}
	}
	env := append(shell.UserEnv(ss.user), ss.connection()...)
	env = append(env, ss.env...)
	cred := m.Cred(ss.user)
	dir := ss.user.Home
	if in, err := m.FS.Stat(cred, dir); err != nil || !in.IsDir() {
		dir = "/"
	}
	var input io.Reader = ss.channel
	var output, errors io.Writer = ss.channel, ss.channel.Stderr()
	if ss.pty {
		input = &keyboard{r: ss.channel, interrupt: func() { ss.kill(machine.Killed(machine.SIGINT)) }}
		output = &screen{ss.channel}
		errors = output // a terminal has one screen
	}
	in, closeIn, err := stdin(ss.ctx, input)
	if err != nil {
		ss.exit(1)
		return
	}
	defer closeIn()
	stdout, stderr := shell.NewStream(output), shell.NewStream(errors)
	if ss.pty {
		stderr = stdout
	}
	status := ss.server.engine.programs.RunAs(ss.ctx, m, sh, shell.Program{Argv: argv, Env: env, Dir: dir, Umask: 0o022, Cred: cred, PPID: 90,
		Stdin: in, Stdout: stdout, Stderr: stderr})
	// sshd keeps the channel until the last writer has gone, a job in the background included.
	for _, s := range []*shell.Stream{stdout, stderr} {
		select {
		case <-s.Done():
		case <-ss.ctx.Done():
		}
		s.Cut(io.ErrClosedPipe)
	}
	ss.exit(status)
}

func (ss *session) connection() []string {
	client, server := ss.conn.RemoteAddr(), ss.conn.LocalAddr()
	ch, cp, err := net.SplitHostPort(client.String())
	sh, sp, err2 := net.SplitHostPort(server.String())
	if errors.Join(err, err2) != nil {
		return nil
	}
	return []string{"SSH_CONNECTION=" + strings.Join([]string{ch, cp, sh, sp}, " "), "SSH_CLIENT=" + strings.Join([]string{ch, cp, sp}, " ")}
}

// exit tells the client how the program ended and closes the channel. Failures mean that the client has gone.
func (ss *session) exit(status int) {
	if n := machine.KilledBy(ss.ctx); n != 0 {
		for name, number := range machine.Signals {
			if number == n {
				msg := struct {
					Signal string
					Core   bool
					Error  string
					Lang   string
				}{Signal: name}
				_, _ = ss.channel.SendRequest("exit-signal", false, ssh.Marshal(&msg))
			}
		}
	} else {
		_, _ = ss.channel.SendRequest("exit-status", false, ssh.Marshal(&struct{ Status uint32 }{uint32(status)}))
	}
	_ = ss.channel.CloseWrite()
	_ = ss.channel.Close()
}

// stdin makes a pipe that is fed from r: the interpreter and its children share input byte by byte only by a pipe of
// the operating system. stop ends the feeding.
func stdin(ctx context.Context, r io.Reader) (in *os.File, stop func(), err error) {
	in, feed, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	if r == nil {
		r = bytes.NewReader(nil)
	}
	go func() {
		_, _ = io.Copy(feed, r) // ends with the reader's end, or with the pipe's
		_ = feed.Close()
	}()
	unblock := context.AfterFunc(ctx, func() { _ = feed.Close() })
	return in, func() {
		unblock()
		_ = in.Close()
	}, nil
}

// keyboard is what a terminal makes of typed bytes: return is a newline, ^D an end, ^C an interrupt.
type keyboard struct {
	r         io.Reader
	interrupt func()
	ended     bool
}

func (k *keyboard) Read(p []byte) (int, error) {
	if k.ended {
		return 0, io.EOF
	}
	n, err := k.r.Read(p)
	out := p[:0]
	for _, b := range p[:n] {
		switch b {
		case '\r':
			b = '\n'
		case 3:
			k.interrupt()
			continue
		case 4:
			k.ended = true
			return len(out), nil
		}
		out = append(out, b)
	}
	return len(out), err
}

// screen writes newlines as terminals need them.
type screen struct{ w io.Writer }

func (s *screen) Write(p []byte) (int, error) {
	if _, err := s.w.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}
