package server

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// createRequest is a POST of a new container, split into what it asks for.
type createRequest struct {
	vmid    int
	archive string // template file or backup
	restore bool
	force   bool // overwrite the container that has the id
	unique  bool // restore with new hardware addresses
	start   bool
	root    bool // asked by root@pam with its password
	ha      bool
	pool    string
	storage string // for a root without a storage of its own
	keys    []string
	config  map[string]string // options without volumes
	mounts  map[string]string // rootfs, mpN as asked for
}

// notConfig are parameters of a create that aren't options of the configuration.
var notConfig = map[string]bool{
	"node": true, "vmid": true, "ostemplate": true, "restore": true, "force": true, "unique": true, "start": true,
	"pool": true, "storage": true, "ssh-public-keys": true, "password": true, "bwlimit": true, "ha-managed": true,
	"ignore-unpack-errors": true, "unprivileged": true,
}

var sizeOnly = regexp.MustCompile(`\A\d+(\.\d+)?\z`)

// newCreateRequest reads the parameters.
func newCreateRequest(c *call) (*createRequest, map[string]string) {
	r := &createRequest{
		vmid: c.params.num("vmid"), archive: c.params.str("ostemplate"), restore: c.params.flag("restore"),
		force: c.params.flag("force"), unique: c.params.flag("unique"), start: c.params.flag("start"),
		ha: c.params.flag("ha-managed"), pool: c.params.str("pool"), storage: c.params.str("storage"),
		root: c.root(), config: map[string]string{}, mounts: map[string]string{},
	}
	if r.storage == "" {
		r.storage = "local"
	}
	asked := map[string]string{}
	for key, value := range c.params {
		if notConfig[key] {
			continue
		}
		asked[key] = value
		switch kind, _ := splitNumbered(key); {
		case key == "rootfs" || kind == "mp":
			if sizeOnly.MatchString(value) {
				value = r.storage + ":" + value
			}
			r.mounts[key] = value
		case kind == "unused":
		default:
			r.config[key] = value
		}
	}
	return r, asked
}

// lxcCreate makes a container from a template file, or from a backup with restore=1. The order of its checks is the
// server's: the id, the keys, the pool, the right to allocate, the options' rights, the archive, the storages.
func (s *Server) lxcCreate(c *call) (any, error) {
	r, asked := newCreateRequest(c)
	old := s.st.Guests[r.vmid]
	overwrites := r.restore && r.force && old != nil && old.Node == c.node.Name
	if err := s.checkTarget(r, old, overwrites); err != nil {
		return nil, err
	}
	keys, err := parsePublicKeys(c.params.str("ssh-public-keys"))
	if err != nil {
		return nil, err
	}
	r.keys = keys
	if err := c.checkPoolExists(r.pool); err != nil {
		return nil, err
	}
	if err := c.checkAllocate(r.vmid, r.pool, overwrites); err != nil {
		return nil, err
	}
	unprivileged := !c.params.has("unprivileged") || c.params.flag("unprivileged")
	rights := configRights{c: c, vmid: r.vmid, pool: r.pool, unprivileged: unprivileged}
	if err := rights.check(asked, nil); err != nil {
		return nil, err
	}
	if err := c.checkVolumeAccess(r.vmid, r.archive); err != nil {
		return nil, err
	}
	if err := c.checkCreateStorages(r); err != nil {
		return nil, err
	}
	config, err := s.createConfig(r)
	if err != nil {
		return nil, err
	}
	switch {
	case r.restore && c.params.has("unprivileged"): // else as the backup has it
		config["unprivileged"] = strconv.Itoa(boolInt(unprivileged))
	case unprivileged && !r.restore:
		config["unprivileged"] = "1"
	}
	// Between the first look at the id and its reservation another request may take it.
	if err := c.sleep(s.delays().Config); err != nil {
		return nil, err
	}
	return s.startCreate(c, r, config, overwrites)
}

// checkTarget: a new id must be free; a restore over a container must find it stopped and unprotected.
func (s *Server) checkTarget(r *createRequest, old *guest, overwrites bool) error {
	if !overwrites {
		return s.checkVMIDUnused(r.vmid)
	}
	if old.active() {
		return failf("unable to restore CT %d - container is running", r.vmid)
	}
	if err := old.checkLock(); err != nil {
		return err
	}
	return old.checkProtection(fmt.Sprintf("unable to restore CT %d", r.vmid))
}

// checkPoolExists: a pool that isn't there is a question of permission.
func (c *call) checkPoolExists(pool string) error {
	if pool != "" && c.s.st.Pools[pool] == nil {
		return forbidden("pool '" + pool + "' does not exist")
	}
	return nil
}

// checkAllocate demands VM.Allocate on the id or on the pool; the owner of a container may restore over it.
func (c *call) checkAllocate(vmid int, pool string, overwrites bool) error {
	path := "/vms/" + strconv.Itoa(vmid)
	switch {
	case c.may(path, "VM.Allocate"), pool != "" && c.may("/pool/"+pool, "VM.Allocate"):
		return nil
	case overwrites && c.may(path, "VM.Backup"):
		return nil
	}
	return forbidden("")
}

// checkCreateStorages: every storage of a new volume must be there, hold containers and have space for the caller.
func (c *call) checkCreateStorages(r *createRequest) error {
	if len(r.mounts) > 0 && r.mounts["rootfs"] == "" {
		return failf("mount points configured, but 'rootfs' not set - aborting")
	}
	ids := []string{}
	for _, key := range mountKeys(r.mounts) {
		ids = append(ids, storageOf(parseMount(key, r.mounts[key]).volid()))
	}
	if len(ids) == 0 {
		ids = append(ids, r.storage)
	}
	for _, id := range ids {
		st, err := c.s.lxcStorage(c.node.Name, id)
		if err != nil {
			return err
		}
		if !contains(st.Content, "rootdir") {
			return paramError("storage", "storage '%s' does not support container directories", id)
		}
		if err := c.check("/storage/"+id, "Datastore.AllocateSpace"); err != nil {
			return err
		}
	}
	return nil
}

func contains(list []string, item string) bool {
	for _, have := range list {
		if have == item {
			return true
		}
	}
	return false
}

// systemdIn guesses the version of systemd in a template file from its name; 0 for a small one without.
func systemdIn(archive string) int {
	if !strings.Contains(archive, "-standard_") {
		return 0
	}
	for _, known := range []struct {
		name    string
		version int
	}{{"debian-12", 252}, {"debian-13", 257}, {"ubuntu-22.04", 249}, {"ubuntu-24.04", 255}} {
		if strings.Contains(archive, known.name) {
			return known.version
		}
	}
	return 0
}

// createConfig is the configuration that the options make, without volumes.
func (s *Server) createConfig(r *createRequest) (map[string]string, error) {
	config := map[string]string{}
	for _, key := range sortedKeys(r.config) {
		value, err := storedValue(&guest{VMID: r.vmid, Config: config}, key, r.config[key])
		if err != nil {
			return nil, err
		}
		if kind, _ := splitNumbered(key); kind == "net" {
			value = s.completeNet(value)
		}
		if key != "description" || value != "" {
			config[key] = value
		}
	}
	return config, nil
}

var publicKeyForm = regexp.MustCompile(`\A(?:[a-z0-9@.,="\- ]+ )?(ssh-(rsa|dss|ed25519)|ecdsa-sha2-nistp\d+|sk-[a-z0-9@.-]+) [A-Za-z0-9+/=]+( .*)?\z`)

// parsePublicKeys splits authorized_keys lines; blank lines and comments are allowed.
func parsePublicKeys(text string) ([]string, error) {
	var keys []string
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !publicKeyForm.MatchString(line) {
			return nil, failf("SSH public key validation error")
		}
		keys = append(keys, line)
	}
	return keys, nil
}

// startCreate enters the container, locked, and starts the worker. Until that has ended the configuration shows only
// the lock.
func (s *Server) startCreate(c *call, r *createRequest, config map[string]string, overwrites bool) (any, error) {
	verb, kind := "unable to create", "vzcreate"
	if r.restore {
		verb, kind = "unable to restore", "vzrestore"
	}
	var old *guest
	if overwrites {
		old = s.st.Guests[r.vmid]
		if err := s.checkTarget(r, old, old != nil); err != nil {
			return nil, err
		}
	} else if err := s.checkVMIDUnused(r.vmid); err != nil {
		return nil, failf("%s CT %d - %v", verb, r.vmid, err)
	}
	g := &guest{
		VMID: r.vmid, Node: c.node.Name, Created: s.now(), Config: map[string]string{"lock": "create"},
		Systemd: systemdIn(r.archive),
	}
	if old != nil { // what was there is replaced at the end, if all goes well
		g.Firewall = old.Firewall
		old.Config["lock"] = "create"
	} else {
		s.st.Guests[r.vmid] = g
	}
	s.dirty()
	return c.startTask(kind, strconv.Itoa(r.vmid), func(t *task) error {
		job := &createJob{t: t, r: r, g: g, old: old, config: config}
		if err := job.run(); err != nil {
			job.undo()
			return failf("%s CT %d - %v", verb, r.vmid, err)
		}
		if r.start {
			s.startTask(t.Node, "vzstart", t.ID, t.User, func(t *task) error { return t.startGuest(r.vmid) })
		}
		return nil
	})
}
