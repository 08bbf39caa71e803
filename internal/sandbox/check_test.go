package sandbox

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// offline is a manager that can't reach anything: what it says, it says
// without a request.
func offline(t *testing.T, edit func(*Settings)) *Manager {
	t.Helper()
	client, err := pve.New(pve.Config{Endpoint: "https://127.0.0.1:1", Token: "ci@pve!test=12345678-1234-4123-a123-123456789012"})
	if err != nil {
		t.Fatal(err)
	}
	settings := Settings{
		Owner: "test", VMIDs: VMIDRange{First: 5000, Last: 5099}, TemplateID: 9000, Bridge: "vmbr0", Storage: "local-btrfs",
		Addresses: &AddressRange{
			CIDR: netip.MustParsePrefix("10.10.0.0/16"), First: netip.MustParseAddr("10.10.1.0"), Gateway: netip.MustParseAddr("10.10.0.1"),
		},
	}
	if edit != nil {
		edit(&settings)
	}
	m, err := NewManager(client, settings, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func goodSpec() Spec {
	return Spec{Hostname: "agent-1", Started: true, Network: Network{IPv4: AddressAuto}, MemoryMiB: ptr(512)}
}

func TestCheckAcceptsAnOrdinarySandbox(t *testing.T) {
	t.Parallel()
	m := offline(t, nil)
	for _, spec := range []Spec{
		goodSpec(),
		{Hostname: "a.b.example", Source: Source{TemplateFileID: "local:vztmpl/debian-12-mini_12.12-1_amd64.tar.gz"}, Network: Network{IPv4: AddressDHCP, Mode: ModeUnmanaged}, Started: true},
		{Hostname: "x", VMID: 5007, Network: Network{IPv4: "10.10.9.9/16", Gateway: "10.10.0.1", IPv6: "fd00::9/64", MACAddress: "BC:24:11:00:00:01"}, FullClone: true, Storage: "local-btrfs"},
		{Hostname: "stopped", WaitFor: WaitForNone, Network: Network{IPv4: AddressNone, Mode: ModeUnmanaged}},
	} {
		if p := m.Check(spec); len(p) != 0 {
			t.Errorf("%s: %v", spec.Hostname, p)
		}
	}
}

func TestCheckRefusesBadInputBeforeAnyRequestAndNamesTheAttribute(t *testing.T) {
	t.Parallel()
	m := offline(t, nil)
	for name, c := range map[string]struct {
		edit      func(*Spec)
		attribute string
		says      string
	}{
		"underscore in the hostname": {func(s *Spec) { s.Hostname = "bad_name" }, "hostname", "DNS"},
		"hostname ends with a dash":  {func(s *Spec) { s.Hostname = "bad-" }, "hostname", "dash"},
		"label too long":             {func(s *Spec) { s.Hostname = strings.Repeat("a", 64) }, "hostname", "63"},
		"no hostname":                {func(s *Spec) { s.Hostname = "" }, "hostname", "empty"},
		"vmid below the range":       {func(s *Spec) { s.VMID = 4999 }, "vmid", "5000 to 5099"},
		"vmid above the range":       {func(s *Spec) { s.VMID = 5100 }, "vmid", "vmid_range"},
		"memory too small":           {func(s *Spec) { s.MemoryMiB = ptr(15) }, "memory", "16 MiB"},
		"no cores":                   {func(s *Spec) { s.Cores = ptr(0) }, "cores", "1 to"},
		"negative cpu limit":         {func(s *Spec) { s.CPULimit = ptr(-0.5) }, "cpu_limit", "0"},
		"disk of nothing":            {func(s *Spec) { s.DiskGiB = ptr(0) }, "disk", "1 to"},
		"capital tag":                {func(s *Spec) { s.Tags = []string{"Prod"} }, "tags", `"prod"`},
		"tag with a space":           {func(s *Spec) { s.Tags = []string{"a b"} }, "tags", "no tag"},
		"owner tag":                  {func(s *Spec) { s.Tags = []string{"sbx-other"} }, "tags", "reserved"},
		"description too long":       {func(s *Spec) { s.Description = strings.Repeat("ü", 7601) }, "description", "7601"},
		"marker in the description":  {func(s *Spec) { s.Description = "x\n<!-- sandbox v1 owner=a -->" }, "description", "marker"},
		"auto outside gateway's net": {func(s *Spec) { s.Network.Gateway = "192.168.1.1" }, "network.gateway", "10.10.0.0/16"},
		"address outside its net":    {func(s *Spec) { s.Network = Network{IPv4: "10.10.9.9/24", Gateway: "10.10.0.1"} }, "network.gateway", "10.10.9.0/24"},
		"address without prefix":     {func(s *Spec) { s.Network.IPv4 = "10.10.9.9" }, "network.ipv4", "CIDR"},
		"network address":            {func(s *Spec) { s.Network.IPv4 = "10.10.9.0/24" }, "network.ipv4", "host"},
		"broadcast address":          {func(s *Spec) { s.Network.IPv4 = "10.10.9.255/24" }, "network.ipv4", "host"},
		"gateway is ourselves":       {func(s *Spec) { s.Network = Network{IPv4: "10.10.9.9/16", Gateway: "10.10.9.9"} }, "network.gateway", "own"},
		"gateway with dhcp":          {func(s *Spec) { s.Network = Network{IPv4: AddressDHCP, Gateway: "10.10.0.1"} }, "network.gateway", "static"},
		"ipv6 without prefix":        {func(s *Spec) { s.Network.IPv6 = "fd00::1" }, "network.ipv6", "CIDR"},
		"multicast mac":              {func(s *Spec) { s.Network.MACAddress = "01:00:5e:00:00:01" }, "network.mac_address", "MAC"},
		"vlan out of range":          {func(s *Spec) { s.Network.VLANID = 4095 }, "network.vlan_id", "4094"},
		"mtu out of range":           {func(s *Spec) { s.Network.MTU = 63 }, "network.mtu", "64"},
		"bridge name too long":       {func(s *Spec) { s.Network.Bridge = "averyveryverylongbridge" }, "network.bridge", "15"},
		"dns server by name":         {func(s *Spec) { s.DNS = &DNS{Servers: []string{"dns.example"}} }, "dns.servers", "address"},
		"private key as public":      {func(s *Spec) { s.AuthorizedKeys = []string{"-----BEGIN OPENSSH PRIVATE KEY-----"} }, "authorized_keys[0]", "private"},
		"no key at all":              {func(s *Spec) { s.AuthorizedKeys = []string{"hello"} }, "authorized_keys[0]", "authorized_keys format"},
		"waits for no address":       {func(s *Spec) { s.Network.IPv4 = AddressNone }, "wait_for", "none"},
		"two sources":                {func(s *Spec) { s.Source = Source{TemplateID: 1000, TemplateFileID: "local:vztmpl/a.tar.gz"} }, "template_file_id", "Two"},
		"storage of a linked clone":  {func(s *Spec) { s.Storage = "other" }, "storage", "full_clone"},
		"template file by path":      {func(s *Spec) { s.Source = Source{TemplateFileID: "/var/lib/x.tar.gz"} }, "template_file_id", "volume id"},
		"pool with a space":          {func(s *Spec) { s.PoolID = "a b" }, "pool_id", "pool"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := goodSpec()
			c.edit(&spec)
			found := m.Check(spec)
			i := slices.IndexFunc(found, func(p Problem) bool { return p.Attribute == c.attribute })
			if i < 0 {
				t.Fatalf("no problem at %s; found %v", c.attribute, found)
			}
			if text := found[i].String(); !strings.Contains(text, c.says) {
				t.Errorf("the problem doesn't say %q: %s", c.says, text)
			}
		})
	}
}

func TestSettingsCheckRefusesRangesThatCantWork(t *testing.T) {
	t.Parallel()
	good := offline(t, nil).settings
	if p := good.Check(); len(p) != 0 {
		t.Fatalf("good settings: %v", p)
	}
	for name, c := range map[string]struct {
		edit      func(*Settings)
		attribute string
	}{
		"address range smaller than the vmid range": {func(s *Settings) { s.VMIDs = VMIDRange{First: 5000, Last: 5000 + 65500} }, "provider.address_range.cidr"},
		"first outside the net":                     {func(s *Settings) { s.Addresses.First = netip.MustParseAddr("10.11.0.1") }, "provider.address_range.first"},
		"gateway outside the net":                   {func(s *Settings) { s.Addresses.Gateway = netip.MustParseAddr("10.11.0.1") }, "provider.address_range.gateway"},
		"gateway among the sandboxes":               {func(s *Settings) { s.Addresses.Gateway = netip.MustParseAddr("10.10.1.5") }, "provider.address_range.gateway"},
		"ids upside down":                           {func(s *Settings) { s.VMIDs = VMIDRange{First: 10, Last: 5} }, "provider.vmid_range"},
		"ids below 100":                             {func(s *Settings) { s.VMIDs = VMIDRange{First: 99, Last: 200} }, "provider.vmid_range"},
		"owner with a space":                        {func(s *Settings) { s.Owner = "a b" }, "provider.owner"},
		"owner that ends a comment":                 {func(s *Settings) { s.Owner = "a--b" }, "provider.owner"},
		"negative clones":                           {func(s *Settings) { s.MaxClones = -1 }, "provider.max_clones"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := good
			a := *good.Addresses
			s.Addresses = &a
			c.edit(&s)
			if p := s.Check(); !slices.ContainsFunc(p, func(p Problem) bool { return p.Attribute == c.attribute }) {
				t.Errorf("no problem at %s: %v", c.attribute, p)
			}
		})
	}
}

func TestEachVMIDHasAnAddressOfItsOwn(t *testing.T) {
	t.Parallel()
	r := AddressRange{CIDR: netip.MustParsePrefix("10.0.0.0/22"), First: netip.MustParseAddr("10.0.0.250")}
	ids := VMIDRange{First: 100, Last: 700}
	seen := map[netip.Addr]int{}
	for id := ids.First; id <= ids.Last; id++ {
		a, err := r.Address(ids, id)
		if err != nil {
			t.Fatal(err)
		}
		if other, dup := seen[a]; dup {
			t.Fatalf("%d and %d both get %s", other, id, a)
		}
		seen[a] = id
	}
	if a, _ := r.Address(ids, 106); a != netip.MustParseAddr("10.0.1.0") {
		t.Errorf("the seventh id gets %s, not 10.0.1.0", a)
	}
	if _, err := r.Address(ids, 99); err == nil {
		t.Error("an id outside the range gets an address")
	}
}
