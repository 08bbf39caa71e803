package server

import (
	"slices"
	"testing"
)

// may are the privileges of somebody on a path.
func (lab *ctLab) privilegesOf(who, path string) []string {
	lab.s.lock()
	defer lab.s.unlock()
	return sortedKeys(lab.s.privileges(who, path))
}

func TestADeeperEntryReplacesThoseAbove(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("PUT", "/access/acl", form{"path": "/vms/9000", "users": "admin@pve", "roles": "PVEPoolUser"})
	if got := lab.privilegesOf("admin@pve", "/vms/9000"); !slices.Equal(got, []string{"Pool.Audit"}) {
		t.Error(got)
	}
	lab.ok("PUT", "/access/acl", form{"path": "/vms", "users": "viewer@pve", "roles": "NoAccess"})
	if got := lab.privilegesOf("viewer@pve", "/vms/9000"); len(got) != 0 {
		t.Error("NoAccess leaves", got)
	}
}

func TestAnEntryThatDoesntPropagateCountsOnItsPathOnly(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", "/access/users", form{"userid": "u@pve"})
	lab.ok("PUT", "/access/acl", form{"path": "/vms", "users": "u@pve", "roles": "PVEVMUser", "propagate": "0"})
	if got := lab.privilegesOf("u@pve", "/vms"); len(got) == 0 {
		t.Error("nothing on the path itself")
	}
	if got := lab.privilegesOf("u@pve", "/vms/100"); len(got) != 0 {
		t.Error("below:", got)
	}
}

func TestAUsersOwnEntryReplacesItsGroups(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", "/access/groups", form{"groupid": "g"})
	lab.ok("POST", "/access/users", form{"userid": "u@pve", "groups": "g"})
	lab.ok("PUT", "/access/acl", form{"path": "/vms", "groups": "g", "roles": "PVETemplateUser"})
	if got := lab.privilegesOf("u@pve", "/vms/1"); !slices.Equal(got, []string{"VM.Audit", "VM.Clone"}) {
		t.Error("by group:", got)
	}
	lab.ok("PUT", "/access/acl", form{"path": "/vms", "users": "u@pve", "roles": "PVEPoolUser"})
	if got := lab.privilegesOf("u@pve", "/vms/1"); !slices.Equal(got, []string{"Pool.Audit"}) {
		t.Error("own:", got)
	}
}

func TestASeparatedTokenHasWhatBothItAndItsUserHave(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", "/access/users/viewer@pve/token/sep", form{"privsep": "1"})
	if got := lab.privilegesOf("viewer@pve!sep", "/vms/9000"); len(got) != 0 {
		t.Error("without an entry:", got)
	}
	lab.ok("PUT", "/access/acl", form{"path": "/vms", "tokens": "viewer@pve!sep", "roles": "PVETemplateUser"})
	if got := lab.privilegesOf("viewer@pve!sep", "/vms/9000"); !slices.Equal(got, []string{"VM.Audit"}) {
		t.Error(got)
	}
	lab.ok("DELETE", "/access/users/viewer@pve/token/sep", nil)
	if got := lab.privilegesOf("viewer@pve!sep", "/vms/9000"); len(got) != 0 {
		t.Error("of a token that is gone:", got)
	}
}

func TestRightsOnAPoolAreRightsOnItsMembers(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(100)
	limited := lab.as("limited")
	limited.refused("GET", ct+"/config", nil, 403, "Permission check failed (/vms/100, VM.Audit)")
	lab.ok("PUT", "/pools", form{"poolid": "labpool", "vms": "100"})
	limited.ok("GET", ct+"/config", nil)
}

func TestRefusalsNamePathAndPrivilege(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	viewer := lab.as("viewer")
	viewer.refused("POST", "lxc/9000/clone", form{"newid": "200"}, 403, "Permission check failed (/vms/9000, VM.Clone)")
	viewer.refused("PUT", "lxc/9000/config", form{"hostname": "x"}, 403,
		"Permission check failed (/vms/9000, VM.Config.Disk|VM.Config.CPU|VM.Config.Memory|VM.Config.Network|VM.Config.Options)")
	viewer.refused("POST", "/pools", form{"poolid": "x1"}, 403, "Permission check failed (/pool/x1, Pool.Allocate)")
	viewer.refused("POST", "lxc", form{"vmid": "200", "ostemplate": testTemplate}, 403, "Permission check failed")
	lab.refused("POST", "/pools", form{"poolid": "bad pool!"}, 403, "Permission check failed (, Pool.Allocate)")
	lab.badParameter("POST", "/pools", nil, "poolid", "property is missing and it is not optional")
}
