package server

import (
	"context"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// Seeder fills a new state before the server serves. It holds the state lock.
type Seeder struct{ s *Server }

// User adds an account with a password.
func (d *Seeder) User(id, password string) {
	d.s.st.Users[id] = &user{ID: id, Password: password, Enable: true, Tokens: map[string]*token{}}
}

// Token adds an API token to an account and returns "user@realm!id=secret".
func (d *Seeder) Token(userID, id string, privSep bool) string {
	secret := randomUUID()
	d.s.st.Users[userID].addToken(&token{ID: id, Secret: secret, PrivSep: privSep})
	return userID + "!" + id + "=" + secret
}

// TokenWithSecret adds an API token whose secret the caller chose.
func (d *Seeder) TokenWithSecret(userID, id, secret string, privSep bool) {
	d.s.st.Users[userID].addToken(&token{ID: id, Secret: secret, PrivSep: privSep})
}

// Password sets an account's password.
func (d *Seeder) Password(id, password string) { d.s.st.Users[id].Password = password }

// Nodes are the nodes' names.
func (d *Seeder) Nodes() []string {
	var out []string
	for _, n := range d.s.st.Nodes {
		out = append(out, n.Name)
	}
	return out
}

// Grant gives a user or token (with '!') a role on a path and below.
func (d *Seeder) Grant(path, who, roleID string) {
	kind := "user"
	if _, tokenID := splitAuthID(who); tokenID != "" {
		kind = "token"
	}
	d.s.st.ACL = append(d.s.st.ACL, aclEntry{Path: path, Kind: kind, Who: who, Role: roleID, Propagate: true})
}

// Pool adds a pool.
func (d *Seeder) Pool(id string) {
	d.s.st.Pools[id] = newPool(id, "")
}

// TemplateFile puts a container template file on a storage of every node. size is in bytes.
func (d *Seeder) TemplateFile(volid string, size int64) {
	format := "tgz"
	for ending, name := range templateFormats {
		if strings.HasSuffix(volid, ending) {
			format = name
		}
	}
	for _, n := range d.s.st.Nodes {
		d.s.st.Volumes[volumeKey(n.Name, volid)] = &volume{
			VolID: volid, Node: n.Name, Content: "vztmpl", Format: format, Size: size, Used: size, CTime: d.s.st.Boot.Unix(),
		}
	}
}

// Backup puts a backup of a container that is gone on a node's storage. size is in bytes; it holds nothing.
func (d *Seeder) Backup(volid, node string, vmid int, size int64, at time.Time) {
	format := ""
	for _, ending := range archiveEndings {
		if strings.HasSuffix(volid, "."+ending) && len(ending) > len(format) {
			format = ending
		}
	}
	d.s.st.Volumes[volumeKey(node, volid)] = &volume{
		VolID: volid, Node: node, Content: "backup", Format: format, Size: size, Used: size, VMID: vmid, CTime: at.Unix(),
	}
}

// RenameNodes gives the nodes other names, in order.
func (d *Seeder) RenameNodes(names ...string) {
	for i, name := range names {
		if i < len(d.s.st.Nodes) {
			d.s.st.Nodes[i].Name = name
		}
	}
}

// ClusterName names the cluster.
func (d *Seeder) ClusterName(name string) { d.s.st.Cluster = name }

// Guest adds a stopped container with the configuration as in its file, and its root in the engine.
func (d *Seeder) Guest(ctx context.Context, node string, vmid int, config map[string]string, root engine.RootSpec) error {
	return d.s.seedGuest(ctx, node, vmid, config, root)
}

// FirewallOn turns the datacenter's firewall on.
func (d *Seeder) FirewallOn() { made(&d.s.st.Firewall.Options)["enable"] = "1" }
