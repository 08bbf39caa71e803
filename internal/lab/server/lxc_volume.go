package server

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mountPoint is a parsed rootfs or mpN.
type mountPoint struct {
	key    string            // rootfs, mp0
	values map[string]string // volume, mp, size, …
}

var newDisk = regexp.MustCompile(`\A([^/:\s]+):(\d+(?:\.\d+)?)\z`)

// parseMount reads a mount point's value. Bad text gives an empty one: parameters were checked before.
func parseMount(key, value string) mountPoint {
	values, err := parsePropertyString(propertyKeys("POST", "/nodes/{node}/lxc", "mp[n]"), value)
	if err != nil {
		values = map[string]string{}
	}
	return mountPoint{key: key, values: values}
}

func (m mountPoint) String() string { return printProperties(m.values, "volume", "mp") }

// volid is the volume's name, or a path on the node.
func (m mountPoint) volid() string { return m.values["volume"] }

// kind is volume, bind (a folder of the node) or device.
func (m mountPoint) kind() string {
	switch {
	case strings.HasPrefix(m.volid(), "/dev/"):
		return "device"
	case strings.HasPrefix(m.volid(), "/"):
		return "bind"
	}
	return "volume"
}

// wanted reads "STORAGE:GiB", the request for a new volume.
func (m mountPoint) wanted() (storageID string, bytes int64, ok bool) {
	match := newDisk.FindStringSubmatch(m.volid())
	if match == nil {
		return "", 0, false
	}
	gib, err := strconv.ParseFloat(match[2], 64)
	if err != nil {
		return "", 0, false
	}
	return match[1], int64(math.Round(gib * (1 << 30))), true
}

// storageOf is the storage part of a volume's name.
func storageOf(volid string) string {
	id, _, _ := strings.Cut(volid, ":")
	return id
}

// mountKeys are rootfs and the mount points of a configuration, the root first.
func mountKeys(config map[string]string) []string {
	var keys []string
	if _, ok := config["rootfs"]; ok {
		keys = append(keys, "rootfs")
	}
	return append(keys, optionsOf(config, "mp")...)
}

// lxcStorage is a storage that a node can use for containers' volumes.
func (s *Server) lxcStorage(node, id string) (*storage, error) {
	st := s.st.Storages[id]
	switch {
	case st == nil:
		return nil, failf("storage '%s' does not exist", id)
	case st.Disable:
		return nil, failf("storage '%s' is disabled", id)
	case len(st.Nodes) > 0 && !slices.Contains(st.Nodes, node):
		return nil, failf("storage '%s' is not available on node '%s'", id, node)
	}
	return st, nil
}

// keyOf is the key of a volume that a node sees.
func (s *Server) keyOf(node, volid string) string {
	if st := s.st.Storages[storageOf(volid)]; st != nil && st.Shared {
		node = ""
	}
	return volumeKey(node, volid)
}

// volumeOn finds a volume on a node; nil if there is none.
func (s *Server) volumeOn(node, volid string) *volume { return s.st.Volumes[s.keyOf(node, volid)] }

// addVolume enters a new volume of a container; the next free number makes its name.
func (s *Server) addVolume(node string, st *storage, vmid int, bytes int64) *volume {
	format := "raw"
	if bytes == 0 || st.Type == "zfspool" {
		format = "subvol"
	}
	v := &volume{Content: "rootdir", Format: format, Size: bytes, VMID: vmid, CTime: s.now().Unix(), Node: node}
	if st.Shared {
		v.Node = ""
	}
	for n := 0; ; n++ {
		v.VolID = diskName(st, "vm", vmid, n, format)
		if !s.diskNumberTaken(node, st, vmid, n) {
			break
		}
	}
	v.Used = min(v.Size, 34*1000*1000)
	s.st.Volumes[volumeKey(v.Node, v.VolID)] = v
	s.dirty()
	return v
}

// diskName is a volume's name by the kind of its storage. kind is vm or base.
func diskName(st *storage, kind string, vmid, n int, format string) string {
	stem := fmt.Sprintf("%s-%d-disk-%d", kind, vmid, n)
	if format == "subvol" {
		stem = fmt.Sprintf("%s-%d-disk-%d", map[string]string{"vm": "subvol", "base": "basevol"}[kind], vmid, n)
	}
	switch st.Type {
	case "lvm", "lvmthin", "rbd", "zfspool":
		return fmt.Sprintf("%s:%s", st.ID, stem)
	}
	return fmt.Sprintf("%s:%d/%s.%s", st.ID, vmid, stem, format)
}

func (s *Server) diskNumberTaken(node string, st *storage, vmid, n int) bool {
	for _, kind := range []string{"vm", "base"} {
		for _, format := range []string{"raw", "subvol"} {
			if s.volumeOn(node, diskName(st, kind, vmid, n, format)) != nil {
				return true
			}
		}
	}
	return false
}

// renameVolume gives a volume another name and owner.
func (s *Server) renameVolume(v *volume, node, volid string, vmid int) {
	delete(s.st.Volumes, volumeKey(v.Node, v.VolID))
	for _, child := range s.st.Volumes {
		if child.Parent == v.VolID && child.Node == v.Node {
			child.Parent = volid
		}
	}
	if v.Node != "" {
		v.Node = node
	}
	v.VolID, v.VMID = volid, vmid
	s.st.Volumes[volumeKey(v.Node, volid)] = v
	s.dirty()
}

// linksNeedBase says that linked clones of a storage depend on the template's volume: it can't be removed before them.
// On btrfs and LVM-thin a clone stands alone.
func linksNeedBase(st *storage) bool {
	return st != nil && (st.Type == "zfspool" || st.Type == "rbd")
}

// canLink says whether a storage makes linked clones of containers' volumes; canSnapshot is the same for snapshots.
// A folder can do neither with raw images.
func canLink(st *storage) bool     { return st != nil && slices.Contains(snapshotStorages, st.Type) }
func canSnapshot(st *storage) bool { return st != nil && slices.Contains(snapshotStorages, st.Type) }

var snapshotStorages = []string{"btrfs", "lvmthin", "zfspool", "rbd"}

// removeVolume forgets a volume, unless linked clones need it.
func (s *Server) removeVolume(node, volid string) error {
	v := s.volumeOn(node, volid)
	if v == nil {
		return nil
	}
	if linksNeedBase(s.st.Storages[storageOf(volid)]) {
		for _, child := range s.st.Volumes {
			if child.Parent == volid && child.Node == v.Node {
				_, name, _ := strings.Cut(volid, ":")
				return failf("base volume '%s' is still in use by linked clones", name)
			}
		}
	}
	delete(s.st.Volumes, volumeKey(v.Node, volid))
	s.dirty()
	return nil
}

// addUnused enters a volume as the first free unusedN, unless the configuration has it somewhere.
func addUnused(config map[string]string, volid string) {
	if volumeInUse(config, volid) {
		return
	}
	for n := 0; ; n++ {
		key := fmt.Sprintf("unused%d", n)
		if _, taken := config[key]; !taken {
			config[key] = volid
			return
		}
	}
}

// volumeInUse says that a configuration has a volume as a mount point or as unused.
func volumeInUse(config map[string]string, volid string) bool {
	for _, key := range mountKeys(config) {
		if parseMount(key, config[key]).volid() == volid {
			return true
		}
	}
	for _, key := range optionsOf(config, "unused") {
		if config[key] == volid {
			return true
		}
	}
	return false
}

// volumeInSnapshots says that a snapshot needs a volume.
func (g *guest) volumeInSnapshots(volid string) bool {
	for _, snap := range g.Snapshots {
		if volumeInUse(snap.Config, volid) {
			return true
		}
	}
	return false
}
