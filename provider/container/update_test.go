package container_test

import (
	"net/http"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

// key is a public key that nobody has the private half of.
const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2Vv8Wl3Y4v5bq0o1o0kq3m7yGx0m1w5m7yqj1bJ7kX test"

// change is one of an attribute that the server can change in place, and what the state shows then.
type change struct {
	name   string
	change values
	path   string
	want   any
}

// changes are one of every such attribute, to a root disk of so many GiB.
func changes(disk int) []change {
	return []change{
		{"hostname", values{"hostname": "web-2"}, "hostname", "web-2"},
		{"cores", values{"cores": 2}, "cores", 2.0},
		{"cpu_limit", values{"cpu_limit": 1.5}, "cpu_limit", 1.5},
		{"cpu_units", values{"cpu_units": 200}, "cpu_units", 200.0},
		{"memory", values{"memory": 256}, "memory", 256.0},
		{"swap", values{"swap": 64}, "swap", 64.0},
		{"disk", values{"disk": disk}, "disk", float64(disk)},
		{"tags", values{"tags": []string{"Blue", "green"}}, "tags.0", "Blue"},
		{"description", values{"description": "first\nsecond\n"}, "description", "first\nsecond\n"},
		{"on_boot", values{"on_boot": true}, "on_boot", true},
		{"startup", values{"startup": values{"order": 3, "up_delay": 10}}, "startup.order", 3.0},
		{"rate_limit", values{"network": values{"rate_limit": 12.5}}, "network.rate_limit", 12.5},
		{"mac_address", values{"network": values{"mac_address": "bc:24:11:0a:0b:0c"}}, "network.mac_address", "bc:24:11:0a:0b:0c"},
		{"ipv6", values{"network": values{"ipv6": "FD00::0020/64"}}, "network.ipv6", "FD00::0020/64"},
		{"ipv6_address", values{"network": values{"ipv6": "fd00::21/64"}}, "ipv6_address", "fd00::21"},
		{"dns", values{"dns": values{"servers": []string{"10.0.0.1", "10.0.0.2"}, "domain": "example.org"}}, "dns.servers.1", "10.0.0.2"},
		{"authorized_keys", values{"authorized_keys": []string{key}}, "authorized_keys.0", key},
		{"stopped", values{"started": false}, "status", "stopped"},
	}
}

func TestEveryChangeIsMadeInPlace(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	config := values{"hostname": "web-1"}
	r := create(t, server, config)
	id := r.Text(t, "claim")
	for _, c := range changes(env.DiskGiB(t, 2)) {
		t.Run(c.name, func(t *testing.T) {
			// Each is made on top of the ones before, so that it is seen that none undoes another.
			config = with(config, c.change)
			apply(t, server, r, config, "update")
			if got := r.Get(t, c.path); got != c.want {
				t.Errorf("%s is %v, want %v", c.path, got, c.want)
			}
		})
	}
	apply(t, server, r, with(config, values{"started": true, "protection": false}), "update")
	if got := r.Text(t, "claim"); got != id {
		t.Error("the container was replaced")
	}
}

func TestAttributesThatAreTakenOutGoBackToTheirDefault(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := create(t, server, values{
		"hostname": "web-1", "memory": 256, "tags": []string{"blue"}, "description": "note", "on_boot": true,
		"network": values{"ipv6": "fd00::20/64", "rate_limit": 5},
	})
	mac := r.Text(t, "network.mac_address")
	apply(t, server, r, values{"hostname": "web-1"}, "update")
	for path, want := range map[string]any{
		"tags": nil, "description": nil, "on_boot": false, "network.ipv6": "none", "network.rate_limit": nil, "network.ipv4": "auto",
		"memory":              256.0, // no default: it stays as it is
		"network.mac_address": mac,
	} {
		if got := r.Get(t, path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
}

func TestAnUpdateOfWhatIsLocalAsksNothingOfTheServer(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	acctest.NeedsLab(t, "counts the requests that change something")
	server := protocoltest.For(t, env, nil)
	r := create(t, server, values{"hostname": "web-1"})
	if err := env.Lab.Control.ResetRequests(t.Context()); err != nil {
		t.Fatal(err)
	}
	apply(t, server, r, values{"hostname": "web-1", "wait_for": "none", "on_template_change": "keep", "timeouts": values{"create": "30m"}}, "update")
	report, err := env.Lab.Control.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range report.Entries {
		if request.Method != http.MethodGet {
			t.Errorf("%s %s", request.Method, request.Path)
		}
	}
}

func TestSpellingsThatMeanTheSamePlanNothing(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	config := values{
		"hostname": "web-1", "tags": []string{"Blue", "green"}, "description": "note",
		"network": values{"mac_address": "BC:24:11:0A:0B:0D", "ipv6": "fd00::20/64"},
	}
	r := create(t, server, config)
	plan := server.Plan(t, r, with(config, values{
		"tags": []string{"green", "blue"}, "description": "note\n",
		"network": values{"mac_address": "bc:24:11:0a:0b:0d", "ipv6": "FD00:0::20/64"},
	}))
	protocoltest.NoErrors(t, plan.Diags)
	if plan.Action() != "no-op" {
		t.Errorf("planned %s", plan.Action())
	}
}

func TestAnAddressThatStaysIsKnownAtPlan(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := create(t, server, values{"hostname": "web-1"})
	plan := server.Plan(t, r, values{"hostname": "web-1", "description": "note"})
	protocoltest.NoErrors(t, plan.Diags)
	for _, path := range []string{"id", "vmid", "claim", "node_name", "ipv4_address", "network.mac_address", "ssh.host_key"} {
		if got := plan.Get(t, path); got != r.Get(t, path) {
			t.Errorf("%s is planned as %v, was %v", path, got, r.Get(t, path))
		}
	}
}

func TestPowerChangesOnlyByStarted(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := create(t, server, values{"hostname": "web-1", "started": false})
	if got := r.Get(t, "status"); got != "stopped" {
		t.Fatalf("status is %v", got)
	}
	apply(t, server, r, values{"hostname": "web-1", "started": false, "memory": 256}, "update")
	if got := r.Get(t, "status"); got != "stopped" {
		t.Errorf("another change has started it: %v", got)
	}
	apply(t, server, r, values{"hostname": "web-1", "memory": 256}, "update")
	if got := r.Get(t, "status"); got != "running" {
		t.Errorf("status is %v", got)
	}
}
