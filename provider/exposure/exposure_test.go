package exposure_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/exposure"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

// fixture is a container on a node that can be told.
type fixture struct {
	*protocoltest.Server
	t   *testing.T
	env *acctest.Environment
	box *protocoltest.Resource
	id  string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	env := acctest.New(t)
	f := &fixture{Server: protocoltest.For(t, env, values{"node_ssh": env.NodeSSH(t)}), t: t, env: env}
	f.box, f.id = f.container("web-1")
	return f
}

func (f *fixture) container(name string) (*protocoltest.Resource, string) {
	f.t.Helper()
	r := f.NewResource(f.t, "sandbox_container")
	config := values{"hostname": name, "network": values{"ipv4": "auto"}}
	protocoltest.NoErrors(f.t, f.Apply(f.t, f.t.Context(), f.Plan(f.t, r, config)))
	f.t.Cleanup(func() { f.Destroy(f.t, context.WithoutCancel(f.t.Context()), r) })
	return r, r.Text(f.t, "id")
}

// expose makes an exposure that the test's end removes.
func (f *fixture) expose(config values) *protocoltest.Resource {
	f.t.Helper()
	r := f.NewResource(f.t, "sandbox_port_exposure")
	if config["container_id"] == nil {
		config["container_id"] = f.id
	}
	protocoltest.NoErrors(f.t, f.Apply(f.t, f.t.Context(), f.Plan(f.t, r, config)))
	f.t.Cleanup(func() { f.Destroy(f.t, context.WithoutCancel(f.t.Context()), r) })
	return r
}

// refused plans and applies something that must fail, and says how.
func (f *fixture) refused(config values) string {
	f.t.Helper()
	r := f.NewResource(f.t, "sandbox_port_exposure")
	if config["container_id"] == nil {
		config["container_id"] = f.id
	}
	plan := f.Plan(f.t, r, config)
	if protocoltest.HasErrors(plan.Diags) {
		return protocoltest.Text(plan.Diags)
	}
	diags := f.Apply(f.t, f.t.Context(), plan)
	if !protocoltest.HasErrors(diags) || r.Exists() {
		f.t.Errorf("%v: it went, or is tracked: %s", config, protocoltest.Text(diags))
	}
	return "at apply: " + protocoltest.Text(diags)
}

func (f *fixture) units() string {
	f.t.Helper()
	units, err := f.env.Lab.Node().Units()
	if err != nil {
		f.t.Fatal(err)
	}
	var all []string
	for name := range units {
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

// becomes refreshes until an exposure has a state: the container's firewall lets the node in when it has compiled the rule.
func (f *fixture) becomes(r *protocoltest.Resource, state string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 30*time.Second)
	defer cancel()
	for protocoltest.NoErrors(f.t, f.Refresh(f.t, r)); r.Text(f.t, "state") != state; protocoltest.NoErrors(f.t, f.Refresh(f.t, r)) {
		if ctx.Err() != nil {
			f.t.Fatalf("it is %s, not %s", r.Text(f.t, "state"), state)
		}
	}
}

// serve has a program in the container answer on a port.
func (f *fixture) serve(port int, answer string) {
	f.t.Helper()
	r := f.NewResource(f.t, "sandbox_exec")
	script := fmt.Sprintf("( printf %s | nc -l -k -p %d ) >/dev/null 2>&1 &\nfor i in 1 2 3 4 5 6 7 8 9; do nc -z 127.0.0.1 %d && exit; sleep 0.1; done; exit 1", answer, port, port)
	protocoltest.NoErrors(f.t, f.Apply(f.t, f.t.Context(), f.Plan(f.t, r, values{"container_id": f.id, "script": script})))
}

func fetch(t *testing.T, at string) string {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(t.Context(), "tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestAnExposureLeadsToItsContainer(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "connects to the node's loopback")
	acctest.NeedsSimulation(t, "runs nc in the container")
	f := newFixture(t)
	r := f.expose(values{"port": 8080, "protocol": "http"})
	if name := r.Text(t, "name"); name != "sbx-"+f.id+"-8080" || r.Text(t, "id") != f.id+"/8080" {
		t.Errorf("it is called %s, %s", name, r.Text(t, "id"))
	}
	f.becomes(r, exposure.StateRefused)
	f.serve(8080, "hello")
	f.becomes(r, exposure.StateOpen)
	at := r.Text(t, "url")
	if answer := fetch(t, at); !strings.HasPrefix(at, "http://127.0.0.1:2") || answer != "hello" {
		t.Errorf("%s answers %q", at, answer)
	}
	config := values{"container_id": f.id, "port": 8080, "protocol": "http"}
	if plan := f.Plan(t, r, config); plan.Action() != "no-op" {
		t.Errorf("the second plan is %s", plan.Action())
	}

	// Another protocol touches nothing; another port is made in place, under the same name.
	config["protocol"] = "tcp"
	protocoltest.NoErrors(t, f.Apply(t, t.Context(), f.Plan(t, r, config)))
	if got := r.Text(t, "url"); got != strings.Replace(at, "http:", "tcp:", 1) {
		t.Errorf("the URL is %s", got)
	}
	free, err := f.env.Lab.Node().Occupy(0)
	if err != nil {
		t.Fatal(err)
	}
	f.env.Lab.Node().Vacate(free)
	config["host_port"] = free
	plan := f.Plan(t, r, config)
	if plan.Action() != "update" {
		t.Errorf("another port plans %s", plan.Action())
	}
	protocoltest.NoErrors(t, f.Apply(t, t.Context(), plan))
	if answer := fetch(t, r.Text(t, "url")); answer != "hello" || len(f.env.Lab.Node().Listening()) != 1 {
		t.Errorf("it answers %q, the node listens on %v", answer, f.env.Lab.Node().Listening())
	}

	imported, diags := f.Import(t, "sandbox_port_exposure", f.id+"/8080")
	protocoltest.NoErrors(t, diags)
	if plan := f.Plan(t, imported, config); plan.Action() != "no-op" {
		t.Errorf("after import the plan is %s", plan.Action())
	}
	protocoltest.NoErrors(t, f.Destroy(t, t.Context(), r))
	if left := f.units(); left != "" || len(f.env.Lab.Node().Listening()) > 0 {
		t.Errorf("left on the node: %s, %v", left, f.env.Lab.Node().Listening())
	}
}

func TestWhatCantBeIsRefusedAtPlan(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, c := range map[string]struct {
		config values
		want   string
	}{
		"no port":              {values{"port": 0}, "port"},
		"UDP":                  {values{"port": 53, "protocol": "udp"}, "protocol"},
		"another way":          {values{"port": 80, "via": "funnel"}, "via"},
		"an address missing":   {values{"port": 80, "via": "address"}, "The address is missing"},
		"an address too many":  {values{"port": 80, "address": "192.0.2.1"}, "has no meaning"},
		"every address":        {values{"port": 80, "via": "address", "address": "0.0.0.0"}, "every address of the node"},
		"the loopback's":       {values{"port": 80, "via": "address", "address": "127.0.0.1"}, `via = "loopback"`},
		"the sandboxes' own":   {values{"port": 80, "via": "address", "address": f.env.Addresses.CIDR.Addr().Next().String()}, "Sandboxes could reach"},
		"IPv6":                 {values{"port": 80, "via": "address", "address": "::1"}, "IPv4"},
		"another risk":         {values{"port": 80, "allow_risks": []any{values{"rule": "privileged", "reason": "x"}}}, "allow_risks"},
		"a risk for no reason": {values{"port": 80, "allow_risks": []any{values{"rule": "every_address", "reason": ""}}}, "reason"},
		"no container":         {values{"port": 80, "container_id": "web-1"}, "container_id"},
	} {
		if text := f.refused(c.config); strings.HasPrefix(text, "at apply") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestAPortThatIsTakenIsNamedAtPlan(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "has another program listen on the node")
	f := newFixture(t)
	node := f.env.Lab.Node()
	stranger, err := node.Occupy(0)
	if err != nil {
		t.Fatal(err)
	}
	if text := f.refused(values{"port": 80, "host_port": stranger}); strings.HasPrefix(text, "at apply") || !strings.Contains(text, fmt.Sprintf("taken by another program, which listens on 127.0.0.1:%d", stranger)) {
		t.Errorf("a stranger's port: %s", text)
	}
	first := f.expose(values{"port": 8080})
	_, other := f.container("web-2")
	port := int(first.Get(t, "host_port").(float64))
	if text := f.refused(values{"container_id": other, "port": 80, "host_port": port}); strings.HasPrefix(text, "at apply") || !strings.Contains(text, "taken by the exposure "+first.Text(t, "name")) {
		t.Errorf("another exposure's port: %s", text)
	}
	// Between two of one apply nothing is known at plan: the second is told who was first.
	node.Vacate(stranger)
	a, b := f.NewResource(t, "sandbox_port_exposure"), f.NewResource(t, "sandbox_port_exposure")
	planA := f.Plan(t, a, values{"container_id": f.id, "port": 81, "host_port": stranger})
	planB := f.Plan(t, b, values{"container_id": other, "port": 81, "host_port": stranger})
	protocoltest.NoErrors(t, f.Apply(t, t.Context(), planA))
	t.Cleanup(func() { f.Destroy(t, context.WithoutCancel(t.Context()), a) })
	diags := f.Apply(t, t.Context(), planB)
	if text := protocoltest.Text(diags); !strings.Contains(text, fmt.Sprintf("127.0.0.1:%d is taken by %s", stranger, a.Text(t, "name"))) || !strings.Contains(text, "SBX704") || b.Exists() {
		t.Errorf("the second of one apply: %s", text)
	}
	if left := f.units(); strings.Contains(left, "sbx-"+other+"-81") {
		t.Errorf("the one that failed left %s", left)
	}
	// One container's port has one exposure.
	if text := f.refused(values{"port": 8080, "host_port": 0 + port + 1}); !strings.Contains(text, "has "+first.Text(t, "name")+" already") {
		t.Errorf("a second exposure of the port: %s", text)
	}
}

func TestDriftOnTheNodeIsRepaired(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "changes units by hand")
	f := newFixture(t)
	r := f.expose(values{"port": 8080})
	config := values{"container_id": f.id, "port": 8080}
	at := r.Text(t, "url")
	run := func(line string) {
		t.Helper()
		if code, err := f.env.Lab.Node().Exec(t.Context(), "root", line, nil, nil, nil, nil); err != nil || code != 0 {
			t.Fatalf("%s: %d, %v", line, code, err)
		}
	}
	run("systemctl disable --now " + r.Text(t, "name") + ".socket")
	protocoltest.NoErrors(t, f.Refresh(t, r))
	if state := r.Text(t, "state"); state != exposure.StateInactive {
		t.Errorf("a stopped socket is %s", state)
	}
	plan := f.Plan(t, r, config)
	if plan.Action() != "update" {
		t.Fatalf("the repair is %s", plan.Action())
	}
	protocoltest.NoErrors(t, f.Apply(t, t.Context(), plan))
	if r.Text(t, "state") != exposure.StateListening || r.Text(t, "url") != at {
		t.Errorf("repaired it is %s at %s, not %s", r.Text(t, "state"), r.Text(t, "url"), at)
	}
	// A unit that leads elsewhere than to the container's own address is led back.
	service := "/etc/systemd/system/" + r.Text(t, "name") + ".service"
	run("sed -i s/" + strings.Split(r.Text(t, "target"), ":")[0] + ":/192.0.2.66:/ " + service)
	protocoltest.NoErrors(t, f.Refresh(t, r))
	if state := r.Text(t, "state"); state != exposure.StateStale {
		t.Errorf("an exposure that leads elsewhere is %s", state)
	}
	protocoltest.NoErrors(t, f.Apply(t, t.Context(), f.Plan(t, r, config)))
	if got := r.Text(t, "target"); strings.Contains(got, "192.0.2.66") {
		t.Errorf("it still leads to %s", got)
	}
	run("rm /etc/systemd/system/" + r.Text(t, "name") + ".*")
	protocoltest.NoErrors(t, f.Refresh(t, r))
	if r.Exists() {
		t.Error("one whose units are gone is still tracked")
	}
}

func TestExposuresGoWithTheirContainerAndOrphansAreSeen(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "destroys a container by hand")
	f := newFixture(t)
	node := f.env.Lab.Node()
	f.expose(values{"port": 8080})
	f.expose(values{"port": 3000})
	protocoltest.NoErrors(t, f.Destroy(t, t.Context(), f.box))
	if left := f.units(); left != "" || len(node.Listening()) > 0 {
		t.Errorf("the destroyed container left %s, %v", left, node.Listening())
	}

	// Destroyed by hand, it leaves its exposure, which is seen to be orphaned and can be removed.
	box, id := f.container("web-2")
	r := f.expose(values{"container_id": id, "port": 8080})
	stranger := protocoltest.For(t, f.env, nil) // without node_ssh it can't remove exposures
	protocoltest.NoErrors(t, stranger.Destroy(t, t.Context(), box))
	if err := node.WriteFile("/etc/systemd/system/sbx-100-x.socket", []byte("[Socket]\nListenStream=127.0.0.1:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	protocoltest.NoErrors(t, f.Refresh(t, r))
	if state := r.Text(t, "state"); state != exposure.StateOrphaned {
		t.Errorf("an exposure without its container is %s", state)
	}
	got, diags := f.Data(t, "sandbox_port_exposures", nil)
	protocoltest.NoErrors(t, diags)
	if text := protocoltest.Text(diags); !strings.Contains(text, "sbx-100-x") {
		t.Errorf("a forged unit isn't mentioned: %s", text)
	}
	list := got.(map[string]any)["exposures"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["state"] != exposure.StateOrphaned || list[0].(map[string]any)["container_id"] != id {
		t.Errorf("the list is %v", list)
	}
	protocoltest.NoErrors(t, f.Destroy(t, t.Context(), r))
	if left := f.units(); left != "/etc/systemd/system/sbx-100-x.socket" {
		t.Errorf("left are %s", left)
	}
}

func TestANodeThatCantBeReachedLosesNothing(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "cuts the way to the node")
	f := newFixture(t)
	ssh := f.env.Lab.SSHNode()
	r := f.expose(values{"port": 8080})

	// The answer to the request that made an exposure is lost: it is taken back.
	ssh.DropAt(2) // after the list
	if text := f.refused(values{"port": 3000}); !strings.Contains(text, "SBX702") {
		t.Errorf("a lost answer: %s", text)
	}
	if left := f.units(); strings.Contains(left, "-3000") {
		t.Errorf("what nobody knows of is left: %s", left)
	}

	ssh.Refuse(true)
	diags := f.Refresh(t, r)
	if text := protocoltest.Text(diags); protocoltest.HasErrors(diags) || !r.Exists() || !strings.Contains(text, "Unable to look at the exposure") {
		t.Errorf("a refresh without the node: %s", text)
	}
	if text := f.refused(values{"port": 3001}); !strings.Contains(text, "SBX702") || !strings.HasPrefix(text, "at apply") {
		t.Errorf("a create without the node: %s", text)
	}
	if diags := f.Destroy(t, t.Context(), r); !protocoltest.HasErrors(diags) || !r.Exists() {
		t.Errorf("a removal without the node: %s", protocoltest.Text(diags))
	}
	// The container's destroy goes through, and says what it could not see to. (The lab's guests are reached by the same host.)
	diags = f.Destroy(t, t.Context(), f.box)
	if text := protocoltest.Text(diags); protocoltest.HasErrors(diags) || !strings.Contains(text, "may be left on node") {
		t.Errorf("the container's destroy: %s", text)
	}
	ssh.Refuse(false)
	if left := f.units(); !strings.Contains(left, r.Text(t, "name")) {
		t.Errorf("left are %q", left)
	}
	protocoltest.NoErrors(t, f.Destroy(t, t.Context(), r))
	if left := f.units(); left != "" {
		t.Errorf("left are %q", left)
	}
}

func TestTailscaleAndAddresses(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "gives the node a tailnet")
	f := newFixture(t)
	node := f.env.Lab.Node()
	if text := f.refused(values{"port": 80, "via": "tailscale"}); !strings.Contains(text, "Tailscale isn't up on this node") {
		t.Errorf("without a tailnet: %s", text)
	}
	node.Tailscale("pve.tail-lab.ts.net", "serve is not enabled on your tailnet")
	if text := f.refused(values{"port": 80, "via": "tailscale"}); !strings.Contains(text, "serve is not enabled") || f.units() != "" || len(node.Listening()) > 0 {
		t.Errorf("what Tailscale refuses: %s; left are %s", text, f.units())
	}
	node.Tailscale("pve.tail-lab.ts.net", "")
	r := f.expose(values{"port": 8080, "via": "tailscale", "protocol": "http"})
	port := fmt.Sprint(r.Get(t, "host_port"))
	if at := r.Text(t, "url"); at != "http://pve.tail-lab.ts.net:"+port || node.Served()[port] != "tcp://127.0.0.1:"+port {
		t.Errorf("it is at %s, served are %v", at, node.Served())
	}
	config := values{"container_id": f.id, "port": 8080, "via": "tailscale", "protocol": "http"}
	code, err := node.Exec(t.Context(), "root", "tailscale serve --tcp="+port+" off", nil, nil, nil, nil)
	if err != nil || code != 0 {
		t.Fatal(code, err)
	}
	protocoltest.NoErrors(t, f.Refresh(t, r))
	if state := r.Text(t, "state"); state != exposure.StateUnpublished {
		t.Errorf("what isn't served is %s", state)
	}
	protocoltest.NoErrors(t, f.Apply(t, t.Context(), f.Plan(t, r, config)))
	if len(node.Served()) != 1 {
		t.Errorf("served are %v", node.Served())
	}
	// From the tailnet to an address of the node, in place.
	config = values{"container_id": f.id, "port": 8080, "via": "address", "address": "0.0.0.0", "allow_risks": []any{values{"rule": "every_address", "reason": "a test"}}}
	plan := f.Plan(t, r, config)
	if plan.Action() != "update" {
		t.Fatalf("another way plans %s", plan.Action())
	}
	protocoltest.NoErrors(t, f.Apply(t, t.Context(), plan))
	if len(node.Served()) > 0 || !strings.HasPrefix(node.Listening()[0], "0.0.0.0:") {
		t.Errorf("served are %v, the node listens on %v", node.Served(), node.Listening())
	}
}

// The wall lets the node in to that one port, and stays what its mode says: the rule is no drift, outlives a change of the
// mode, and goes with the exposure. What only calls itself such a rule is drift.
func TestTheWallLetsTheNodeInToOnePort(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	acctest.NeedsFirewall(t, f.env)
	client, err := pve.New(f.env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	scope := pve.LXCFirewall(f.box.Text(t, "node_name"), f.box.VMID(t))
	exposed := func() []egress.Rule {
		t.Helper()
		list, err := egress.ReadRules(t.Context(), client, scope)
		if err != nil {
			t.Fatal(err)
		}
		_, rules := egress.SplitExposed(list.Rules, f.box.VMID(t))
		return rules
	}
	r := f.expose(values{"port": 8080})
	if rules := exposed(); len(rules) != 1 || rules[0].DPort != "8080" || rules[0].Source == "" || strings.ContainsAny(rules[0].Source, "/,") {
		t.Fatalf("the rules are %v", rules)
	}
	config := values{"hostname": "web-1", "network": values{"ipv4": "auto"}}
	protocoltest.NoErrors(t, f.Refresh(t, f.box))
	if plan := f.Plan(t, f.box, config); plan.Action() != "no-op" {
		t.Errorf("the container's plan is %s: %s", plan.Action(), protocoltest.Text(plan.Diags))
	}
	config["network"] = values{"ipv4": "auto", "mode": "web"}
	protocoltest.NoErrors(t, f.Apply(t, t.Context(), f.Plan(t, f.box, config)))
	if rules := exposed(); len(rules) != 1 {
		t.Errorf("after a change of the mode the rules are %v", rules)
	}
	protocoltest.NoErrors(t, f.Destroy(t, t.Context(), r))
	if rules := exposed(); len(rules) != 0 {
		t.Errorf("without the exposure the rules are %v", rules)
	}
	forged := egress.ExposedRule(exposure.Name(f.box.VMID(t), 8080), f.env.Addresses.First, 8080)
	forged.Source = ""
	if _, err := egress.SyncPart(t.Context(), client, scope, nil, func(have []egress.Rule) []egress.Rule { return egress.Expose(have, forged) }); err != nil {
		t.Fatal(err)
	}
	protocoltest.NoErrors(t, f.Refresh(t, f.box))
	plan := f.Plan(t, f.box, config)
	if plan.Action() != "update" {
		t.Fatalf("with a forged rule the container's plan is %s", plan.Action())
	}
	protocoltest.NoErrors(t, f.Apply(t, t.Context(), plan))
	list, err := egress.ReadRules(t.Context(), client, scope)
	if err != nil || slices.ContainsFunc(list.Rules, func(r egress.Rule) bool { return r.Comment == forged.Comment }) {
		t.Errorf("the forged rule is left: %v, %v", list.Rules, err)
	}
}

// The restricted login does the same, by units of its own, and nothing that its program forbids.
func TestTheRestrictedLoginExposes(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "prepares the node as examples/bootstrap does")
	env := acctest.New(t)
	const gate = "/usr/local/lib/sandbox-node/gate"
	prefix := strings.Join(strings.Split(env.Addresses.CIDR.Addr().String(), ".")[:2], ".")
	if err := env.Lab.Node().WriteFile(gate, []byte(exposure.Gate(prefix)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := env.Lab.SSHNode().Authorize("sandbox-node", `restrict,command="`+gate+`" `+env.SSH.PublicKey); err != nil {
		t.Fatal(err)
	}
	access := env.NodeSSH(t)
	access["username"] = "sandbox-node"
	f := &fixture{Server: protocoltest.For(t, env, values{"node_ssh": access}), t: t, env: env}
	f.box, f.id = f.container("web-1")
	r := f.expose(values{"port": 8080})
	if units := f.units(); !strings.Contains(units, "/var/lib/sandbox-node/.config/systemd/user/"+r.Text(t, "name")+".socket") || strings.Contains(units, "/etc/systemd") {
		t.Errorf("the units are %s", units)
	}
	f.becomes(r, exposure.StateRefused)
	if text := f.refused(values{"port": 81, "host_port": 81}); !strings.Contains(text, "must lie between 1024 and 65535") {
		t.Errorf("a privileged port: %s", text)
	}
	protocoltest.NoErrors(t, f.Destroy(t, t.Context(), r))
	if units := f.units(); units != "" {
		t.Errorf("left are %s", units)
	}
}

func TestWithoutNodeSSHItSaysSo(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	f := &fixture{Server: protocoltest.For(t, env, nil), t: t, env: env}
	f.box, f.id = f.container("web-1")
	if text := f.refused(values{"port": 8080}); !strings.Contains(text, "node_ssh") || !strings.Contains(text, "SBX703") {
		t.Errorf("it said: %s", text)
	}
	s := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	diags := s.Configure(t, values{"endpoint": env.Endpoint, "api_token": env.APIToken, "node_ssh": values{"private_key": "not a key"}})
	if text := protocoltest.Text(diags); !strings.Contains(text, "node_ssh.private_key") || !strings.Contains(text, "not pinned") {
		t.Errorf("it said: %s", text)
	}
}

// A hardened template has a filter of its own inside: an exposure opens its port there, and closes it again.
func TestAnExposureOpensThePortInTheFilterInside(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := func(script string) string {
		t.Helper()
		r := f.NewResource(t, "sandbox_exec")
		protocoltest.NoErrors(t, f.Apply(t, t.Context(), f.Plan(t, r, values{"container_id": f.id, "script": script, "triggers": values{"script": script}})))
		return r.Text(t, "stdout")
	}
	// What internal/harden puts there, as far as it matters here.
	run(`mkdir -p /usr/local/lib/sandbox /etc/sandbox/nftables.d
		printf '#!/bin/sh\necho "$1 $2" >>/tmp/told\ncase $1 in add) touch /etc/sandbox/nftables.d/50-port-$2.nft ;; remove) rm /etc/sandbox/nftables.d/50-port-$2.nft ;; esac\n' >/usr/local/lib/sandbox/open-port
		chmod 755 /usr/local/lib/sandbox/open-port`)
	r := f.NewResource(t, "sandbox_port_exposure")
	protocoltest.NoErrors(t, f.Apply(t, t.Context(), f.Plan(t, r, values{"container_id": f.id, "port": 3000})))
	if told := run("cat /tmp/told; echo"); strings.TrimSpace(told) != "add 3000" {
		t.Errorf("it was told %q", told)
	}
	protocoltest.NoErrors(t, f.Destroy(t, t.Context(), r))
	if told := run("cat /tmp/told; echo; :"); strings.TrimSpace(told) != "add 3000\nremove 3000" {
		t.Errorf("it was told %q", told)
	}

	run(`printf '#!/bin/sh\necho "nft: not permitted" >&2\nexit 1\n' >/usr/local/lib/sandbox/open-port`)
	if text := f.refused(values{"port": 3001}); !strings.Contains(text, "not permitted") || !strings.Contains(text, "open-port add 3001") {
		t.Errorf("a filter that can't be opened: %s", text)
	}
	if units := f.units(); strings.Contains(units, "3001") {
		t.Errorf("on the node are %s", units)
	}
}
