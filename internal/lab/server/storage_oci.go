package server

import (
	"fmt"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
)

// imageReference is what the real server takes: host and port, name, and a tag that may not be left out.
var imageReference = regexp.MustCompile(`^(?:((?:[a-zA-Z\d]|[a-zA-Z\d][a-zA-Z\d-]*[a-zA-Z\d])(?:\.(?:[a-zA-Z\d]|[a-zA-Z\d][a-zA-Z\d-]*[a-zA-Z\d]))*(?::\d+)?)/)?([a-z\d]+(?:(?:[._]|__|[-]*)[a-z\d]+)*(?:/[a-z\d]+(?:(?:[._]|__|[-]*)[a-z\d]+)*)*):(\w[\w.-]{0,127})$`)

// pullImage is the download of an OCI image as a container template file. Nothing recorded covers it: it follows the API's
// schema. As other downloads it reaches registries of this machine only; a container from it gets the lab's own root.
func (s *Server) pullImage(c *call) (any, error) {
	st, err := s.storageOn(c.node.Name, c.params.str("storage"))
	if err != nil {
		return nil, err
	}
	if !slices.Contains(st.Content, "vztmpl") {
		return nil, failf("storage '%s' is not configured for content-type 'vztmpl'", st.ID)
	}
	reference, name := c.params.str("reference"), c.params.str("filename")
	parts := imageReference.FindStringSubmatch(reference)
	if parts == nil {
		return nil, paramError("reference", "value does not match the regex pattern")
	}
	if name == "" {
		name = strings.NewReplacer("/", "_", ":", "_").Replace(reference)
	}
	name = path.Base(strings.TrimSuffix(name, ".tar")) + ".tar"
	return c.startTask("ociregistrypull", name, func(t *task) error {
		address := fmt.Sprintf("http://%s/v2/%s/manifests/%s", parts[1], parts[2], parts[3])
		if !loopback(address) {
			return fmt.Errorf("failed to pull %s: can't connect to %s: Connection refused", reference, hostOf(address))
		}
		var size int64
		var err error
		s.unlocked(func() { size, _, err = fetch(t.ctx, address, "") })
		if err != nil {
			return fmt.Errorf("failed to pull %s: %w", reference, err)
		}
		volid := st.ID + ":vztmpl/" + name
		s.st.Volumes[volumeKey(c.node.Name, volid)] = &volume{
			VolID: volid, Node: c.node.Name, Content: "vztmpl", Format: "tar", Size: size, Used: size, CTime: s.now().Unix(),
		}
		s.dirty()
		t.logf("%s: %s", http.MethodGet, address)
		return nil
	})
}
