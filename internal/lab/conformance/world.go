package conformance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/server"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim"
)

// world is a lab like the node that the recordings were made on.
type world struct {
	server *server.Server
	engine engine.Engine
	client *http.Client
	tokens map[string]string // by the recordings' name of who asks
}

// delays keep the recorded order of things at a tenth of the time.
func delays() *server.Delays {
	ms := time.Millisecond
	return &server.Delays{
		Start: 250 * ms, Shutdown: 160 * ms, Stop: 140 * ms, CloneLinked: 40 * ms, CloneFull: 250 * ms, Create: 250 * ms,
		Destroy: 10 * ms, Snapshot: 8 * ms, Rollback: 15 * ms, DelSnapshot: 8 * ms, Template: 20 * ms, Migrate: 200 * ms,
		MoveVolume: 100 * ms, Backup: 300 * ms, Resize: 30 * ms, ResizeStopped: 2200 * ms, DirtyMount: 4500 * ms, Config: 10 * ms,
		LockTimeout: 1000 * ms, AuthFailure: 5 * ms, TaskStop: 300 * ms, FirewallLoop: 500 * ms, DHCP: 250 * ms,
		StatLoop:       time.Hour, // the replay says when the status service looks
		IdleConnection: 5 * time.Second,
	}
}

// nodeNames of the recordings: one node, except for the flow about two.
func nodeNames(flow string) []string {
	if flow == "two_nodes" {
		return []string{"cl1", "cl2"}
	}
	return []string{"pve1"}
}

func newWorld(ctx context.Context, flow string) (*world, error) {
	w := &world{tokens: map[string]string{}}
	var err error
	if w.engine, err = sim.New(sim.Options{DHCP: map[string]netip.Prefix{"vmbr0": netip.MustParsePrefix("10.10.10.0/24")}}); err != nil {
		return nil, err
	}
	names := nodeNames(flow)
	w.server, err = server.Start(ctx, server.Options{
		Nodes: len(names), Delays: delays(), Engine: w.engine,
		Controllers: []string{}, // the recording node had none
		Seed:        func(d *server.Seeder) error { return w.seed(ctx, d, flow, names) },
	})
	if err != nil {
		return nil, errors.Join(err, w.engine.Close())
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(w.server.CertPEM()))
	w.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, IdleConnTimeout: 3 * time.Second, MaxIdleConnsPerHost: 16,
	}}
	return w, nil
}

func (w *world) close() error {
	w.client.CloseIdleConnections()
	return errors.Join(w.server.Close(), w.engine.Close())
}

// seed makes the users, rights, files and the template that the recordings show.
func (w *world) seed(ctx context.Context, d *server.Seeder, flow string, names []string) error {
	d.RenameNodes(names...)
	if len(names) > 1 {
		d.ClusterName("oracle")
	}
	d.Password("root@pam", "rootpass1")
	d.User("admin@pve", "adminpass1")
	d.User("viewer@pve", "viewerpass1")
	d.User("limited@pve", "limitedpass1")
	w.tokens["admin"] = d.Token("admin@pve", "admin", false)
	w.tokens["sep"] = d.Token("admin@pve", "sep", true)
	w.tokens["viewer"] = d.Token("viewer@pve", "view", false)
	w.tokens["limited"] = d.Token("limited@pve", "lab", false)
	w.tokens["root"] = d.Token("root@pam", "oracle", false)
	d.Pool("labpool")
	d.Grant("/", "admin@pve", "Administrator")
	d.Grant("/", "viewer@pve", "PVEAuditor")
	d.Grant("/pool/labpool", "limited@pve", "PVEVMAdmin")
	d.Grant("/pool/labpool", "limited@pve", "PVEPoolUser")
	d.Grant("/sdn/zones/localnetwork", "limited@pve", "PVESDNUser")
	d.Grant("/storage/local", "limited@pve", "PVEDatastoreUser")
	d.Grant("/storage/local-btrfs", "limited@pve", "PVEDatastoreUser")
	d.TemplateFile("local:vztmpl/debian-12-mini_12.12-1_amd64.tar.gz", 55633611)
	d.TemplateFile("local:vztmpl/debian-12-standard_12.12-1_amd64.tar.zst", 55856747)
	if len(names) > 1 {
		return nil
	}
	if flow == "backup" { // an earlier run had left one
		d.Backup("local:backup/vzdump-lxc-290-2026_12_01-05_01_56.tar", names[0], 290, 159744000, time.Date(2026, 12, 1, 5, 1, 56, 0, time.UTC))
	}
	return d.Guest(ctx, names[0], 9000, map[string]string{
		"arch": "amd64", "cores": "1", "features": "nesting=1", "hostname": "mini-tmpl", "memory": "128", "swap": "0",
		"net0":   "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:DE:46:96,ip=dhcp,type=veth",
		"ostype": "debian", "rootfs": "local-btrfs:9000/base-9000-disk-0.raw,size=1G", "template": "1", "unprivileged": "1",
	}, engine.RootSpec{})
}
