package portforward_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

func boxed(t *testing.T, server *protocoltest.Server, started bool) (string, *protocoltest.Resource) {
	t.Helper()
	r := server.NewResource(t, "sandbox_container")
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, values{"hostname": "web-1", "started": started})))
	t.Cleanup(func() { server.Destroy(t, context.WithoutCancel(t.Context()), r) })
	return r.Text(t, "id"), r
}

func ask(t *testing.T, address string) (string, error) {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

func run(t *testing.T, server *protocoltest.Server, id, script string) string {
	t.Helper()
	r := server.NewResource(t, "sandbox_exec")
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, values{"container_id": id, "script": script})))
	return r.Text(t, "stdout")
}

func TestATunnelLeadsIntoTheContainerUntilItIsClosed(t *testing.T) {
	t.Parallel()
	acctest.NeedsSimulation(t, "runs nc in the container")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	id, _ := boxed(t, server, true)
	// It is open before anything listens, and a connection waits for that.
	opened := server.MustOpen(t, "sandbox_port_forward", values{"container_id": id, "port": 8080, "wait": "20s"})
	address := opened.Text(t, "address")
	if address != fmt.Sprintf("127.0.0.1:%v", opened.Get(t, "local_port")) {
		t.Errorf("it listens on %s, port %v", address, opened.Get(t, "local_port"))
	}
	type result struct {
		answer string
		err    error
	}
	early := make(chan result, 1)
	go func() {
		answer, err := ask(t, address)
		early <- result{answer, err}
	}()
	run(t, server, id, "( printf hello | nc -l -k -p 8080 ) >/dev/null 2>&1 &")
	if got := <-early; got.answer != "hello" {
		t.Errorf("the early connection got %q, %v", got.answer, got.err)
	}
	for range 3 {
		if answer, err := ask(t, address); answer != "hello" {
			t.Errorf("it answers %q, %v", answer, err)
		}
	}
	if diags := server.Close(t, opened); len(diags) > 0 {
		t.Error(protocoltest.Text(diags))
	}
	if answer, err := ask(t, address); err == nil {
		t.Errorf("closed, it answers %q", answer)
	}
	if diags := server.Close(t, opened); len(diags) > 0 {
		t.Errorf("closed twice: %s", protocoltest.Text(diags))
	}
}

func TestTheReverseListensOnTheContainersLoopbackOnly(t *testing.T) {
	t.Parallel()
	acctest.NeedsSimulation(t, "runs nc in the container")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	id, box := boxed(t, server, true)
	ours, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	go func() {
		for {
			conn, err := ours.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "ours")
			_ = conn.Close()
		}
	}()
	opened := server.MustOpen(t, "sandbox_port_forward", values{"container_id": id, "remote_forward": values{"to": ours.Addr().String()}})
	host, port, err := net.SplitHostPort(opened.Text(t, "address"))
	if err != nil || host != "127.0.0.1" || opened.Get(t, "local_port") != nil {
		t.Errorf("it listens on %s", opened.Text(t, "address"))
	}
	if got := run(t, server, id, "nc 127.0.0.1 "+port+" </dev/null"); got != "ours" {
		t.Errorf("the container gets %q", got)
	}
	own := strings.Split(box.Text(t, "ipv4_address"), "/")[0]
	if got := run(t, server, id, "nc -z "+own+" "+port+" && echo open || echo closed"); got != "closed\n" {
		t.Errorf("its other address is %s", got)
	}
	if diags := server.Close(t, opened); len(diags) > 0 {
		t.Error(protocoltest.Text(diags))
	}
	if got := run(t, server, id, "for i in 1 2 3 4 5 6 7 8 9; do nc -z 127.0.0.1 "+port+" || { echo closed; exit; }; sleep 0.1; done; echo open"); got != "closed\n" {
		t.Errorf("closed, it is %s", got)
	}
}

// A plan of a container that the apply will start must not fail.
func TestAStoppedContainerIsNoError(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	id, _ := boxed(t, server, false)
	opened := server.MustOpen(t, "sandbox_port_forward", values{"container_id": id, "port": 8080, "wait": "100ms"})
	if answer, err := ask(t, opened.Text(t, "address")); answer != "" {
		t.Errorf("it answers %q, %v", answer, err)
	}
	server.Close(t, opened)
	reverse, diags := server.Open(t, "sandbox_port_forward", values{"container_id": id, "remote_forward": values{"to": "127.0.0.1:5432"}})
	if text := protocoltest.Text(diags); protocoltest.HasErrors(diags) || !strings.Contains(text, "Nothing is forwarded yet") || reverse.Get(t, "address") != nil {
		t.Errorf("it said: %s", text)
	}
	server.Close(t, reverse)
}

func TestWhatIsNoTunnelIsRefused(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	id, _ := boxed(t, server, false)
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	port := taken.Addr().(*net.TCPAddr).Port
	for name, c := range map[string]struct {
		config values
		want   string
	}{
		"neither way":          {values{"container_id": id}, "port"},
		"both ways":            {values{"container_id": id, "port": 80, "remote_forward": values{"to": "a:1"}}, "port"},
		"a target without":     {values{"container_id": id, "remote_forward": values{"to": "localhost"}}, "host:port"},
		"a port that is none":  {values{"container_id": id, "remote_forward": values{"to": "localhost:70000"}}, "host:port"},
		"no patience":          {values{"container_id": id, "port": 80, "wait": "soon"}, "duration"},
		"a port that is taken": {values{"container_id": id, "port": 80, "local_port": port}, "choose another local_port"},
		"no such container":    {values{"container_id": fmt.Sprint(env.VMIDs.Last), "port": 80}, "does not exist"},
	} {
		if _, diags := server.Open(t, "sandbox_port_forward", c.config); !protocoltest.HasErrors(diags) || !strings.Contains(strings.ToLower(protocoltest.Text(diags)), c.want) {
			t.Errorf("%s: %s", name, protocoltest.Text(diags))
		}
	}
	stranger := protocoltest.ForWith(t, env, values{"owner": "stranger"}, provider.Options{})
	if _, diags := stranger.Open(t, "sandbox_port_forward", values{"container_id": id, "port": 80}); !strings.Contains(protocoltest.Text(diags), "owner") {
		t.Errorf("a stranger's container: %s", protocoltest.Text(diags))
	}
}
