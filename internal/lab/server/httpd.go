package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// The connection loop is our own, because net/http writes its own reason phrases, and Proxmox VE's message is in the
// reason phrase. It speaks HTTP/1.1 with keep-alive and closes idle connections as the real server does.

const maxBody = 64 << 20

// acceptLoop serves until the listener closes.
func (s *Server) acceptLoop() {
	defer s.workers.Done()
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.lock()
		s.conns[conn] = true
		s.unlock()
		s.workers.Add(1)
		go func() {
			defer s.workers.Done()
			defer func() {
				_ = conn.Close()
				s.lock()
				delete(s.conns, conn)
				s.unlock()
			}()
			s.serveConn(conn)
		}()
	}
}

// serveConn answers the requests of one connection, one after the other.
func (s *Server) serveConn(raw net.Conn) {
	conn := tls.Server(raw, s.tlsConf)
	hello, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	if err := conn.HandshakeContext(hello); err != nil {
		return
	}
	id := s.requests.newConn()
	reader := bufio.NewReader(conn)
	for {
		if err := conn.SetReadDeadline(time.Now().Add(s.idleTimeout())); err != nil {
			return
		}
		if _, err := reader.Peek(1); err != nil {
			return
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			return
		}
		req, err := http.ReadRequest(reader)
		if err != nil {
			_ = writeAnswer(conn, &answer{status: 400, reason: "bad request"}, s.now(), false, true)
			return
		}
		body, err := readBody(conn, req)
		if err != nil {
			_ = writeAnswer(conn, &answer{status: 413, reason: "body too large"}, s.now(), false, true)
			return
		}
		a := s.serveRequest(req, body, id)
		if a.drop || s.ctx.Err() != nil {
			dropConn(raw)
			return
		}
		keep := !req.Close && req.ProtoAtLeast(1, 1)
		if err := writeAnswer(conn, a, s.now(), req.Method == http.MethodHead, !keep); err != nil || !keep {
			return
		}
	}
}

// dropConn closes a connection hard, so that the client sees it reset and not ended.
func dropConn(raw net.Conn) {
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = raw.Close()
}

func (s *Server) idleTimeout() time.Duration {
	s.lock()
	defer s.unlock()
	if d := s.delays().IdleConnection; d > 0 {
		return d
	}
	return 5 * time.Second
}

func readBody(conn io.Writer, req *http.Request) ([]byte, error) {
	if strings.EqualFold(req.Header.Get("Expect"), "100-continue") {
		if _, err := io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return nil, err
		}
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = errors.New("body too large")
	}
	return body, err
}

// writeAnswer writes a response with its own reason phrase.
func writeAnswer(w io.Writer, a *answer, now time.Time, headOnly, last bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.status, oneLine(a.reason))
	fmt.Fprintf(&b, "Cache-Control: max-age=0\r\nDate: %s\r\nPragma: no-cache\r\nServer: pve-api-daemon/3.0\r\n", now.UTC().Format(http.TimeFormat))
	if a.contentType != "" {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", a.contentType)
	}
	connection := "Keep-Alive"
	if last {
		connection = "close"
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\nConnection: %s\r\n\r\n", len(a.body), connection)
	if !headOnly {
		b.Write(a.body)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
