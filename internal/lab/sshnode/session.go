package sshnode

import (
	"context"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// session runs one command: what the client asks for, or what its key is forced to with that in SSH_ORIGINAL_COMMAND. A
// shell without a command is an empty one.
func (n *Node) session(conn *ssh.ServerConn, ch ssh.NewChannel, forced string) {
	channel, requests, err := ch.Accept()
	if err != nil {
		return
	}
	defer func() { _ = channel.Close() }()
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	started := false
	done := make(chan struct{})
	for r := range requests {
		line, ok := commandOf(r)
		if ok = ok && !started; r.WantReply {
			_ = r.Reply(ok, nil)
		}
		if !ok {
			continue
		}
		started = true
		go func() {
			defer close(done)
			n.command(ctx, conn, channel, line, forced)
		}()
	}
	cancel() // the client has gone
	if started {
		<-done
	}
}

func commandOf(r *ssh.Request) (line string, ok bool) {
	switch r.Type {
	case "shell":
		return "", true
	case "exec":
		var p struct{ Text string }
		err := ssh.Unmarshal(r.Payload, &p)
		return p.Text, err == nil
	}
	return "", false
}

func (n *Node) command(ctx context.Context, conn *ssh.ServerConn, channel ssh.Channel, line, forced string) {
	var env []string
	if forced != "" {
		env, line = []string{"SSH_ORIGINAL_COMMAND=" + line}, forced
	}
	status, err := n.exec(ctx, conn.User(), line, env, channel, channel, channel.Stderr())
	if err != nil {
		_, _ = fmt.Fprintln(channel.Stderr(), err)
		status = 255
	}
	n.mu.Lock()
	drop := n.dropAt == 1
	n.dropAt = max(0, n.dropAt-1)
	n.mu.Unlock()
	if drop {
		_ = conn.Close()
		return
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(&struct{ Status uint32 }{uint32(status)}))
	_ = channel.CloseWrite()
	_ = channel.Close()
}
