package server

import (
	"fmt"
	"strings"
)

// ConfigFiles are the containers' configuration files as the node has them in /etc/pve/lxc, by vmid.
func (s *Server) ConfigFiles() map[int]string {
	s.lock()
	defer s.unlock()
	out := make(map[int]string, len(s.st.Guests))
	for id, g := range s.st.Guests {
		var b strings.Builder
		for _, line := range strings.Split(strings.TrimSuffix(g.Config["description"], "\n"), "\n") {
			if line != "" {
				fmt.Fprintf(&b, "#%s\n", line)
			}
		}
		for _, key := range sortedKeys(g.Config) {
			if key != "description" {
				fmt.Fprintf(&b, "%s: %s\n", key, g.Config[key])
			}
		}
		for _, kv := range g.Raw {
			fmt.Fprintf(&b, "%s: %s\n", kv[0], kv[1])
		}
		for _, snap := range g.Snapshots {
			fmt.Fprintf(&b, "\n[%s]\n", snap.Name)
		}
		out[id] = b.String()
	}
	return out
}

// WriteConfigFile takes over the lines of LXC's own from a configuration file that was edited on the node; nothing else of it
// counts in a lab.
func (s *Server) WriteConfigFile(vmid int, text string) error {
	s.lock()
	defer s.unlock()
	g := s.st.Guests[vmid]
	if g == nil {
		return failf("Configuration file 'nodes/%s/lxc/%d.conf' does not exist", s.st.Nodes[0].Name, vmid)
	}
	var raw [][2]string
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if strings.HasPrefix(key, "[") {
			break
		}
		if ok && strings.HasPrefix(key, "lxc.") {
			raw = append(raw, [2]string{strings.TrimSpace(key), strings.TrimSpace(value)})
		}
	}
	g.Raw = raw
	s.dirty()
	return nil
}

// VolumePath is where a volume's file is on the first node, or would be.
func (s *Server) VolumePath(volid string) (path string, there bool, err error) {
	s.lock()
	defer s.unlock()
	node := s.st.Nodes[0].Name
	st, err := s.storageOn(node, storageOf(volid))
	if err != nil {
		return "", false, err
	}
	return volumePathOf(st, volid), s.volumeOn(node, volid) != nil, nil
}

// MoveFile makes the file of a volume on the first node another volume's: an archive that somebody moves to the template files.
func (s *Server) MoveFile(from, to string) error {
	s.lock()
	defer s.unlock()
	node := s.st.Nodes[0].Name
	v := s.volumeOn(node, from)
	if v == nil {
		return failf("volume '%s' does not exist", from)
	}
	delete(s.st.Volumes, volumeKey(v.Node, v.VolID))
	_, rest, _ := strings.Cut(to, ":")
	content, _, _ := strings.Cut(rest, "/")
	s.st.Volumes[volumeKey(node, to)] = &volume{VolID: to, Node: node, Content: content, Format: v.Format, Size: v.Size, Used: v.Used, CTime: v.CTime}
	s.dirty()
	return nil
}
