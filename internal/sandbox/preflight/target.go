package preflight

import "fmt"

// Target is what the privileges are needed on. A zero field is not known, and stands for all of its kind.
type Target struct {
	PoolID     string
	TemplateID int
	// Storages hold root disks: the template's for linked clones, and the one that is set for others.
	Storages       []string
	BackupStorages []string
	FileStorages   []string
	// Bridges are the containers' and the template's: a clone begins on that.
	Bridges []string
	Nodes   []string
}

// paths are where the privileges for a place have to be.
func (t Target) paths(p Place) []string {
	switch p {
	case Guests:
		if t.PoolID != "" {
			return []string{"/pool/" + t.PoolID}
		}
		return []string{"/vms"}
	case Template:
		if t.TemplateID != 0 {
			return []string{fmt.Sprintf("/vms/%d", t.TemplateID)}
		}
		return []string{"/vms"}
	case Storage:
		return below("/storage", t.Storages)
	case BackupStorage:
		return below("/storage", t.BackupStorages)
	case FileStorage:
		return below("/storage", t.FileStorages)
	case Bridge:
		// Bridges that no SDN zone has belong to the built-in zone "localnetwork".
		return below("/sdn/zones/localnetwork", t.Bridges)
	case Pool:
		if t.PoolID != "" {
			return []string{"/pool/" + t.PoolID}
		}
		return []string{"/pool"}
	case Nodes:
		return below("/nodes", t.Nodes)
	}
	return []string{"/"}
}

// alternative is another path that does as well: a right on all guests counts on those of a pool.
func (t Target) alternative(p Place) string {
	if p == Guests && t.PoolID != "" {
		return "/vms"
	}
	return ""
}

func below(parent string, names []string) []string {
	if len(names) == 0 {
		return []string{parent}
	}
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = parent + "/" + name
	}
	return out
}
