//go:build linux

package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// index is the file that says what there is.
type index struct {
	Version int
	Last    int
	Guests  []record
	Volumes map[string]*volume
	Leases  map[string]netip.Addr
}

// record is what is kept of a guest. The supervisor has one of each, so that it needs no guest's lock to know them.
type record struct {
	ID             int
	Root           rootFS
	Config         engine.Config
	Volumes        map[string]engine.Mount
	Snapshots      []*snapshot
	Size           int64
	SharedHostKeys bool
	FreshHostKeys  bool
	FreshMachineID bool
}

const indexVersion = 1

// saved notes what became of a guest, which is locked, and saves it.
func (s *Supervisor) saved(g *guest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(g)
	return s.save()
}

// note renews the record of a guest; it and the supervisor are locked.
func (s *Supervisor) note(g *guest) {
	s.records[g.id] = record{
		ID: g.id, Root: g.root, Config: g.config, Volumes: maps.Clone(g.volumes), Snapshots: slices.Clone(g.snapshots), Size: g.size,
		SharedHostKeys: g.sharedHostKeys, FreshHostKeys: g.freshHostKeys, FreshMachineID: g.freshMachineID,
	}
}

// save writes the index, with the supervisor locked. A temporary lab has none.
func (s *Supervisor) save() error {
	if s.options.Temporary {
		return nil
	}
	ix := index{Version: indexVersion, Last: s.last, Volumes: s.volumes, Leases: s.network.leased()}
	for _, id := range slices.Sorted(maps.Keys(s.records)) {
		ix.Guests = append(ix.Guests, s.records[id])
	}
	b, err := json.MarshalIndent(ix, "", " ")
	if err != nil {
		return err
	}
	half := s.place.index() + ".new"
	if err := os.WriteFile(half, b, 0o600); err != nil {
		return err
	}
	return os.Rename(half, s.place.index())
}

// load reads the index. All guests are stopped, as after a power cut.
func (s *Supervisor) load() error {
	b, err := os.ReadFile(s.place.index())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var ix index
	if err := json.Unmarshal(b, &ix); err != nil {
		return fmt.Errorf("%s: %w", s.place.index(), err)
	}
	if ix.Version != indexVersion {
		return fmt.Errorf("the lab's folder is of version %d, this program's is %d: start with an empty folder", ix.Version, indexVersion)
	}
	s.last = ix.Last
	maps.Copy(s.volumes, ix.Volumes)
	for _, saved := range ix.Guests {
		g := newGuest(saved.ID, saved.Root)
		g.config, g.snapshots, g.size = saved.Config, saved.Snapshots, saved.Size
		g.sharedHostKeys, g.freshHostKeys, g.freshMachineID = saved.SharedHostKeys, saved.FreshHostKeys, saved.FreshMachineID
		maps.Copy(g.volumes, saved.Volumes)
		s.guests[g.id] = g
		s.note(g)
	}
	s.network.restore(ix.Leases)
	return s.removeStray()
}
