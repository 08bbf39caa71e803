package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns"
)

func start(t *testing.T, o Options) *Lab {
	t.Helper()
	o.EngineName = os.Getenv("SANDBOX_LAB_ENGINE")
	l, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// api makes a call and returns the data of its answer.
func api(t *testing.T, l *Lab, method, path string, form url.Values) any {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(l.CAPEM()))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	target := l.Endpoint() + "/api2/json" + path
	var body io.Reader
	if method == http.MethodGet || method == http.MethodDelete {
		target += "?" + form.Encode()
	} else {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(t.Context(), method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "PVEAPIToken="+l.Token())
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct{ Data any }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %v", method, path, res.Status, err)
	}
	return answer.Data
}

// task makes a call that starts a task and waits for its good end.
func task(t *testing.T, l *Lab, method, path string, form url.Values) {
	t.Helper()
	upid := api(t, l, method, path, form).(string)
	for {
		status := api(t, l, http.MethodGet, "/nodes/pve1/tasks/"+upid+"/status", nil).(map[string]any)
		if status["status"] == "stopped" {
			if status["exitstatus"] != "OK" {
				t.Fatalf("%s %s: %v", method, path, status["exitstatus"])
			}
			return
		}
	}
}

// sandboxUp makes a running clone of the template with a static address.
func sandboxUp(t *testing.T, l *Lab, vmid int, address string) {
	t.Helper()
	base := fmt.Sprintf("/nodes/pve1/lxc/%d", vmid)
	task(t, l, "POST", "/nodes/pve1/lxc/9000/clone", url.Values{"newid": {fmt.Sprint(vmid)}, "hostname": {"box"}})
	api(t, l, "PUT", base+"/config", url.Values{"net0": {"name=eth0,bridge=vmbr0,ip=" + address + "/16,gw=10.77.0.1"}})
	task(t, l, "POST", base+"/status/start", nil)
}

// through logs in to a guest over the SSH node, as proxy_jump does.
func through(t *testing.T, l *Lab, address string) *ssh.Client {
	t.Helper()
	client, _ := loginTo(t, l, address)
	return client
}

// loginTo logs in and says which host key the guest showed.
func loginTo(t *testing.T, l *Lab, address string) (*ssh.Client, string) {
	t.Helper()
	key, err := ssh.ParsePrivateKey([]byte(l.PrivateKey()))
	if err != nil {
		t.Fatal(err)
	}
	hostKey, _, _, _, err := ssh.ParseAuthorizedKey([]byte(l.SSHHostKey()))
	if err != nil {
		t.Fatal(err)
	}
	jump, err := ssh.Dial("tcp", net.JoinHostPort(l.SSHHost(), fmt.Sprint(l.SSHPort())), &ssh.ClientConfig{
		User: SSHUser, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(hostKey), Timeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = jump.Close() })
	conn, err := jump.Dial("tcp", address+":22")
	for err != nil && strings.Contains(err.Error(), "refused") && t.Context().Err() == nil { // real guests need a moment to boot
		time.Sleep(5 * time.Millisecond)
		conn, err = jump.Dial("tcp", address+":22")
	}
	if err != nil {
		t.Fatal(err)
	}
	var seen ssh.PublicKey
	c, channels, requests, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User: GuestUser, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, Timeout: 10 * time.Second,
		HostKeyCallback: func(_ string, _ net.Addr, k ssh.PublicKey) error { seen = k; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	client := ssh.NewClient(c, channels, requests)
	t.Cleanup(func() { _ = client.Close() })
	return client, string(ssh.MarshalAuthorizedKey(seen))
}

func run(t *testing.T, client *ssh.Client, command string) string {
	t.Helper()
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	out, err := session.CombinedOutput(command)
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestACloneOfTheTemplateLetsTheLabsKeyIn(t *testing.T) {
	t.Parallel()
	l := start(t, Options{})
	sandboxUp(t, l, 100000, "10.77.1.0")
	if got := run(t, through(t, l, "10.77.1.0"), "hostname; id -un"); got != "box\nroot" {
		t.Errorf("%q", got)
	}
}

func TestClonesShareHostKeysOnlyOfACarelessTemplate(t *testing.T) {
	t.Parallel()
	for _, careless := range []bool{false, true} {
		l := start(t, Options{SharedHostKeys: careless})
		sandboxUp(t, l, 100000, "10.77.1.0")
		sandboxUp(t, l, 100001, "10.77.1.1")
		_, one := loginTo(t, l, "10.77.1.0")
		_, two := loginTo(t, l, "10.77.1.1")
		if (one == two) != careless {
			t.Errorf("careless %t: %s %s", careless, one, two)
		}
	}
}

func TestSnapshotsCoverTheGuestsFiles(t *testing.T) {
	t.Parallel()
	l := start(t, Options{})
	sandboxUp(t, l, 100000, "10.77.1.0")
	run(t, through(t, l, "10.77.1.0"), "echo one > /root/f")
	task(t, l, "POST", "/nodes/pve1/lxc/100000/snapshot", url.Values{"snapname": {"s1"}})
	run(t, through(t, l, "10.77.1.0"), "echo two > /root/f")
	task(t, l, "POST", "/nodes/pve1/lxc/100000/snapshot/s1/rollback", url.Values{})
	task(t, l, "POST", "/nodes/pve1/lxc/100000/status/start", nil)
	if got := run(t, through(t, l, "10.77.1.0"), "cat /root/f"); got != "one" {
		t.Errorf("after the rollback the file says %q", got)
	}
}

func TestAKeptLabComesBackWithItsGuestsDown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	t.Cleanup(func() { // an ordinary user's containers have files that only this removes
		if err := ns.Remove(filepath.Join(dir, "containers")); err != nil {
			t.Error(err)
		}
	})
	first, err := Start(context.Background(), Options{Dir: dir, EngineName: os.Getenv("SANDBOX_LAB_ENGINE")})
	if err != nil {
		t.Fatal(err)
	}
	sandboxUp(t, first, 100000, "10.77.1.0")
	run(t, through(t, first, "10.77.1.0"), "echo kept > /root/f")
	token, key, fingerprint, hostKey := first.Token(), first.PrivateKey(), first.Fingerprint(), first.SSHHostKey()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	l := start(t, Options{Dir: dir})
	if l.Token() != token || l.PrivateKey() != key || l.Fingerprint() != fingerprint || l.SSHHostKey() != hostKey {
		t.Error("secrets changed")
	}
	status := api(t, l, "GET", "/nodes/pve1/lxc/100000/status/current", nil).(map[string]any)
	if status["status"] != "stopped" {
		t.Error(status["status"])
	}
	task(t, l, "POST", "/nodes/pve1/lxc/100000/status/start", nil)
	if got := run(t, through(t, l, "10.77.1.0"), "cat /root/f"); got != "kept" {
		t.Errorf("%q", got)
	}
}

func TestTheControlClientSeesAndChangesTheLab(t *testing.T) {
	t.Parallel()
	l := start(t, Options{Nodes: 2})
	ctx, c := t.Context(), l.Control()
	id, err := c.Inject(ctx, control.Fault{Pattern: "^/version$", Kind: control.Latency, Delay: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ResetRequests(ctx); err != nil {
		t.Fatal(err)
	}
	api(t, l, "GET", "/version", nil)
	if state, err := c.WaitFired(ctx, id, 1, time.Second); err != nil || state.Fired != 1 {
		t.Error(state, err)
	}
	if report, err := c.Requests(ctx); err != nil || report.Total != 1 || report.Entries[0].FaultedBy != control.Latency {
		t.Error(report, err)
	}
	if err := c.FailTask(ctx, control.TaskFault{Type: "vzclone", Exit: "no space left"}); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if now, err := c.Jump(ctx, time.Hour); err != nil || now.Before(before.Add(time.Hour)) {
		t.Error(now, err)
	}
	delays, err := c.Delays(ctx)
	if err != nil || delays != Fast() {
		t.Error(delays, err)
	}
	delays.Start = time.Second
	if err := c.SetDelays(ctx, delays); err != nil {
		t.Fatal(err)
	}
	if err := c.NodeAway(ctx, "pve2", true); err != nil {
		t.Fatal(err)
	}
	if err := c.NodeAway(ctx, "pve7", true); err == nil {
		t.Error("a node that isn't there went away")
	}
	if err := c.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	if delays, err = c.Delays(ctx); err != nil || delays != Fast() {
		t.Error("after a reset:", delays, err)
	}
	dump, err := c.Dump(ctx)
	if err != nil || len(dump.Guests) != 1 || dump.Guests[0].VMID != TemplateID || len(dump.Strays) != 0 || len(dump.EngineGuests) != 1 {
		t.Errorf("%+v %v", dump, err)
	}
	if err := c.ChangeGuest(ctx, control.Guest{VMID: TemplateID, Set: map[string]string{"tags": "seen"}}); err != nil {
		t.Fatal(err)
	}
	if got := api(t, l, "GET", "/nodes/pve1/lxc/9000/config", nil).(map[string]any)["tags"]; got != "seen" {
		t.Error(got)
	}
}

func TestTheProviderBlockSaysWhereEverythingIs(t *testing.T) {
	t.Parallel()
	l := start(t, Options{})
	block := l.ProviderBlock()
	for _, want := range []string{l.Endpoint(), l.Token(), l.Fingerprint(), fmt.Sprint(l.SSHPort()), l.SSHHostKey(), "BEGIN OPENSSH PRIVATE KEY"} {
		if !strings.Contains(block, want) {
			t.Errorf("%q is missing", want)
		}
	}
}
