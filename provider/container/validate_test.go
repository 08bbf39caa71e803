package container_test

import (
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

func TestValidationNamesTheAttribute(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	for _, test := range []struct {
		change values
		at     string
	}{
		{values{"hostname": ""}, "hostname"},
		{values{"hostname": strings.Repeat("a", 256)}, "hostname"},
		{values{"template_id": 99}, "template_id"},
		{values{"template_id": 9000, "template_file_id": "local:vztmpl/x.tar.gz"}, "template_id"},
		{values{"vmid": 1}, "vmid"},
		{values{"cores": 0}, "cores"},
		{values{"cpu_limit": -1}, "cpu_limit"},
		{values{"cpu_units": 0}, "cpu_units"},
		{values{"memory": 15}, "memory"},
		{values{"swap": -1}, "swap"},
		{values{"disk": 1.5}, "disk"},
		{values{"disk": 0}, "disk"},
		{values{"tags": []string{"a b"}}, "tags"},
		{values{"tags": []string{"ümlaut"}}, "tags"},
		{values{"description": strings.Repeat("é", 7601)}, "description"},
		{values{"on_template_change": "ask"}, "on_template_change"},
		{values{"wait_for": "coffee"}, "wait_for"},
		{values{"startup": values{"order": -1}}, "order"},
		{values{"network": values{"vlan_id": 4095}}, "vlan_id"},
		{values{"network": values{"mtu": 63}}, "mtu"},
		{values{"network": values{"rate_limit": 0}}, "rate_limit"},
		{values{"network": values{"mac_address": "01:00:5e:00:00:01"}}, "mac_address"},
		{values{"network": values{"mac_address": "bc2411000001"}}, "mac_address"},
		{values{"network": values{"ipv4": "10.0.0.5"}}, "ipv4"},
		{values{"network": values{"ipv4": "fd00::1/64"}}, "ipv4"},
		{values{"network": values{"ipv4": "manual"}}, "ipv4"},
		{values{"network": values{"ipv6": "10.0.0.5/24"}}, "ipv6"},
		{values{"network": values{"gateway": "fd00::1"}}, "gateway"},
		{values{"dns": values{"servers": []string{"one.example.org"}}}, "servers"},
		{values{"dns": values{"servers": []string{"10.0.0.1", "10.0.0.1"}}}, "servers"},
		{values{"authorized_keys": []string{"not a key"}}, "authorized_keys"},
		{values{"authorized_keys": []string{key + "\n" + key}}, "authorized_keys"},
		{values{"authorized_keys_wo": []string{key}}, "authorized_keys_wo"},
		{values{"authorized_keys_wo_version": 1}, "authorized_keys_wo_version"},
		{values{"authorized_keys": []string{key}, "authorized_keys_wo": []string{key}, "authorized_keys_wo_version": 1}, "authorized_keys"},
		{values{"timeouts": values{"create": "soon"}}, "create"},
		{values{"timeouts": values{"delete": "-1s"}}, "delete"},
	} {
		diags := server.Validate(t, resourceType, with(values{"hostname": "web-1"}, test.change))
		if !protocoltest.HasErrors(diags) {
			t.Errorf("%v was accepted", test.change)
			continue
		}
		wants(t, diags, "ERROR", `AttributeName("`+test.at+`")`)
	}
	protocoltest.NoErrors(t, server.Validate(t, resourceType, values{
		"hostname": "web-1.example.org", "description": strings.Repeat("é", 7600), "tags": []string{"Blue", "a+b", "v1.2", "_x-y"},
		"authorized_keys_wo": []string{key}, "authorized_keys_wo_version": 1, "timeouts": values{"create": "1h30m"},
		"network": values{"ipv4": "10.0.0.5/24", "gateway": "10.0.0.1", "ipv6": "auto", "mac_address": "bc:24:11:00:00:01"},
	}))
}

func TestPlanRefusesWhatAnApplyWouldRefuse(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	taken := create(t, server, values{"hostname": "taken"})
	server = protocoltest.For(t, env, nil)
	for name, test := range map[string]struct {
		change values
		want   []string
	}{
		"a hostname that DNS refuses":        {values{"hostname": "web_1"}, []string{`AttributeName("hostname")`, "web_1"}},
		"a vmid outside the range":           {values{"vmid": env.VMIDs.Last + 1}, []string{`AttributeName("vmid")`, "range"}},
		"a vmid that is taken":               {values{"vmid": taken.VMID(t)}, []string{`AttributeName("vmid")`}},
		"a template that is missing":         {values{"template_id": env.VMID(18)}, []string{`AttributeName("template_id")`}},
		"a template that is none":            {values{"template_id": taken.VMID(t)}, []string{`AttributeName("template_id")`, "template"}},
		"a storage for a linked clone":       {values{"storage": env.Storage}, []string{`AttributeName("storage")`, "linked"}},
		"a node that isn't there":            {values{"node_name": "nowhere"}, []string{`AttributeName("node_name")`, "nowhere"}},
		"a gateway outside the net":          {values{"network": values{"ipv4": "10.77.0.20/24", "gateway": "10.99.0.1"}}, []string{`AttributeName("gateway")`, "outside"}},
		"a gateway without a static address": {values{"network": values{"ipv4": "dhcp", "gateway": "10.77.0.1"}}, []string{`AttributeName("gateway")`}},
		"nothing to wait for":                {values{"network": values{"ipv4": "none"}}, []string{`AttributeName("wait_for")`}},
		"a tag of the provider's":            {values{"tags": []string{"sbx-other"}}, []string{`AttributeName("tags")`, "reserved"}},
		"a marker in the description":        {values{"description": "<!-- sandbox v1 owner=x -->"}, []string{`AttributeName("description")`, "marker"}},
		"a template file on no storage":      {values{"template_file_id": "nowhere:vztmpl/x.tar.gz"}, []string{`"nowhere"`}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := server.Plan(t, server.NewResource(t, resourceType), with(values{"hostname": "web-1"}, test.change))
			if !protocoltest.HasErrors(plan.Diags) {
				t.Fatal("it was accepted")
			}
			wants(t, plan.Diags, append(test.want, "ERROR")...)
		})
	}
	t.Run("a disk that would shrink", func(t *testing.T) {
		larger := env.DiskGiB(t, 2)
		apply(t, server, taken, values{"hostname": "taken", "disk": larger}, "update")
		plan := server.Plan(t, taken, values{"hostname": "taken", "disk": larger - 1})
		wants(t, plan.Diags, "ERROR", `AttributeName("disk")`, "shrink")
	})
}

func TestUnknownValuesPostponeTheirChecks(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	for name, change := range map[string]values{
		"hostname":     {"hostname": protocoltest.Unknown},
		"template":     {"template_id": protocoltest.Unknown, "storage": env.Storage},
		"tags":         {"tags": []any{"blue", protocoltest.Unknown}},
		"all tags":     {"tags": protocoltest.Unknown},
		"network":      {"network": protocoltest.Unknown},
		"an address":   {"network": values{"ipv4": protocoltest.Unknown, "gateway": "10.77.0.1"}},
		"keys":         {"authorized_keys": []any{protocoltest.Unknown}},
		"dns":          {"dns": values{"servers": protocoltest.Unknown}},
		"memory":       {"memory": protocoltest.Unknown},
		"pool":         {"pool_id": protocoltest.Unknown},
		"description":  {"description": protocoltest.Unknown},
		"when to wait": {"wait_for": protocoltest.Unknown, "network": values{"ipv4": "none"}},
	} {
		plan := server.Plan(t, server.NewResource(t, resourceType), with(values{"hostname": "web-1"}, change))
		if protocoltest.HasErrors(plan.Diags) {
			t.Errorf("%s: %s", name, protocoltest.Text(plan.Diags))
		}
	}
	// What has nothing to do with it is still refused.
	plan := server.Plan(t, server.NewResource(t, resourceType), values{"hostname": protocoltest.Unknown, "vmid": env.VMIDs.Last + 1})
	wants(t, plan.Diags, "ERROR", `AttributeName("vmid")`)
}

func TestErrorsOfTheConnectionSayWhatToDo(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	for name, test := range map[string]struct {
		config values
		want   []string
	}{
		"a wrong token":                 {values{"api_token": "nobody@pve!test=00000000-0000-0000-0000-000000000000"}, []string{"nobody@pve!test", "refused"}},
		"a certificate that isn't ours": {values{"fingerprint": strings.Repeat("ab", 32)}, []string{"not trusted", "fingerprint", "set fingerprint"}},
		"nobody there":                  {values{"endpoint": "https://127.0.0.1:1"}, []string{"127.0.0.1:1"}},
	} {
		server := protocoltest.ForWith(t, env, test.config, quick)
		plan := server.Plan(t, server.NewResource(t, resourceType), values{"hostname": "web-1"})
		if !protocoltest.HasErrors(plan.Diags) {
			t.Errorf("%s: it was accepted", name)
		}
		wants(t, plan.Diags, append(test.want, "ERROR", "Unable to check container web-1")...)
	}
}
