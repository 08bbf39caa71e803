package acctest

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/target"
)

// recorder is a test that notes what is said to it instead of failing.
type recorder struct {
	testing.TB
	failed   atomic.Bool
	messages []string
	cleanups []func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Failed() bool     { return r.failed.Load() }
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.failed.Store(true)
	r.messages = append(r.messages, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// onLab is an environment on a lab for a test of this package.
func onLab(t *testing.T) *Environment {
	t.Helper()
	NeedsLab(t, "looks at what the cleanup does")
	env := startLab(t, nil)
	env.Owner = newOwner()
	return env
}

// clone makes a container with a description, by the API alone.
func clone(t *testing.T, env *Environment, vmid int, description string) *pve.Client {
	t.Helper()
	client, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	upid, err := client.CloneLXC(t.Context(), env.Node(), env.TemplateID, pve.CloneOptions{NewID: vmid, Hostname: "left", Description: description})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Wait(t.Context(), upid, func(string) {}); err != nil {
		t.Fatal(err)
	}
	return client
}

func mark(env *Environment, owner string, vmid int) string {
	return (&sandbox.Marker{
		Owner: owner, Claim: strings.Repeat("a", sandbox.ClaimLength), VMID: vmid, Kind: sandbox.KindContainer, Phase: sandbox.PhaseReady,
		TemplateID: env.TemplateID,
	}).String()
}

func TestWhatATestLeftIsDestroyedAndFailsIt(t *testing.T) {
	t.Parallel()
	env := onLab(t)
	vmid := env.VMID(3)
	client := clone(t, env, vmid, "notes\n"+mark(env, env.Owner, vmid))
	if err := client.UpdateLXC(t.Context(), env.Node(), vmid, pve.LXCUpdate{Set: map[string]string{"protection": "1"}}); err != nil {
		t.Fatal(err)
	}

	r := &recorder{TB: t}
	sweep(r, env)

	if _, err := client.LXCConfig(t.Context(), env.Node(), vmid); !pve.Means(err, pve.NoSuchGuest) {
		t.Errorf("the container is still there: %v", err)
	}
	if !r.Failed() || !strings.Contains(strings.Join(r.messages, "\n"), "behind") {
		t.Errorf("the test that left it passes: %q", r.messages)
	}
}

func TestTheCleanupOfAFailedTestOnlyTidiesUp(t *testing.T) {
	t.Parallel()
	env := onLab(t)
	clone(t, env, env.VMID(0), mark(env, env.Owner, env.VMID(0)))
	r := &recorder{TB: t}
	r.failed.Store(true)
	sweep(r, env)
	if len(r.messages) > 0 {
		t.Errorf("a failed test gets more to read: %q", r.messages)
	}
}

func TestTheCleanupNeverTouchesWhatIsNotTheTests(t *testing.T) {
	t.Parallel()
	env := onLab(t)
	strangers := map[int]string{
		env.VMID(0): "somebody's own",
		env.VMID(1): mark(env, "another-owner", env.VMID(1)),
		env.VMID(2): mark(env, env.Owner, env.VMID(7)), // a hand-made copy of one of ours
	}
	var client *pve.Client
	for vmid, description := range strangers {
		client = clone(t, env, vmid, description)
	}
	r := &recorder{TB: t}
	sweep(r, env)
	if r.Failed() {
		t.Errorf("%q", r.messages)
	}
	for vmid := range strangers {
		if _, err := client.LXCConfig(t.Context(), env.Node(), vmid); err != nil {
			t.Errorf("container %d: %v", vmid, err)
		}
	}
}

func TestBackupsThatATestLeftAreDeletedAndFailIt(t *testing.T) {
	t.Parallel()
	env := onLab(t)
	ours, strangers := env.VMID(0), env.VMID(1)
	client := clone(t, env, ours, "backed up")
	clone(t, env, strangers, "backed up")
	for vmid, owner := range map[int]string{ours: env.Owner, strangers: "another-owner"} {
		upid, err := client.Vzdump(t.Context(), env.Node(), pve.VzdumpOptions{
			VMID: vmid, Storage: env.Backups, Protected: true, Notes: mark(env, owner, vmid),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Wait(t.Context(), upid, func(string) {}); err != nil {
			t.Fatal(err)
		}
	}
	r := &recorder{TB: t}
	sweep(r, env)
	left, err := client.StorageContent(t.Context(), env.Node(), env.Backups, "backup", 0)
	if err != nil || len(left) != 1 || left[0].VMID != strangers {
		t.Errorf("left are %v, %v", left, err)
	}
	if !r.Failed() || !strings.Contains(strings.Join(r.messages, "\n"), "behind") {
		t.Errorf("the test that left it passes: %q", r.messages)
	}
}

func TestPartsOfARealRangeNeverOverlap(t *testing.T) {
	whole := func() *Environment {
		return &Environment{Target: target.Target{
			VMIDs:     target.VMIDRange{First: 500, Last: 500 + 2*idsPerTest - 1},
			Addresses: target.AddressRange{CIDR: netip.MustParsePrefix("10.0.0.0/24"), First: netip.MustParseAddr("10.0.0.10")},
		}}
	}
	a, b := whole(), whole()
	first := &recorder{TB: t}
	takeRange(first, a)
	takeRange(t, b)
	if a.VMIDs.Last >= b.VMIDs.First || b.VMIDs.First != 500+idsPerTest {
		t.Errorf("%v and %v", a.VMIDs, b.VMIDs)
	}
	if want := netip.MustParseAddr("10.0.0.30"); b.Addresses.First != want {
		t.Errorf("the second part begins at %s, its first id's address is %s", b.Addresses.First, want)
	}

	// A third test waits until one of the two has ended.
	c, taken := whole(), make(chan struct{})
	go func() { takeRange(t, c); close(taken) }()
	for _, f := range first.cleanups {
		f()
	}
	<-taken
	if c.VMIDs != a.VMIDs {
		t.Errorf("the third test got %v, not the freed %v", c.VMIDs, a.VMIDs)
	}
}

func TestVariablesDescribeARealServer(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	env := onLab(t) // for a key that is one
	content, err := env.PrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		varEndpoint: "https://pve:8006", varToken: "u@pve!t=x", varNode: "a,b", varTemplateID: "9000", varTemplateFile: "local:vztmpl/x",
		varStorage: "zfs", varBridge: "vmbr1", varAddressRange: "10.0.0.0/24,10.0.0.10,10.0.0.1", varVMIDRange: "500-599",
		varSSHKeyFile: key, varProxyJump: "me@jump:2222", varJumpHostKey: "ssh-ed25519 AAAA",
	} {
		t.Setenv(prefix+name, value)
	}
	got := fromVariables(t)
	if got.Node() != "a" || len(got.Nodes) != 2 || got.VMIDs.Last != 599 || got.Addresses.Gateway.String() != "10.0.0.1" {
		t.Errorf("%+v", got.Target)
	}
	if got.SSH.PublicKey == "" || got.SSH.ProxyJump.Port != 2222 || got.SSH.ProxyJump.Host != "jump" {
		t.Errorf("%+v", got.SSH)
	}
}

func TestEverythingThatIsMissingIsSaidAtOnce(t *testing.T) {
	t.Setenv(prefix+varEndpoint, "https://pve:8006")
	t.Setenv(prefix+varVMIDRange, "500-501")
	r := &reader{}
	r.required(varNode)
	r.vmidRange()
	r.addressRange()
	all := strings.Join(r.problems, "\n")
	for _, want := range []string{"SANDBOX_ACC_NODE is not set", "at least 20 ids", "SANDBOX_ACC_ADDRESS_RANGE is not set"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in\n%s", want, all)
		}
	}
}
