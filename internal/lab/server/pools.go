package server

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// routesPools lists the pool endpoints. A nested pool, "a/b", can only be named by a parameter.
func (s *Server) routesPools() {
	list := *loadFacts()["GET /pools"]
	list.Params = map[string]paramFact{}
	for name, fact := range loadFacts()["GET /pools"].Params {
		fact.Requires = "" // the handler says it, in other words than the other requirements
		list.Params[name] = fact
	}
	s.routeWith("GET", "/pools", &list, s.poolList)
	s.route("POST", "/pools", s.poolCreate)
	s.route("PUT", "/pools", s.poolUpdate)
	s.route("DELETE", "/pools", s.poolDelete)
	s.route("GET", "/pools/{poolid}", s.poolGet)
	s.route("PUT", "/pools/{poolid}", s.poolUpdate)
	s.route("DELETE", "/pools/{poolid}", s.poolDelete)
}

func newPool(id, comment string) *pool {
	return &pool{ID: id, Comment: comment, Guests: map[int]bool{}, Storages: map[string]bool{}}
}

func (s *Server) poolList(c *call) (any, error) {
	if id := c.params.str("poolid"); id != "" {
		view, err := s.poolView(c, id)
		if err != nil {
			return nil, err
		}
		view["poolid"] = id
		return []any{view}, nil
	}
	if c.params.has("type") {
		return nil, paramError("poolid", "missing property required by 'type'")
	}
	out := []map[string]any{}
	for _, id := range sortedKeys(s.st.Pools) {
		if !c.may("/pool/"+id, "Pool.Audit") {
			continue
		}
		view := map[string]any{"poolid": id}
		if comment := s.st.Pools[id].Comment; comment != "" {
			view["comment"] = comment
		}
		out = append(out, view)
	}
	return out, nil
}

func (s *Server) poolGet(c *call) (any, error) {
	view, err := s.poolView(c, c.params.str("poolid"))
	if err == nil {
		view["poolid"] = c.params.str("poolid")
	}
	return view, err
}

// poolView is a pool with its members as /cluster/resources shows them.
func (s *Server) poolView(c *call, id string) (map[string]any, error) {
	if err := c.check("/pool/"+id, "Pool.Audit"); err != nil {
		return nil, err
	}
	p := s.st.Pools[id]
	if p == nil {
		return nil, failf("pool '%s' does not exist", id)
	}
	kind := c.params.str("type")
	members := []map[string]any{}
	if kind == "" || kind == "lxc" {
		for _, vmid := range sortedIDs(p.Guests) {
			if g := s.st.Guests[vmid]; g != nil {
				member := s.guestResource(g)
				delete(member, "pool")
				members = append(members, member)
			}
		}
	}
	if kind == "" || kind == "storage" {
		for _, name := range sortedKeys(p.Storages) {
			if st := s.st.Storages[name]; st != nil {
				for _, n := range s.nodesOf(st) {
					members = append(members, s.storageResource(st, n))
				}
			}
		}
	}
	view := map[string]any{"members": members}
	if p.Comment != "" {
		view["comment"] = p.Comment
	}
	return view, nil
}

func sortedIDs(set map[int]bool) []int {
	out := make([]int, 0, len(set))
	for id := range set {
		out = append(out, id)
	}
	sort.Ints(out)
	return out
}

func (s *Server) poolCreate(c *call) (any, error) {
	id := c.params.str("poolid")
	if s.st.Pools[id] != nil {
		return nil, failf("create pool failed: pool '%s' already exists", id)
	}
	if i := strings.LastIndex(id, "/"); i >= 0 && s.st.Pools[id[:i]] == nil {
		return nil, failf("create pool failed: parent '%s' of pool '%s' does not exist", id[:i], id)
	}
	s.st.Pools[id] = newPool(id, c.params.str("comment"))
	return nil, nil
}

// poolUpdate sets the comment and adds or removes members. Members needn't exist.
func (s *Server) poolUpdate(c *call) (any, error) {
	id := c.params.str("poolid")
	p := s.st.Pools[id]
	if p == nil {
		return nil, failf("update pools failed: pool '%s' does not exist", id)
	}
	remove := c.params.flag("delete")
	var vmids []int
	for _, text := range c.params.list("vms") {
		vmid, err := strconv.Atoi(text)
		if err != nil {
			continue
		}
		if err := c.checkGuest(vmid, "Permissions.Modify"); err != nil && !c.may(fmt.Sprintf("/vms/%d", vmid), "VM.Allocate") {
			return nil, err
		}
		if err := s.checkPoolGuest(p, vmid, remove, c.params.flag("allow-move")); err != nil {
			return nil, err
		}
		vmids = append(vmids, vmid)
	}
	storages := c.params.list("storage")
	for _, name := range storages {
		if err := c.check("/storage/"+name, "Datastore.Allocate"); err != nil {
			return nil, err
		}
		if p.Storages[name] && !remove {
			return nil, failf("update pools failed: Storage '%s' is already a pool member", name)
		}
		if !p.Storages[name] && remove {
			return nil, failf("update pools failed: Storage '%s' is not a pool member", name)
		}
	}
	if c.params.has("comment") {
		p.Comment = c.params.str("comment")
	}
	for _, vmid := range vmids {
		s.leavePool(vmid)
		if !remove {
			p.Guests[vmid] = true
		}
	}
	for _, name := range storages {
		delete(p.Storages, name)
		if !remove {
			p.Storages[name] = true
		}
	}
	return nil, nil
}

func (s *Server) checkPoolGuest(p *pool, vmid int, remove, move bool) error {
	switch now := s.guestPool(vmid); {
	case remove && now != p:
		return failf("update pools failed: VM %d is not a pool member", vmid)
	case remove || now == nil:
		return nil
	case now == p:
		return failf("update pools failed: VM %d is already a pool member", vmid)
	case !move:
		return failf("update pools failed: VM %d belongs already to pool '%s' and 'allow-move' is not set", vmid, now.ID)
	}
	return nil
}

// guestPool is the pool that a guest is in; nil if none.
func (s *Server) guestPool(vmid int) *pool {
	for _, p := range s.st.Pools {
		if p.Guests[vmid] {
			return p
		}
	}
	return nil
}

// leavePool takes a guest out of its pool.
func (s *Server) leavePool(vmid int) {
	if p := s.guestPool(vmid); p != nil {
		delete(p.Guests, vmid)
	}
}

func (s *Server) poolDelete(c *call) (any, error) {
	id := c.params.str("poolid")
	p := s.st.Pools[id]
	if p == nil {
		return nil, failf("delete pool failed: pool '%s' does not exist", id)
	}
	for _, other := range sortedKeys(s.st.Pools) {
		if strings.HasPrefix(other, id+"/") {
			return nil, failf("delete pool failed: pool '%s' is not empty (contains pool '%s')", id, other)
		}
	}
	for _, vmid := range sortedIDs(p.Guests) {
		if s.st.Guests[vmid] != nil {
			return nil, failf("delete pool failed: pool '%s' is not empty (contains VM %d)", id, vmid)
		}
	}
	for _, name := range sortedKeys(p.Storages) {
		if s.st.Storages[name] != nil {
			return nil, failf("delete pool failed: pool '%s' is not empty (contains storage '%s')", id, name)
		}
	}
	delete(s.st.Pools, id)
	s.dropACL(func(e aclEntry) bool { return e.Path == "/pool/"+id })
	return nil, nil
}
