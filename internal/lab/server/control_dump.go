package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"sort"
)

// Dump is what the lab holds, for a test's last look: is anything left behind?
type Dump struct {
	Guests []DumpGuest `json:"guests"`
	// Strays are volumes of containers that don't exist.
	Strays []string `json:"strays"`
	// Volumes are all ids of containers' volumes.
	Volumes []string `json:"volumes"`
	Pools   []string `json:"pools"`
	// RunningTasks are the UPIDs of tasks under way.
	RunningTasks []string `json:"running_tasks"`
	// FileLocks are held now.
	FileLocks []string `json:"file_locks"`
	// FirewallGroups are the security groups' names; GuestFirewalls the ids of guests with a firewall file.
	FirewallGroups []string `json:"firewall_groups"`
	GuestFirewalls []int    `json:"guest_firewalls"`
	Users          []string `json:"users"`
	// EngineGuests are the ids that the engine has.
	EngineGuests []int `json:"engine_guests"`
}

// DumpGuest is a container as it is.
type DumpGuest struct {
	VMID      int               `json:"vmid"`
	Node      string            `json:"node"`
	Config    map[string]string `json:"config"`
	Pending   map[string]string `json:"pending,omitempty"`
	Running   bool              `json:"running"`
	Snapshots []string          `json:"snapshots"`
	Pool      string            `json:"pool,omitempty"`
}

func (s *Server) controlDump([]byte) (any, error) {
	s.lock()
	defer s.unlock()
	return s.dump(), nil
}

// dump looks at everything, holding the state lock.
func (s *Server) dump() Dump {
	d := Dump{
		Guests: []DumpGuest{}, Strays: []string{}, Pools: sortedKeys(s.st.Pools), Users: sortedKeys(s.st.Users),
		FirewallGroups: sortedKeys(s.st.Firewall.Groups), FileLocks: sortedKeys(s.fileLocks),
	}
	for _, vmid := range s.guestIDs() {
		g := s.st.Guests[vmid]
		guest := DumpGuest{
			VMID: vmid, Node: g.Node, Config: maps.Clone(g.Config), Pending: maps.Clone(g.Pending), Running: g.Running,
			Snapshots: sortedKeys(g.Snapshots),
		}
		if p := s.guestPool(vmid); p != nil {
			guest.Pool = p.ID
		}
		if g.Firewall != nil {
			d.GuestFirewalls = append(d.GuestFirewalls, vmid)
		}
		d.Guests = append(d.Guests, guest)
	}
	for _, v := range s.st.Volumes {
		if v.Content != "rootdir" && v.Content != "images" {
			continue
		}
		d.Volumes = append(d.Volumes, v.VolID)
		if s.st.Guests[v.VMID] == nil {
			d.Strays = append(d.Strays, v.VolID)
		}
	}
	sort.Strings(d.Volumes)
	sort.Strings(d.Strays)
	for _, t := range s.st.Tasks {
		if t.running {
			d.RunningTasks = append(d.RunningTasks, t.UPID)
		}
	}
	if s.engine != nil {
		d.EngineGuests = s.engine.List()
	}
	return d
}

// GuestRequest changes a container behind the API's back, as an administrator on the node could.
type GuestRequest struct {
	VMID int `json:"vmid"`
	// Set are options to set as in the configuration file; an empty value removes one.
	Set map[string]string `json:"set,omitempty"`
	// Raw replaces the lxc.* lines when not nil.
	Raw [][2]string `json:"raw,omitempty"`
}

func (s *Server) controlGuest(body []byte) (any, error) {
	var ask GuestRequest
	if err := json.Unmarshal(body, &ask); err != nil {
		return nil, err
	}
	s.lock()
	defer s.unlock()
	g := s.st.Guests[ask.VMID]
	if g == nil {
		return nil, fmt.Errorf("no container %d", ask.VMID)
	}
	for key, value := range ask.Set {
		if value == "" {
			delete(g.Config, key)
		} else {
			g.Config[key] = value
		}
	}
	if ask.Raw != nil {
		g.Raw = ask.Raw
	}
	s.dirty()
	return nil, nil
}
