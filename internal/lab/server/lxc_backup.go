package server

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// backupJobRun is one vzdump: which containers, where to, how.
type backupJobRun struct {
	t        *task
	ids      []int
	storage  string
	mode     string
	compress string
	notes    string
	protect  bool
	args     string // the command line, as the log shows it
}

// vzdump starts a backup. A container or storage that isn't there shows in the task.
func (s *Server) vzdump(c *call) (any, error) {
	job := &backupJobRun{
		storage: c.params.str("storage"), mode: c.params.str("mode"), compress: c.params.str("compress"),
		notes: c.params.str("notes-template"), protect: c.params.flag("protected"), args: c.vzdumpArguments(),
	}
	if job.storage == "" {
		job.storage = "local"
	}
	if job.mode == "" {
		job.mode = "snapshot"
	}
	id := c.params.str("vmid")
	switch {
	case c.params.flag("all"):
		id = ""
		job.ids = s.guestsOn(c.node.Name)
	case id != "":
		for _, text := range c.params.list("vmid") {
			n, _ := strconv.Atoi(text)
			job.ids = append(job.ids, n)
		}
	case c.params.has("pool"):
		if p := s.st.Pools[c.params.str("pool")]; p != nil {
			job.ids = slices.Sorted(maps.Keys(p.Guests))
		}
	default:
		return nil, paramError("vmid", "property is missing and it is not optional")
	}
	for _, vmid := range job.ids {
		if err := c.check(fmt.Sprintf("/vms/%d", vmid), "VM.Backup"); err != nil {
			return nil, err
		}
	}
	if err := c.check("/storage/"+job.storage, "Datastore.AllocateSpace"); err != nil {
		return nil, err
	}
	if len(job.ids) != 1 {
		id = ""
	}
	return c.startTask("vzdump", id, func(t *task) error {
		job.t = t
		return job.run()
	})
}

// guestsOn are the containers of a node.
func (s *Server) guestsOn(node string) []int {
	var ids []int
	for _, vmid := range slices.Sorted(maps.Keys(s.st.Guests)) {
		if s.st.Guests[vmid].Node == node {
			ids = append(ids, vmid)
		}
	}
	return ids
}

// vzdumpArguments is the call as a command line.
func (c *call) vzdumpArguments() string {
	args := []string{strings.Join(c.params.list("vmid"), " ")}
	for _, key := range sortedKeys(map[string]string(c.params)) {
		if key == "vmid" {
			continue
		}
		value := c.params[key]
		if strings.ContainsAny(value, " {}") {
			value = "'" + value + "'"
		}
		args = append(args, "--"+key+" "+value)
	}
	return strings.Join(args, " ")
}

func (j *backupJobRun) run() error {
	t, s := j.t, j.t.s
	if err := t.sleep(s.delays().Backup / 150); err != nil { // the worker comes up
		return err
	}
	st, err := s.lxcStorage(t.Node, j.storage)
	if err != nil {
		return failf("could not get storage information for '%s': %v", j.storage, err)
	}
	if !slices.Contains(st.Content, "backup") {
		return failf("storage '%s' is not configured for backups", j.storage)
	}
	t.logf("INFO: starting new backup job: vzdump %s", j.args)
	failed := 0
	for _, vmid := range j.ids {
		t.logf("INFO: Starting Backup of VM %d (lxc)", vmid)
		if err := j.backup(st, vmid); err != nil {
			if t.ctx.Err() != nil {
				return err
			}
			failed++
			t.logf("ERROR: Backup of VM %d failed - %v", vmid, err)
			t.logf("INFO: Failed at %s", s.now().UTC().Format(time.DateTime))
		}
	}
	if failed > 0 {
		t.logf("INFO: Backup job finished with errors")
		return failf("job errors")
	}
	t.logf("INFO: Backup job finished successfully")
	return nil
}

// backup saves one container. It is locked meanwhile; mode stop takes it down for that long.
func (j *backupJobRun) backup(st *storage, vmid int) error {
	t, s, begun := j.t, j.t.s, j.t.s.now()
	t.logf("INFO: Backup started at %s", begun.UTC().Format(time.DateTime))
	g, err := s.guestOn(t.Node, vmid)
	if err != nil {
		return failf("unable to find VM '%d'", vmid)
	}
	if err := j.lock(g); err != nil {
		return err
	}
	defer func() { delete(g.Config, "lock"); s.dirty() }()
	wasRunning := g.active()
	t.logf("INFO: status = %s", map[bool]string{true: "running", false: "stopped"}[wasRunning])
	mode := j.modeFor(g, wasRunning)
	if mode == "stop" && wasRunning {
		t.logf("INFO: stopping virtual guest")
		if err := t.shutdown(g, 600); err != nil {
			return err
		}
	} else if mode == "snapshot" {
		t.logf("INFO: create storage snapshot 'vzdump'")
	}
	err = j.archive(st, g, begun)
	if mode == "snapshot" && err == nil {
		t.logf("INFO: cleanup temporary 'vzdump' snapshot")
	}
	if mode == "stop" && wasRunning {
		t.logf("INFO: restarting vm")
		if serr := t.boot(g); serr != nil {
			return serr
		}
		t.logf("INFO: guest is online again after %d seconds", int(s.now().Sub(begun).Seconds()))
	}
	if err != nil {
		return err
	}
	t.logf("INFO: Finished Backup of VM %d (%s)", vmid, clockText(s.now().Sub(begun)))
	t.logf("INFO: Backup finished at %s", s.now().UTC().Format(time.DateTime))
	return nil
}

// modeFor settles how the container is saved, and says what of it: a stopped one needs no care, and volumes without
// snapshots are suspended instead.
func (j *backupJobRun) modeFor(g *guest, running bool) string {
	t, mode := j.t, j.mode
	logMode := func() {
		t.logf("INFO: backup mode: %s", mode)
		t.logf("INFO: ionice priority: 7")
	}
	if !running {
		mode = "stop"
	}
	if mode == "stop" {
		logMode()
	}
	t.logf("INFO: CT Name: %s", g.name())
	for _, key := range mountKeys(g.Config) {
		mount, path := parseMount(key, g.Config[key]), "/"
		if key != "rootfs" {
			path = mount.values["mp"]
		}
		switch {
		case key == "rootfs" || mount.values["backup"] == "1":
			t.logf("INFO: including mount point %s ('%s') in backup", key, path)
		case mount.kind() == "volume":
			t.logf("INFO: excluding volume mount point %s ('%s') from backup (disabled)", key, path)
		default:
			t.logf("INFO: excluding %s mount point %s ('%s') from backup (not a volume)", mount.kind(), key, path)
		}
	}
	if mode == "snapshot" && !t.s.hasSnapshotFeature(g.Config) {
		t.logf("INFO: mode failure - some volumes do not support snapshots")
		t.logf("INFO: trying 'suspend' mode instead")
		mode = "suspend"
	}
	if mode != "stop" {
		logMode()
	}
	return mode
}

// lock marks the container as being saved.
func (j *backupJobRun) lock(g *guest) error {
	release, err := j.t.lockConfig(g.VMID)
	if err != nil {
		return err
	}
	defer release()
	if err := g.checkLock(); err != nil {
		return err
	}
	g.Config["lock"] = "backup"
	j.t.s.dirty()
	return nil
}

// archiveEndings are a backup's file name endings by the compression asked for.
var archiveEndings = map[string]string{"": "tar", "0": "tar", "1": "tar.zst", "zstd": "tar.zst", "gzip": "tar.gz", "lzo": "tar.lzo"}

// archive writes the content: the root in one stream, mount points with backup=1 beside it.
func (j *backupJobRun) archive(st *storage, g *guest, begun time.Time) error {
	t, s := j.t, j.t.s
	ending := archiveEndings[j.compress]
	// A name is a second. Where delays are short, two backups would share one.
	for _, v := range s.volumesOn(t.Node, st) {
		if v.Content == "backup" && v.VMID == g.VMID && v.CTime >= begun.Unix() {
			begun = time.Unix(v.CTime+1, 0)
		}
	}
	file := fmt.Sprintf("vzdump-lxc-%d-%s.%s", g.VMID, begun.UTC().Format("2006_01_02-15_04_05"), ending)
	volid := st.ID + ":backup/" + file
	t.logf("INFO: creating vzdump archive '%s'", volumePathOf(st, volid))
	if err := t.sleep(s.delays().Backup); err != nil {
		return err
	}
	vmid := g.VMID
	size, err := s.writeBlob(t.ctx, file, func(ctx context.Context, e engine.Engine, w io.Writer) error {
		return e.Export(ctx, vmid, "", w)
	})
	if err != nil {
		return err
	}
	if s.engine == nil {
		size, file = 159744000, ""
	}
	if s.storageUsed(st, t.Node)+size > st.Total {
		return j.outOfSpace(volumePathOf(st, volid), file)
	}
	config := maps.Clone(g.Config)
	delete(config, "lock")
	delete(config, "parent")
	if err := j.archiveMounts(config, volid); err != nil {
		return err
	}
	t.logf("INFO: Total bytes written: %d (%dMiB, %dMiB/s)", size, size>>20, rate(size, s.delays().Backup)>>20)
	if ending != "tar" {
		size = size * 28 / 100
	}
	t.logf("INFO: archive file size: %dMB", size/1000/1000)
	v := &volume{
		VolID: volid, Node: t.Node, Content: "backup", Format: ending, Size: size, Used: size, VMID: vmid,
		CTime: begun.Unix(), Protect: j.protect, Blob: file, Archive: &archive{Config: config, Raw: slices.Clone(g.Raw), Systemd: g.Systemd},
	}
	if st.Shared {
		v.Node = ""
	}
	if j.notes != "" {
		t.logf("INFO: adding notes to backup")
		v.Notes = strings.NewReplacer("{{guestname}}", g.name(), "{{vmid}}", strconv.Itoa(vmid), "{{node}}", t.Node,
			"{{cluster}}", s.st.Cluster, `\\`, `\`, `\n`, "\n").Replace(j.notes)
	}
	s.st.Volumes[volumeKey(v.Node, volid)] = v
	s.dirty()
	return nil
}

// outOfSpace is the end of an archive that the storage has no room for.
func (j *backupJobRun) outOfSpace(path, blob string) error {
	t, s := j.t, j.t.s
	if err := s.dropArchive(t.ctx, &volume{Blob: blob, Archive: &archive{}}); err != nil {
		return err
	}
	sink := "cat"
	switch j.compress {
	case "1", "zstd":
		sink = "zstd --rsyncable --threads=1"
		t.logf("INFO: zstd: error 70 : Write error : cannot write block : No space left on device ")
	case "gzip":
		sink = "gzip --rsyncable"
		t.logf("INFO: gzip: stdout: No space left on device")
	default:
		t.logf("INFO: cat: write error: No space left on device")
	}
	stem, _, _ := strings.Cut(path, ".tar")
	return failf("command 'set -o pipefail && lxc-usernsexec -m u:0:100000:65536 -m g:0:100000:65536 -- tar cpf - --totals --one-file-system "+
		"--sparse --numeric-owner --acls --xattrs ./ | %s >%s.tar.dat' failed: exit code 70", sink, stem)
}

// archiveMounts copies the mount points that are part of backups.
func (j *backupJobRun) archiveMounts(config map[string]string, backup string) error {
	for _, key := range optionsOf(config, "mp") {
		mount := parseMount(key, config[key])
		if mount.kind() != "volume" || mount.values["backup"] != "1" {
			continue
		}
		from, to := mount.volid(), archivedVolume(backup, key)
		err := j.t.s.inEngine(j.t.ctx, func(ctx context.Context, e engine.Engine) error { return e.CopyVolume(ctx, from, to) })
		if err != nil {
			return err
		}
	}
	return nil
}

// vzdumpDefaults are the defaults of a node on which nothing is configured.
func (s *Server) vzdumpDefaults(*call) (any, error) {
	return map[string]any{
		"all": 0, "bwlimit": 0, "compress": "0", "ionice": 7, "lockwait": 180, "mailnotification": "always",
		"mode": "snapshot", "notification-mode": "auto", "pigz": 0, "prune-backups": map[string]any{"keep-all": "1"},
		"quiet": 0, "remove": 1, "stdexcludes": 1, "stop": 0, "stopwait": 10, "zstd": 1,
	}, nil
}

// vzdumpExtractConfig is the configuration inside a backup, as a file.
func (s *Server) vzdumpExtractConfig(c *call) (any, error) {
	volid := c.params.str("volume")
	if err := c.checkVolumeAccess(0, volid); err != nil {
		return nil, err
	}
	v := s.volumeOn(c.node.Name, volid)
	if v == nil || v.Archive == nil {
		return nil, failf("volume '%s' does not exist", volid)
	}
	return configFile(v.Archive.Config, v.Archive.Raw), nil
}

// configFile writes a configuration as its file has it: the description as comments, the options sorted, the raw lines.
func configFile(config map[string]string, raw [][2]string) string {
	var b strings.Builder
	if text := config["description"]; text != "" {
		for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			fmt.Fprintf(&b, "#%s\n", line)
		}
	}
	for _, key := range sortedKeys(config) {
		if key != "description" {
			fmt.Fprintf(&b, "%s: %s\n", key, config[key])
		}
	}
	for _, line := range raw {
		fmt.Fprintf(&b, "%s: %s\n", line[0], line[1])
	}
	return b.String()
}
