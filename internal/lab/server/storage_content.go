package server

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// volumeOf finds the volume of the path, given as a volume id or as the part after the storage's name.
func (s *Server) volumeOf(c *call) (*volume, *storage, error) {
	volid := c.params.str("volume")
	id := c.params.str("storage")
	if i := strings.Index(volid, ":"); i >= 0 {
		id = volid[:i]
	} else {
		volid = id + ":" + volid
	}
	st, err := s.storageOn(c.node.Name, id)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range s.volumesOn(c.node.Name, st) {
		if v.VolID == volid {
			return v, st, nil
		}
	}
	return nil, st, failf("volume '%s' does not exist", volid)
}

// filePath is where a volume's file would be.
func (v *volume) filePath(st *storage) string {
	_, name, _ := strings.Cut(v.VolID, ":")
	folder := map[string]string{"vztmpl": "template/cache", "iso": "template/iso", "backup": "dump", "snippets": "snippets", "import": "import"}[v.Content]
	if folder == "" {
		return path.Join(st.Path, "images", name)
	}
	return path.Join(st.Path, folder, path.Base(name))
}

func (s *Server) contentGet(c *call) (any, error) {
	v, st, err := s.volumeOf(c)
	if err != nil {
		return nil, err
	}
	if !c.mayReadVolume(st, v) {
		return nil, forbidden(fmt.Sprintf("/storage/%s, Datastore.Audit|Datastore.AllocateSpace", st.ID))
	}
	return map[string]any{
		"path": v.filePath(st), "size": v.Size, "used": v.Used, "format": "raw", "notes": v.Notes, "protected": boolInt(v.Protect),
	}, nil
}

func (s *Server) contentUpdate(c *call) (any, error) {
	v, st, err := s.volumeOf(c)
	if err != nil {
		return nil, err
	}
	if err := c.checkVolumeChange(st, v); err != nil {
		return nil, err
	}
	if c.params.has("notes") {
		v.Notes = c.params.str("notes")
	}
	if c.params.has("protected") {
		v.Protect = c.params.flag("protected")
	}
	return nil, nil
}

// checkVolumeChange is the right to change or remove a volume: of the storage, or for a backup of its guest.
func (c *call) checkVolumeChange(st *storage, v *volume) error {
	path := "/storage/" + st.ID
	switch {
	case v.Content == "backup" && v.VMID != 0:
		if c.may(path, "Datastore.Allocate") {
			return nil
		}
		if err := c.check(path, "Datastore.AllocateSpace"); err != nil {
			return err
		}
		return c.checkGuest(v.VMID, "VM.Backup")
	case v.Content == "vztmpl" || v.Content == "iso":
		return c.check(path, "Datastore.AllocateTemplate")
	}
	return c.check(path, "Datastore.Allocate")
}

// contentDelete removes a volume in a task. With delay it waits that many seconds and answers without a task's name when
// the task is done by then.
func (s *Server) contentDelete(c *call) (any, error) {
	v, st, err := s.volumeOf(c)
	if err != nil {
		return nil, err
	}
	if err := c.checkVolumeChange(st, v); err != nil {
		return nil, err
	}
	if v.VMID != 0 && (v.Content == "rootdir" || v.Content == "images") && s.st.Guests[v.VMID] != nil {
		return nil, failf("Cannot remove image, a guest with VMID '%d' exists!\nYou can delete the image from the guest's hardware pane", v.VMID)
	}
	id := st.ID
	if v.VMID != 0 {
		id = fmt.Sprintf("%d@%s", v.VMID, st.ID)
	}
	name, err := c.startTask("imgdel", id, func(t *task) error {
		release, err := s.lockStorage(t.ctx, st.ID)
		if err != nil {
			return err
		}
		defer release()
		return s.removeContent(t, st, v)
	})
	if err != nil {
		return nil, err
	}
	started := s.findTask(name)
	if seconds := c.params.num("delay"); seconds > 0 {
		done := s.waitUntil(c.ctx, delay(seconds)*1e9, func() bool { return !started.running })
		if done && started.Exit == "OK" {
			return nil, nil
		}
	}
	return name, nil
}

func (s *Server) removeContent(t *task, st *storage, v *volume) error {
	if v.Protect {
		return fmt.Errorf("cannot remove protected volume '%s' on '%s'", v.VolID, st.ID)
	}
	if err := s.dropArchive(t.ctx, v); err != nil {
		return err
	}
	delete(s.st.Volumes, volumeKey(v.Node, v.VolID))
	t.logf("Removed volume '%s'", v.VolID)
	return nil
}

// upload takes a file into a storage: a template, an image. Its content isn't kept, only that it is there.
func (s *Server) upload(c *call) (any, error) {
	st, err := s.storageOn(c.node.Name, c.params.str("storage"))
	if err != nil {
		return nil, err
	}
	name := path.Base(c.params.str("filename"))
	format, err := s.checkFileName(c.params.str("content"), name)
	if err != nil {
		return nil, err
	}
	size, _ := strconv.ParseInt(strings.TrimPrefix(c.params.str("tmpfilename"), "/var/tmp/pveupload-"), 16, 64)
	return c.startTask("imgcopy", "", func(t *task) error {
		t.logf("starting file import from: %s", c.params.str("tmpfilename"))
		t.logf("target node: %s", c.node.Name)
		volid := fmt.Sprintf("%s:%s/%s", st.ID, c.params.str("content"), name)
		s.st.Volumes[volumeKey(c.node.Name, volid)] = &volume{
			VolID: volid, Node: c.node.Name, Content: c.params.str("content"), Format: format, Size: size, Used: size, CTime: s.now().Unix(),
		}
		t.logf("finished file import successfully")
		return nil
	})
}

// templateFormats are the formats of container template files by their names' endings.
var templateFormats = map[string]string{".tar.gz": "tgz", ".tar.xz": "txz", ".tar.zst": "tzst", ".tar.bz2": "tbz2"}

// checkFileName says a file's format, or the server's complaint about its ending.
func (s *Server) checkFileName(content, name string) (string, error) {
	if content == "vztmpl" {
		for ending, format := range templateFormats {
			if strings.HasSuffix(name, ending) {
				return format, nil
			}
		}
		return "", paramError("filename", "wrong file extension")
	}
	if content == "iso" && !strings.HasSuffix(name, ".iso") && !strings.HasSuffix(name, ".img") {
		return "", paramError("filename", "wrong file extension")
	}
	return "iso", nil
}
