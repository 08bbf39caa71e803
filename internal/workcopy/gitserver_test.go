//go:build unix

package workcopy

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

const canary = "canary-4f1d6c2e"

// newRemote makes a bare repository with one commit of these files, and a tag v1.
func newRemote(t testing.TB, content files) (bare, commit string) {
	t.Helper()
	needsGit(t)
	top := t.TempDir()
	work := filepath.Join(top, "seed")
	put(t, work, content)
	git(t, work, "init", "-q", "-b", "main")
	git(t, work, "add", "-A", "-f")
	git(t, work, "commit", "-qm", "first")
	git(t, work, "tag", "v1")
	bare = filepath.Join(top, "repo.git")
	git(t, top, "clone", "-q", "--bare", work, bare)
	git(t, bare, "config", "http.receivepack", "true")
	return bare, git(t, work, "rev-parse", "HEAD")
}

// serveHTTP serves a bare repository over http to whoever has the token.
func serveHTTP(t testing.TB, bare, token string) (address string) {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: path, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(bare), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=t"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != token {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/" + filepath.Base(bare)
}

// serveSSH serves a bare repository over SSH to whoever has the key.
func serveSSH(t testing.TB, bare string) (address string, credentials *Credentials) {
	t.Helper()
	_, hostPrivate, _ := ed25519.GenerateKey(rand.Reader)
	host, err := ssh.NewSignerFromKey(hostPrivate)
	if err != nil {
		t.Fatal(err)
	}
	public, private, _ := ed25519.GenerateKey(rand.Reader)
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, offered ssh.PublicKey) (*ssh.Permissions, error) {
		if string(offered.Marshal()) != string(key.Marshal()) {
			return nil, http.ErrNoCookie // any error
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { serveGitOver(conn, config, bare) })
		}
	})
	known := "[127.0.0.1]:" + port(listener) + " " + string(ssh.MarshalAuthorizedKey(host.PublicKey()))
	return "ssh://git@" + listener.Addr().String() + "/repo.git", &Credentials{SSHKey: string(pem.EncodeToMemory(block)), KnownHosts: known}
}

func port(l net.Listener) string {
	_, p, _ := net.SplitHostPort(l.Addr().String())
	return p
}

func serveGitOver(raw net.Conn, config *ssh.ServerConfig, bare string) {
	defer func() { _ = raw.Close() }()
	_, channels, requests, err := ssh.NewServerConn(raw, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		for request := range requests {
			_ = request.Reply(request.Type == "exec" || request.Type == "env", nil)
			if request.Type != "exec" {
				continue
			}
			program, _, _ := strings.Cut(string(request.Payload[4:]), " ")
			c := exec.Command(program, bare)
			stdin, _ := c.StdinPipe()
			c.Stdout, c.Stderr = channel, channel.Stderr()
			go func() {
				buf := make([]byte, 4096)
				for {
					n, err := channel.Read(buf)
					_, _ = stdin.Write(buf[:n])
					if err != nil {
						_ = stdin.Close()
						return
					}
				}
			}()
			code := byte(0)
			if c.Run() != nil {
				code = 1
			}
			_, _ = channel.SendRequest("exit-status", false, []byte{0, 0, 0, code})
			_ = channel.Close()
		}
	}
}
