package server

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// runRestore is the worker of a restore: new volumes, the archive's content, its configuration with the request's
// options on top. A container that is overwritten is removed only when the new one's volumes are there.
func (j *createJob) runRestore() error {
	t, s := j.t, j.t.s
	file := s.volumeOn(t.Node, j.r.archive)
	if file == nil || file.Archive == nil {
		return failf("volume '%s' does not exist", j.r.archive)
	}
	t.logf("recovering backed-up configuration from '%s'", j.r.archive)
	given := j.config
	j.config = map[string]string{}
	if len(j.r.mounts) == 0 {
		if err := j.mountsOf(file.Archive.Config); err != nil {
			return err
		}
	}
	if err := j.allocate(); err != nil {
		return err
	}
	t.logf("restoring '%s' now..", j.r.archive)
	t.logExtract(volumePathOf(s.st.Storages[storageOf(file.VolID)], file.VolID), max(file.Size, 1), s.delays().Create)
	if err := t.sleep(s.delays().Create * 4 / 5); err != nil {
		return err
	}
	if st := s.st.Storages[j.r.storage]; st != nil && s.storageUsed(st, t.Node)+file.Used > st.Total {
		t.logf("tar: ./usr/lib: Cannot write: No space left on device")
		t.logf("tar: Exiting with failure status due to previous errors")
		return failf("command 'lxc-usernsexec -m u:0:100000:65536 -m g:0:100000:65536 -- tar xpf - --totals --numeric-owner --acls --xattrs "+
			"-C /var/lib/lxc/%d/rootfs' failed: exit code 2", j.r.vmid)
	}
	if err := j.removeOverwritten(); err != nil {
		return err
	}
	if err := j.unpack(file); err != nil {
		return err
	}
	t.logf("merging backed-up and given configuration..")
	j.merge(file.Archive, given)
	return j.finish()
}

// mountsOf asks for volumes as the backed-up container had them, on the storage of the request.
func (j *createJob) mountsOf(config map[string]string) error {
	for _, key := range mountKeys(config) {
		mount := parseMount(key, config[key])
		if kind := mount.kind(); kind != "volume" && !j.r.root {
			return failf("restoring '%s' to %s mount is only possible for root", key, kind)
		}
		if mount.kind() != "volume" || (key != "rootfs" && mount.values["backup"] != "1") {
			continue
		}
		gib := float64(sizeBytes(mount.values["size"])) / (1 << 30)
		delete(mount.values, "size")
		mount.values["volume"] = j.r.storage + ":" + trimFloat(gib)
		j.r.mounts[key] = mount.String()
	}
	return nil
}

// merge makes the new configuration.
func (j *createJob) merge(from *archive, given map[string]string) {
	merged := map[string]string{}
	for key, value := range from.Config {
		switch kind, _ := splitNumbered(key); {
		case key == "rootfs" || kind == "mp" || kind == "unused":
		case key == "lock" || key == "parent" || key == "template" || key == "snaptime":
		case kind == "net" && j.r.unique:
			merged[key] = j.t.s.freshNet(value)
		default:
			merged[key] = value
		}
	}
	maps.Copy(merged, given)
	maps.Copy(merged, j.config)
	if merged["unprivileged"] == "0" {
		delete(merged, "unprivileged")
	}
	j.config, j.g.Systemd = merged, from.Systemd
	switch {
	case len(from.Raw) == 0 || j.r.root:
		j.g.Raw = from.Raw
	default: // no token may write them
		j.t.warnf("skipping custom lxc options, restore manually as root:")
		j.t.logf("--------------------------------")
		for _, line := range from.Raw {
			j.t.logf("%s: %s", line[0], line[1])
		}
		j.t.logf("--------------------------------")
	}
	j.fillIn()
}

// removeOverwritten destroys the container that a forced restore replaces, with its volumes.
func (j *createJob) removeOverwritten() error {
	if j.old == nil {
		return nil
	}
	old := j.old
	j.old = nil
	j.t.s.st.Guests[j.r.vmid] = j.g
	return j.t.s.removeGuestVolumes(old)
}

// unpack puts the archive's content into the engine.
func (j *createJob) unpack(file *volume) error {
	s, vmid := j.t.s, j.r.vmid
	content, err := s.openBlob(file.Blob)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	err = s.inEngine(j.t.ctx, func(ctx context.Context, e engine.Engine) error { return e.Import(ctx, vmid, content) })
	if err != nil {
		return err
	}
	j.rooted = s.engine != nil
	for _, key := range optionsOf(j.config, "mp") {
		if err := j.unpackVolume(file, key); err != nil {
			return err
		}
	}
	return nil
}

// unpackVolume replaces a new, empty volume by the backup's copy.
func (j *createJob) unpackVolume(file *volume, key string) error {
	to, from := parseMount(key, j.config[key]).volid(), archivedVolume(file.VolID, key)
	return j.t.s.inEngine(j.t.ctx, func(ctx context.Context, e engine.Engine) error {
		if err := e.DestroyVolume(ctx, to); err != nil && !errors.Is(err, engine.ErrNotFound) {
			return err
		}
		return e.CopyVolume(ctx, from, to)
	})
}

// archivedVolume is the engine's name for a mount point's content in a backup.
func archivedVolume(backup, key string) string { return backup + "#" + key }

// openBlob opens what a backup holds. Without an engine a backup holds nothing.
func (s *Server) openBlob(name string) (io.ReadCloser, error) {
	if name == "" {
		return io.NopCloser(strings.NewReader("")), nil
	}
	return s.readBlob(name)
}
