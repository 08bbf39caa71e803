package pve_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// The life of a container, by every call that this package has for it, against
// the lab: an API server that was written from recorded answers, not from this
// client.
func TestACallOfEachKindAgainstTheLab(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := lab.Start(ctx, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })

	t.Run("by token", func(t *testing.T) {
		c := labClient(t, pve.Config{Endpoint: l.Endpoint(), Token: l.Token(), TLS: pve.TLSConfig{Fingerprint: l.Fingerprint()}})
		lifeOfAContainer(ctx, t, c, l.Nodes()[0], 100)
	})
	t.Run("by password", func(t *testing.T) {
		c := labClient(t, pve.Config{Endpoint: l.Endpoint(), Username: l.Username(), Password: l.Password(), TLS: pve.TLSConfig{CAPEM: l.CAPEM()}})
		lifeOfAContainer(ctx, t, c, l.Nodes()[0], 200)
	})
}

func labClient(t *testing.T, cfg pve.Config) *pve.Client {
	t.Helper()
	c, err := pve.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// life runs calls one after the other, and stops the test at the first that
// fails.
type life struct {
	t   *testing.T
	ctx context.Context
	c   *pve.Client
}

func (l life) ok(what string, err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatalf("%s: %v", what, err)
	}
}

func (l life) task(what string) func(pve.UPID, error) {
	l.t.Helper()
	return func(upid pve.UPID, err error) {
		l.t.Helper()
		l.ok(what, err)
		_, err = l.c.Wait(l.ctx, upid, func(w string) { l.t.Errorf("%s: warning: %s", what, w) })
		l.ok(what, err)
	}
}

func (l life) means(what string, err error, want pve.Meaning) {
	l.t.Helper()
	if !pve.Means(err, want) {
		l.t.Errorf("%s: got %v, want an error that means %q", what, err, want)
	}
}

func lifeOfAContainer(ctx context.Context, t *testing.T, c *pve.Client, node string, vmid int) {
	l := life{t, ctx, c}
	v, err := c.Version(ctx)
	l.ok("version", err)
	if v.Release == "" {
		t.Error("no release")
	}
	status, err := c.ClusterStatus(ctx)
	l.ok("cluster status", err)
	if !status.Quorate {
		t.Error("not quorate")
	}
	_, err = c.LXCStatus(ctx, node, vmid)
	l.means("before", err, pve.NoSuchGuest)

	l.task("clone")(c.CloneLXC(ctx, node, lab.TemplateID, pve.CloneOptions{NewID: vmid, Hostname: "first", Description: "a = b & c", Pool: lab.Pool}))
	_, err = c.CloneLXC(ctx, node, lab.TemplateID, pve.CloneOptions{NewID: vmid})
	l.means("clone onto it", err, pve.GuestExists)

	cfg, err := c.LXCConfig(ctx, node, vmid)
	l.ok("config", err)
	if cfg.Description() != "a = b & c" || cfg.Hostname() != "first" || cfg.RootFS().Storage() == "" || cfg.Digest() == "" {
		t.Errorf("config %+v", cfg.Raw)
	}
	net := cfg.Nets()[0].With("firewall", "1").String()
	l.ok("update", c.UpdateLXC(ctx, node, vmid, pve.LXCUpdate{
		Set: map[string]string{"net0": net, "memory": "256", "tags": "b;a", "onboot": pve.Bool(true)}, Delete: []string{"nameserver"}, Digest: cfg.Digest(),
	}))
	l.means("update by an old digest", c.UpdateLXC(ctx, node, vmid, pve.LXCUpdate{Set: map[string]string{"cores": "1"}, Digest: cfg.Digest()}), pve.DigestMismatch)
	after, err := c.LXCConfig(ctx, node, vmid)
	l.ok("config", err)
	if after.Nets()[0].MAC() != cfg.Nets()[0].MAC() || !after.Nets()[0].Firewall() || !after.OnBoot() || !slices.Equal(after.Tags(), []string{"a", "b"}) {
		t.Errorf("config after the update: %+v", after.Raw)
	}

	powerAndVolumes(l, node, vmid)
	l.task("delete")(c.DeleteLXC(ctx, node, vmid, pve.DeleteOptions{Force: true, Purge: true}))
	_, err = c.LXCConfig(ctx, node, vmid)
	l.means("after", err, pve.NoSuchGuest)
}

func powerAndVolumes(l life, node string, vmid int) {
	t, ctx, c := l.t, l.ctx, l.c
	_, err := c.StopLXC(ctx, node, vmid)
	l.means("stop of a stopped one", err, pve.NotRunning)
	l.task("start")(c.StartLXC(ctx, node, vmid))
	_, err = c.StartLXC(ctx, node, vmid)
	l.means("start of a running one", err, pve.AlreadyRunning)
	if _, err := c.LXCInterfaces(ctx, node, vmid); err != nil {
		t.Errorf("interfaces: %v", err)
	}
	_, err = c.LXCPending(ctx, node, vmid)
	l.ok("pending", err)
	fleet, err := c.Lists().Fleet(ctx)
	l.ok("fleet", err)
	if g := fleet.Guests[vmid]; g.LXC == nil || !g.LXC.Running() || g.Node != node {
		t.Errorf("fleet: %+v", g)
	}

	l.task("snapshot")(c.CreateSnapshot(ctx, node, vmid, "clean", "before"))
	snapshots, err := c.Snapshots(ctx, node, vmid)
	l.ok("snapshots", err)
	if s, ok := snapshots.Find("clean"); !ok || s.Description() != "before" || snapshots.Parent != "clean" {
		t.Errorf("snapshots: %+v", snapshots)
	}
	upid, err := c.CreateSnapshot(ctx, node, vmid, "clean", "")
	l.ok("snapshot again", err)
	_, err = c.Wait(ctx, upid, func(string) {})
	l.means("snapshot again", err, pve.SnapshotExists)
	l.task("rollback")(c.Rollback(ctx, node, vmid, "clean", false))
	l.task("delete snapshot")(c.DeleteSnapshot(ctx, node, vmid, "clean", false))

	l.task("grow")(c.ResizeLXC(ctx, node, vmid, "rootfs", "+1G", ""))
	_, err = c.ResizeLXC(ctx, node, vmid, "rootfs", "1M", "")
	l.means("shrink", err, pve.CannotShrink)

	pool, err := c.Pool(ctx, lab.Pool)
	l.ok("pool", err)
	if !slices.ContainsFunc(pool.Members, func(m pve.PoolMember) bool { return m.VMID == vmid }) {
		t.Errorf("pool: %+v", pool)
	}
	l.ok("out of the pool", c.RemoveFromPool(ctx, lab.Pool, []int{vmid}))
	l.means("out of the pool again", c.RemoveFromPool(ctx, lab.Pool, []int{vmid}), pve.NotMember)
	bridges, err := c.Bridges(ctx, node)
	l.ok("bridges", err)
	if !slices.Contains(bridges, lab.Bridge) {
		t.Errorf("bridges: %v", bridges)
	}
	storages, err := c.Storages(ctx, node, "rootdir")
	l.ok("storages", err)
	if len(storages) == 0 {
		t.Error("no storage for containers")
	}
	l.ok("template", c.ConvertToTemplate(ctx, node, vmid))
}
