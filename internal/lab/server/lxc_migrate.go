package server

import (
	"fmt"
	"strconv"
	"time"
)

// lxcMigratePreconditions says where the container may go.
func (s *Server) lxcMigratePreconditions(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	allowed := []string{}
	for _, n := range s.st.Nodes {
		if n.Name != g.Node {
			allowed = append(allowed, n.Name)
		}
	}
	running := 0
	if g.active() {
		running = 1
	}
	return map[string]any{"running": running, "allowed-nodes": allowed, "not-allowed-nodes": map[string]any{}}, nil
}

// lxcMigrate moves a container to another node: as it is when stopped, by a restart when it runs.
func (s *Server) lxcMigrate(c *call) (any, error) {
	target, restart := c.params.str("target"), c.params.flag("restart")
	if target == c.node.Name {
		return nil, paramError("target", "target is local node.")
	}
	to := s.findNode(target)
	if to == nil {
		return nil, failf("no such cluster node '%s'", target)
	}
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	if err := g.checkLock(); err != nil {
		return nil, err
	}
	if g.active() && !restart && !c.params.flag("online") {
		return nil, failf("can't migrate running container without --online or --restart")
	}
	vmid, timeout := g.VMID, 180
	if c.params.has("timeout") {
		timeout = c.params.num("timeout")
	}
	return c.startTask("vzmigrate", strconv.Itoa(vmid), func(t *task) error {
		release, err := t.lockMigration(vmid)
		if err != nil {
			return err
		}
		defer release()
		return t.withGuest(vmid, func(g *guest) error { return t.migrate(g, to, restart, timeout) })
	})
}

// stampf logs a line with the time, as migrations do.
func (t *task) stampf(format string, args ...any) {
	t.logf(t.s.now().UTC().Format("2006-01-02 15:04:05 ")+format, args...)
}

func (t *task) migrate(g *guest, to *node, restart bool, timeout int) error {
	s, begun, from := t.s, t.s.now(), g.Node
	if err := g.checkLock(); err != nil {
		return err
	}
	if to.Away {
		return failf("migration aborted - can't connect to node '%s'", to.Name)
	}
	wasRunning := g.active()
	if wasRunning {
		if !restart {
			return failf("lxc live migration is currently not implemented")
		}
		t.stampf("shutdown CT %d", g.VMID)
		if err := t.shutdown(g, timeout); err != nil {
			return err
		}
	}
	t.stampf("starting migration of CT %d to node '%s' (%s)", g.VMID, to.Name, to.IP)
	g.Config["lock"] = "migrate"
	s.dirty()
	err := t.carry(g, from, to)
	delete(g.Config, "lock")
	if err != nil {
		t.stampf("aborting phase 1 - cleanup resources")
		return failf("migration aborted: %v", err)
	}
	t.stampf("start final cleanup")
	if wasRunning {
		t.stampf("start container on target node")
		t.onNode(to, "pct start %d", g.VMID)
		if err := t.boot(g); err != nil {
			return err
		}
	}
	t.stampf("migration finished successfully (duration %s)", clockText(s.now().Sub(begun)))
	return nil
}

// carry takes the volumes and the configuration to the other node.
func (t *task) carry(g *guest, from string, to *node) error {
	s := t.s
	for _, volid := range g.allVolumes() {
		if v := s.volumeOn(from, volid); v != nil && v.Node != "" {
			t.stampf("found local volume '%s' (in current VM config)", volid)
		}
	}
	if err := t.sleep(s.delays().Migrate); err != nil {
		return err
	}
	for _, volid := range g.allVolumes() {
		v := s.volumeOn(from, volid)
		if v == nil || v.Node == "" {
			continue
		}
		if _, err := s.lxcStorage(to.Name, storageOf(volid)); err != nil {
			return err
		}
		s.renameVolume(v, to.Name, volid, v.VMID)
		t.logTransfer(v)
	}
	t.onNode(to, `pvesr set-state %d \''{}'\'`, g.VMID)
	g.Node = to.Name
	s.dirty()
	return nil
}

// logTransfer is what the two ends of a volume's copy print.
func (t *task) logTransfer(v *volume) {
	blocks, took := v.Size/4096, t.s.delays().Migrate
	summary := fmt.Sprintf("%d bytes (%.1f GB, %.1f GiB) copied, %.5f s, %d MB/s", v.Size, float64(v.Size)/1e9,
		float64(v.Size)/(1<<30), took.Seconds(), rate(v.Size, took)/1000/1000)
	half := v.Size / 2
	t.stampf("%d bytes (%d MB, %d MiB) copied, 3 s, %d MB/s", half, half/1000/1000, half>>20, rate(half, took)/1000/1000)
	t.stampf("%d+0 records in", blocks)
	t.stampf("%d+0 records out", blocks)
	t.stampf("%s", summary)
	t.stampf("successfully imported '%s'", v.VolID)
	t.stampf("%d+%d records in", blocks/32, blocks/11)
	t.stampf("%d+%d records out", blocks/32, blocks/11)
	t.stampf("%s", summary)
	t.stampf("volume '%s' is '%s' on the target", v.VolID, v.VolID)
}

// onNode logs a command that runs on the other node.
func (t *task) onNode(to *node, format string, args ...any) {
	t.stampf("# /usr/bin/ssh -e none -o 'BatchMode=yes' -o 'HostKeyAlias=%[1]s' -o 'UserKnownHostsFile=/etc/pve/nodes/%[1]s/ssh_known_hosts' "+
		"-o 'GlobalKnownHostsFile=none' root@%[2]s %[3]s", to.Name, to.IP, fmt.Sprintf(format, args...))
}

// clockText writes a duration as 00:01:02.
func clockText(d time.Duration) string {
	return time.Unix(0, 0).UTC().Add(d.Truncate(time.Second)).Format("15:04:05")
}
