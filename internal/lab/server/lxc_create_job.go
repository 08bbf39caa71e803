package server

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// createJob is the worker of a create or restore.
type createJob struct {
	t      *task
	r      *createRequest
	g      *guest
	old    *guest
	config map[string]string
	made   []*volume
	rooted bool // the engine has the guest
}

func (j *createJob) run() error {
	if j.r.restore {
		return j.runRestore()
	}
	t, s := j.t, j.t.s
	if err := j.allocate(); err != nil {
		return err
	}
	file := s.volumeOn(t.Node, j.r.archive)
	if file == nil {
		t.logf("volume '%s' does not exist", j.r.archive)
		return failf("volume '%s' does not exist", j.r.archive)
	}
	delays := s.delays()
	t.logExtract(volumePathOf(s.st.Storages[storageOf(file.VolID)], file.VolID), file.Size*11/4/4096*4096, delays.Create)
	if j.config["arch"] == "" {
		t.logf("Detected container architecture: amd64")
	}
	if err := t.sleep(delays.Create * 3 / 5); err != nil {
		return err
	}
	if err := j.makeRoot(s.imageOf(file)); err != nil {
		return err
	}
	j.fillIn()
	t.logHostKeys(j.config["hostname"])
	if err := t.sleep(delays.Create / 5); err != nil {
		return err
	}
	return j.finish()
}

// allocate makes the volumes, under their storage's lock.
func (j *createJob) allocate() error {
	t, s := j.t, j.t.s
	if len(j.r.mounts) == 0 {
		j.r.mounts["rootfs"] = j.r.storage + ":4" // the server's default size
	}
	for _, key := range mountKeys(j.r.mounts) {
		mount := parseMount(key, j.r.mounts[key])
		id, bytes, ok := mount.wanted()
		if !ok {
			j.config[key] = mount.String()
			continue
		}
		st, err := s.lxcStorage(t.Node, id)
		if err != nil {
			return err
		}
		release, err := t.lockPath(storageLockPath(id))
		if err != nil {
			return err
		}
		v := s.addVolume(t.Node, st, j.r.vmid, bytes)
		j.made = append(j.made, v)
		err = t.sleep(s.delays().Create / 5 / duration(len(j.r.mounts)))
		release()
		if err != nil {
			return err
		}
		t.logFormat(st, v)
		mount.values["volume"], mount.values["size"] = v.VolID, formatSize(bytes)
		j.config[key] = mount.String()
		if key != "rootfs" {
			volid := v.VolID
			err = s.inEngine(t.ctx, func(ctx context.Context, e engine.Engine) error { return e.AllocVolume(ctx, volid, bytes) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// imageOf is the engine's image that a template file stands for: "debian-12-standard_12.12-1_amd64.tar.zst" is the engine's
// debian-12 where it has one. Others, the small ones that labs begin with among them, are its default.
func (s *Server) imageOf(file *volume) string {
	if file.Blob != "" || s.engine == nil {
		return file.Blob
	}
	name, _, standard := strings.Cut(path.Base(file.VolID), "-standard")
	if standard && slices.Contains(s.engine.Images(), name) {
		return name
	}
	return ""
}

// makeRoot unpacks a template file in the engine.
func (j *createJob) makeRoot(image string) error {
	spec := engine.RootSpec{Image: image, AuthorizedKeys: j.r.keys, Plain: true, Bytes: sizeBytes(parseMount("rootfs", j.config["rootfs"]).values["size"])}
	err := j.t.s.inEngine(j.t.ctx, func(ctx context.Context, e engine.Engine) error { return e.CreateRoot(ctx, j.r.vmid, spec) })
	j.rooted = err == nil && j.t.s.engine != nil
	return err
}

// fillIn sets what the server writes into every configuration.
func (j *createJob) fillIn() {
	for key, value := range map[string]string{
		"arch": "amd64", "ostype": "debian", "memory": "512", "swap": "512", "hostname": fmt.Sprintf("CT%d", j.r.vmid),
	} {
		if j.config[key] == "" {
			j.config[key] = value
		}
	}
}

// finish shows the configuration and unlocks the container.
func (j *createJob) finish() error {
	s := j.t.s
	delete(j.config, "lock")
	j.g.Config = j.config
	s.st.Guests[j.r.vmid] = j.g
	if j.r.pool != "" {
		s.joinPool(j.r.pool, j.r.vmid)
	}
	if j.r.ha {
		sid := fmt.Sprintf("ct:%d", j.r.vmid)
		s.st.HA[sid] = &haResource{SID: sid, Options: map[string]string{}}
	}
	s.dirty()
	return s.mountGuest(j.t.ctx, j.g)
}

// joinPool enters a container into a pool, and takes it out of any other.
func (s *Server) joinPool(id string, vmid int) {
	for _, p := range s.st.Pools {
		delete(p.Guests, vmid)
	}
	if p := s.st.Pools[id]; p != nil {
		p.Guests[vmid] = true
	}
}

// undo removes what a failed create has made.
func (j *createJob) undo() {
	s := j.t.s
	if j.old != nil {
		if s.st.Guests[j.r.vmid] == j.old {
			delete(j.old.Config, "lock")
		}
	} else if s.st.Guests[j.r.vmid] == j.g {
		delete(s.st.Guests, j.r.vmid)
	}
	for _, v := range j.made {
		delete(s.st.Volumes, volumeKey(v.Node, v.VolID))
		if err := s.destroyVolumeInEngine(s.ctx, v.VolID); err != nil {
			j.t.logf("%v", err)
		}
	}
	if j.rooted {
		if err := s.inEngine(s.ctx, func(ctx context.Context, e engine.Engine) error { return e.Destroy(ctx, j.r.vmid) }); err != nil {
			j.t.logf("%v", err)
		}
	}
	s.dirty()
}

// storageLockPath is the lock file under which a storage's volumes are made and removed.
func storageLockPath(id string) string { return "/var/lock/pve-manager/pve-storage-" + id }
