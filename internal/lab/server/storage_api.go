package server

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// routesStorage lists the storage configuration and the storage endpoints of a node.
func (s *Server) routesStorage() {
	s.route("GET", "/storage", s.storageConfigList)
	s.route("POST", "/storage", s.storageConfigCreate)
	s.route("GET", "/storage/{storage}", s.storageConfigGet)
	s.route("PUT", "/storage/{storage}", s.storageConfigUpdate)
	s.route("DELETE", "/storage/{storage}", s.storageConfigDelete)

	s.route("GET", "/nodes/{node}/storage", s.storageList)
	s.route("GET", "/nodes/{node}/storage/{storage}", index("content", "download-url", "prunebackups", "rrd", "rrddata", "status", "upload"))
	s.route("GET", "/nodes/{node}/storage/{storage}/status", s.storageStatus)
	s.route("GET", "/nodes/{node}/storage/{storage}/content", s.contentList)
	s.route("GET", "/nodes/{node}/storage/{storage}/content/{volume}", s.contentGet)
	s.route("PUT", "/nodes/{node}/storage/{storage}/content/{volume}", s.contentUpdate)
	s.route("DELETE", "/nodes/{node}/storage/{storage}/content/{volume}", s.contentDelete)
	s.route("POST", "/nodes/{node}/storage/{storage}/upload", s.upload)
	s.route("POST", "/nodes/{node}/storage/{storage}/download-url", s.downloadURL)
	s.route("POST", "/nodes/{node}/storage/{storage}/oci-registry-pull", s.pullImage)
}

// nodesOf are the nodes on which a storage is to be found.
func (s *Server) nodesOf(st *storage) []*node {
	var out []*node
	for _, n := range s.st.Nodes {
		if len(st.Nodes) == 0 || slices.Contains(st.Nodes, n.Name) {
			out = append(out, n)
		}
	}
	return out
}

// storageOn finds a storage that a node can use; the errors are the server's.
func (s *Server) storageOn(node, id string) (*storage, error) {
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

// storageUsed is what a storage's volumes take on a node, in bytes.
func (s *Server) storageUsed(st *storage, node string) int64 {
	used := int64(7694336)
	for _, v := range s.st.Volumes {
		if strings.HasPrefix(v.VolID, st.ID+":") && (v.Node == "" || v.Node == node) {
			used += v.Used
		}
	}
	return min(used, st.Total)
}

// may says whether the caller sees a storage at all.
func (c *call) maySeeStorage(id string) bool {
	path := "/storage/" + id
	return c.may(path, "Datastore.Audit") || c.may(path, "Datastore.AllocateSpace")
}

func (s *Server) storageView(st *storage, node string) map[string]any {
	used := s.storageUsed(st, node)
	return map[string]any{
		"type": st.Type, "content": strings.Join(st.Content, ","), "active": 1, "enabled": boolInt(!st.Disable),
		"shared": boolInt(st.Shared), "total": st.Total, "used": used, "avail": st.Total - used,
	}
}

func (s *Server) storageList(c *call) (any, error) {
	out := []map[string]any{}
	for _, id := range sortedKeys(s.st.Storages) {
		st := s.st.Storages[id]
		if _, err := s.storageOn(c.node.Name, id); err != nil && (c.params.flag("enabled") || !st.Disable) {
			continue
		}
		if !c.maySeeStorage(id) || (c.params.has("storage") && c.params.str("storage") != id) {
			continue
		}
		if wanted := c.params.list("content"); len(wanted) > 0 && !slices.ContainsFunc(wanted, func(kind string) bool {
			return slices.Contains(st.Content, kind)
		}) {
			continue
		}
		view := s.storageView(st, c.node.Name)
		view["storage"] = id
		view["used_fraction"] = float64(s.storageUsed(st, c.node.Name)) / float64(st.Total)
		out = append(out, view)
	}
	return out, nil
}

func (s *Server) storageStatus(c *call) (any, error) {
	st := s.st.Storages[c.params.str("storage")]
	if st == nil {
		return nil, paramError("storage", "No such storage.")
	}
	return s.storageView(st, c.node.Name), nil
}

// volumesOn are a storage's volumes on a node, by their ids.
func (s *Server) volumesOn(node string, st *storage) []*volume {
	var out []*volume
	for _, v := range s.st.Volumes {
		if strings.HasPrefix(v.VolID, st.ID+":") && (v.Node == "" || v.Node == node) {
			out = append(out, v)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].VolID < out[j].VolID })
	return out
}

func (s *Server) contentList(c *call) (any, error) {
	st, err := s.storageOn(c.node.Name, c.params.str("storage"))
	if err != nil {
		return nil, err
	}
	out := []map[string]any{}
	for _, v := range s.volumesOn(c.node.Name, st) {
		if c.params.has("content") && c.params.str("content") != v.Content {
			continue
		}
		if c.params.has("vmid") && c.params.num("vmid") != v.VMID {
			continue
		}
		if c.mayReadVolume(st, v) {
			out = append(out, v.view())
		}
	}
	return out, nil
}

// mayReadVolume: templates and images for everybody who sees the storage, a guest's volumes for who may audit the storage
// or change the guest's disks.
func (c *call) mayReadVolume(st *storage, v *volume) bool {
	path := "/storage/" + st.ID
	if c.may(path, "Datastore.Allocate") || v.Content == "vztmpl" || v.Content == "iso" || v.Content == "import" {
		return true
	}
	if v.VMID == 0 {
		return c.may(path, "Datastore.Audit")
	}
	guest := fmt.Sprintf("/vms/%d", v.VMID)
	if v.Content == "backup" {
		return c.may(guest, "VM.Backup")
	}
	return c.may(path, "Datastore.Audit") || c.may(guest, "VM.Config.Disk")
}

// view is a volume in a content list.
func (v *volume) view() map[string]any {
	view := map[string]any{"volid": v.VolID, "content": v.Content, "format": v.Format, "size": v.Size, "ctime": v.CTime}
	switch v.Content {
	case "rootdir", "images":
		view["used"], view["parent"] = v.Used, nil
		if v.Parent != "" {
			view["parent"] = v.Parent
		}
	case "backup":
		view["subtype"] = "lxc"
	}
	if v.VMID != 0 {
		view["vmid"] = v.VMID
	}
	if v.Notes != "" { // a list shows the first line, the volume's own answer all
		view["notes"], _, _ = strings.Cut(v.Notes, "\n")
	}
	if v.Protect {
		view["protected"] = 1
	}
	return view
}
