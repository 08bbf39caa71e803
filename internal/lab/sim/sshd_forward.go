package sim

import (
	"net"

	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sshnode"
)

// forwarding is the payload of tcpip-forward and its cancellation (RFC 4254, section 7.1).
type forwarding struct {
	Address string
	Port    uint32
}

// globalRequests serves remote forwarding. As with sshd's GatewayPorts no, it listens on the loopback whatever address is asked for.
func (s *sshServer) globalRequests(conn *ssh.ServerConn, requests <-chan *ssh.Request) {
	listeners := map[uint32]net.Listener{}
	for r := range requests {
		var f forwarding
		ok, answer := false, []byte(nil)
		switch {
		case r.Type == "tcpip-forward" && ssh.Unmarshal(r.Payload, &f) == nil:
			l, err := s.machine.Network.ListenLocal(int(f.Port))
			if err != nil {
				break
			}
			port := uint32(l.Addr().(*net.TCPAddr).Port) //nolint:forcetypeassert // a TCP listener's
			if f.Port == 0 {
				answer = ssh.Marshal(&struct{ Port uint32 }{port})
			}
			ok, listeners[port] = true, l
			go remoteForward(conn, l, forwarding{f.Address, port})
		case r.Type == "cancel-tcpip-forward" && ssh.Unmarshal(r.Payload, &f) == nil && listeners[f.Port] != nil:
			ok = listeners[f.Port].Close() == nil
			delete(listeners, f.Port)
		}
		if r.WantReply {
			_ = r.Reply(ok, answer)
		}
	}
	for _, l := range listeners {
		_ = l.Close()
	}
}

func remoteForward(conn *ssh.ServerConn, l net.Listener, f forwarding) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			channel, requests, err := conn.OpenChannel("forwarded-tcpip", ssh.Marshal(&struct {
				Address    string
				Port       uint32
				Originator string
				From       uint32
			}{f.Address, f.Port, "127.0.0.1", 1}))
			if err != nil {
				_ = c.Close()
				return
			}
			go ssh.DiscardRequests(requests)
			sshnode.Splice(channel, c)
		}()
	}
}
