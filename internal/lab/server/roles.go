package server

import (
	"strings"
	"sync"
)

// builtinRoles are the roles of a fresh installation, with their privileges.
var builtinRoles = map[string]string{
	"NoAccess":          "",
	"PVEAuditor":        "Datastore.Audit,Mapping.Audit,Pool.Audit,SDN.Audit,Sys.Audit,VM.Audit,VM.GuestAgent.Audit",
	"PVEDatastoreAdmin": "Datastore.Allocate,Datastore.AllocateSpace,Datastore.AllocateTemplate,Datastore.Audit",
	"PVEDatastoreUser":  "Datastore.AllocateSpace,Datastore.Audit",
	"PVEMappingAdmin":   "Mapping.Audit,Mapping.Modify,Mapping.Use",
	"PVEMappingUser":    "Mapping.Audit,Mapping.Use",
	"PVEPoolAdmin":      "Pool.Allocate,Pool.Audit",
	"PVEPoolUser":       "Pool.Audit",
	"PVESDNAdmin":       "SDN.Allocate,SDN.Audit,SDN.Use",
	"PVESDNUser":        "SDN.Audit,SDN.Use",
	"PVESysAdmin":       "Sys.Audit,Sys.Console,Sys.Syslog",
	"PVETemplateUser":   "VM.Audit,VM.Clone",
	"PVEUserAdmin":      "Group.Allocate,Realm.AllocateUser,User.Modify",
	"PVEVMUser": "VM.Audit,VM.Backup,VM.Config.CDROM,VM.Config.Cloudinit,VM.Console,VM.GuestAgent.Audit,VM.GuestAgent.FileRead," +
		"VM.GuestAgent.FileSystemMgmt,VM.GuestAgent.FileWrite,VM.PowerMgmt",
	"PVEVMAdmin": vmAdmin,
	"PVEAdmin": "Datastore.Allocate,Datastore.AllocateSpace,Datastore.AllocateTemplate,Datastore.Audit,Group.Allocate,Mapping.Audit," +
		"Mapping.Use,Pool.Allocate,Pool.Audit,Realm.AllocateUser,SDN.Allocate,SDN.Audit,SDN.Use,Sys.Audit,Sys.Console,Sys.Syslog," +
		"User.Modify," + vmAdmin,
	"Administrator": "Datastore.Allocate,Datastore.AllocateSpace,Datastore.AllocateTemplate,Datastore.Audit,Group.Allocate,Mapping.Audit," +
		"Mapping.Modify,Mapping.Use,Permissions.Modify,Pool.Allocate,Pool.Audit,Realm.Allocate,Realm.AllocateUser,SDN.Allocate," +
		"SDN.Audit,SDN.Use,Sys.AccessNetwork,Sys.Audit,Sys.Console,Sys.Incoming,Sys.Modify,Sys.PowerMgmt,Sys.Syslog,User.Modify," + vmAdmin,
}

const vmAdmin = "VM.Allocate,VM.Audit,VM.Backup,VM.Clone,VM.Config.CDROM,VM.Config.CPU,VM.Config.Cloudinit,VM.Config.Disk," +
	"VM.Config.HWType,VM.Config.Memory,VM.Config.Network,VM.Config.Options,VM.Console,VM.GuestAgent.Audit,VM.GuestAgent.FileRead," +
	"VM.GuestAgent.FileSystemMgmt,VM.GuestAgent.FileWrite,VM.GuestAgent.Unrestricted,VM.Migrate,VM.PowerMgmt,VM.Replicate," +
	"VM.Snapshot,VM.Snapshot.Rollback"

// newRoles are the built-in roles of a new state.
func newRoles() map[string]*role {
	out := map[string]*role{}
	for id, privs := range builtinRoles {
		out[id] = &role{ID: id, Special: true, Privs: setOf(splitList(privs))}
	}
	return out
}

// knownPrivileges are all that exist.
var knownPrivileges = sync.OnceValue(func() map[string]bool {
	return setOf(splitList(builtinRoles["Administrator"]))
})

func setOf(items []string) map[string]bool {
	out := map[string]bool{}
	for _, item := range items {
		if item = strings.TrimSpace(item); item != "" {
			out[item] = true
		}
	}
	return out
}
