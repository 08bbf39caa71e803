package server

import "testing"

func TestPoolMembers(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.clone(100)
	lab.ok("POST", "/pools", form{"poolid": "p1"})
	lab.ok("POST", "/pools", form{"poolid": "p2"})
	lab.refused("POST", "/pools", form{"poolid": "p1"}, 500, "create pool failed: pool 'p1' already exists")
	lab.ok("PUT", "/pools", form{"poolid": "p1", "vms": "100"})
	lab.refused("PUT", "/pools", form{"poolid": "p1", "vms": "100"}, 500, "update pools failed: VM 100 is already a pool member")
	lab.refused("PUT", "/pools", form{"poolid": "p2", "vms": "100"}, 500,
		"update pools failed: VM 100 belongs already to pool 'p1' and 'allow-move' is not set")
	lab.ok("PUT", "/pools", form{"poolid": "p2", "vms": "100", "allow-move": "1"})
	lab.refused("PUT", "/pools", form{"poolid": "p1", "vms": "100", "delete": "1"}, 500, "update pools failed: VM 100 is not a pool member")
	lab.refused("DELETE", "/pools/p2", nil, 500, "delete pool failed: pool 'p2' is not empty (contains VM 100)")
	lab.ok("PUT", "/pools", form{"poolid": "p2", "vms": "99999"})
	lab.done("DELETE", "lxc/100", nil)
	lab.ok("DELETE", "/pools/p2", nil)
	lab.refused("GET", "/pools/p2", nil, 500, "pool 'p2' does not exist")
}

func TestNestedPoolsAreNamedByAParameterOnly(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.refused("POST", "/pools", form{"poolid": "a/b"}, 500, "create pool failed: parent 'a' of pool 'a/b' does not exist")
	lab.ok("POST", "/pools", form{"poolid": "a"})
	lab.ok("POST", "/pools", form{"poolid": "a/b"})
	if r := lab.call("DELETE", "/pools/a/b", nil); r.status != 501 {
		t.Error(r)
	}
	lab.refused("DELETE", "/pools", form{"poolid": "a"}, 500, "delete pool failed: pool 'a' is not empty (contains pool 'a/b')")
	lab.ok("DELETE", "/pools", form{"poolid": "a/b"})
	lab.ok("DELETE", "/pools", form{"poolid": "a"})
}

func TestAChangeOfMembersThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", "/pools", form{"poolid": "p"})
	lab.ok("PUT", "/pools", form{"poolid": "p", "vms": "200"})
	lab.refused("PUT", "/pools", form{"poolid": "p", "comment": "new", "vms": "201,200"}, 500, "update pools failed: VM 200 is already a pool member")
	lab.s.lock()
	defer lab.s.unlock()
	if p := lab.s.st.Pools["p"]; p.Guests[201] || p.Comment != "" {
		t.Error(p)
	}
}
