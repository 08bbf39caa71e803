package server

import "testing"

// The texts are those of recorded exchanges.
func TestParametersThatTheSchemaRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, path, name, value, want string }{
		{"POST", "/nodes/{node}/lxc", "memory", "lots", "type check ('integer') failed - got 'lots'"},
		{"POST", "/nodes/{node}/lxc", "memory", "8", "value must have a minimum value of 16"},
		{"POST", "/nodes/{node}/lxc", "unprivileged", "yes", "type check ('boolean') failed - got 'yes'"},
		{"POST", "/nodes/{node}/lxc", "password", "abc", "value must be at least 5 characters long"},
		{"POST", "/nodes/{node}/lxc", "tags", "bad tag!", "invalid format - invalid characters in tag\n"},
		{"POST", "/nodes/{node}/lxc", "nameserver", "999.1.1.1", "invalid format - value does not look like a valid IP address\n"},
		{"POST", "/nodes/{node}/lxc", "startup", "foo", "invalid format - unable to parse startup options\n"},
		{"POST", "/nodes/{node}/lxc", "hostname", "bad_name", "invalid format - value does not look like a valid DNS name\n"},
		{"POST", "/nodes/{node}/lxc", "net0", "bridge=vmbr0", "invalid format - format error\nnet0.name: property is missing and it is not optional\n"},
		{"POST", "/nodes/{node}/lxc", "net0", "garbage", "invalid format - value without key, but schema does not define a default key\n"},
		{"POST", "/nodes/{node}/lxc", "net0", "name=eth0,ip=10.1.1.1",
			"invalid format - format error\nnet0.ip: invalid format - value does not look like a valid ipv4 network configuration\n\n"},
		{"POST", "/nodes/{node}/lxc", "net32", "name=eth0", notInSchema},
		{"POST", "/nodes/{node}/lxc", "mp0", "local-btrfs:1", "invalid format - format error\nmp0.mp: property is missing and it is not optional\n"},
		{"POST", "/nodes/{node}/lxc", "nosuchparam", "x", notInSchema},
		{"POST", "/nodes/{node}/lxc/{vmid}/snapshot", "snapname", "bad.dot", "invalid format - invalid configuration ID 'bad.dot'\n"},
		{"GET", "/cluster/resources", "type", "lxc", "value 'lxc' does not have a value in the enumeration 'vm, storage, node, sdn'"},
		{"GET", "/cluster/nextid", "vmid", "99", "invalid format - value does not look like a valid VM ID\n"},
		{"POST", "/access/users/{userid}/token/{tokenid}", "tokenid", "1", "value does not match the regex pattern"},
		{"POST", "/access/roles", "privs", "VM.Audit,VM.Monitor", "invalid format - invalid privilege 'VM.Monitor'\n"},
	} {
		err := asAPIError(checkParams(loadFacts()[c.method+" "+c.path], params{c.name: c.value}))
		if err.status != 400 || err.errors[c.name] != c.want {
			t.Errorf("%s %s %s=%s:\n got %q\nwant %q", c.method, c.path, c.name, c.value, err.errors[c.name], c.want)
		}
	}
}

func TestParametersThatTheSchemaTakes(t *testing.T) {
	t.Parallel()
	fact := loadFacts()["POST /nodes/{node}/lxc"]
	given := params{
		"node": "pve1", "vmid": "100", "ostemplate": "local:vztmpl/x.tar.gz", "rootfs": "local-btrfs:1", "net31": "name=eth0,bridge=vmbr0,ip=10.1.1.1/24,gw=10.1.1.254",
		"mp255": "local-btrfs:1,mp=/data", "tags": "a;b", "nameserver": "10.0.0.1 10.0.0.2", "startup": "order=1,up=2", "cpulimit": "0.5", "unprivileged": "0",
	}
	if err := checkParams(fact, given); err != nil {
		t.Error(asAPIError(err).errors)
	}
}

func TestEveryPatternOfTheTableCompiles(t *testing.T) {
	t.Parallel()
	var walk func(where string, facts map[string]paramFact)
	walk = func(where string, facts map[string]paramFact) {
		for name, f := range facts {
			if f.Pattern != "" {
				matches(f.Pattern, "")
			}
			walk(where+" "+name, f.Keys)
		}
	}
	for where, fact := range loadFacts() {
		walk(where, fact.Params)
	}
}
