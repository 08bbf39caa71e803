package container_test

import (
	"context"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

// fakeTailscale keeps book of how it is called, and of the key that it is given by a file.
const fakeTailscale = `#!/bin/sh
echo "$0 $*" >>/root/calls
case $1 in
  status) [ -e /run/tailscaled.up ] ;;
  up) for a; do case $a in --auth-key=file:*) stat -c '%a' "${a#*file:}" >/root/mode; cat "${a#*file:}" | md5sum >/root/sum; grep -q refused "${a#*file:}" && { echo "invalid key: $(cat "${a#*file:}")" >&2; exit 1; } ;; esac; done ;;
esac
exit $?
`

func TestAContainerJoinsATailnetByAKeyThatIsNowhere(t *testing.T) {
	t.Parallel()
	acctest.NeedsSimulation(t, "puts another program in the place of tailscale")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := server.NewResource(t, "sandbox_container")
	apply(t, server, r, values{"hostname": "web-1"}, "create")
	t.Cleanup(func() { server.Destroy(t, context.WithoutCancel(t.Context()), r) })
	id := r.Text(t, "id")
	run := func(script string) string {
		t.Helper()
		x := server.NewResource(t, "sandbox_exec")
		protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, x, values{"container_id": id, "script": script})))
		return x.Text(t, "stdout")
	}
	with := func(key string, version int) values {
		return values{"hostname": "web-1", "tailscale": values{"auth_key_wo": key, "auth_key_wo_version": version, "tags": []string{"tag:sandbox", "tag:ci"}}}
	}

	// Not installed: an error that says so, and the next apply tries again.
	diags := server.Apply(t, t.Context(), server.Plan(t, r, with("tskey-canary-1", 1)))
	if text := protocoltest.Text(diags); !strings.Contains(text, "tailscale is not installed") || !strings.Contains(text, "SBX705") || r.Get(t, "tailscale") != nil {
		t.Errorf("without tailscale: %s", text)
	}
	run("mkdir -p /usr/local/bin\ncat >/usr/local/bin/tailscale <<'X'\n" + fakeTailscale + "X\ncat >/usr/local/bin/tailscaled <<'X'\n#!/bin/sh\necho \"$0 $*\" >>/root/calls\ntouch /run/tailscaled.up\nX\nchmod 755 /usr/local/bin/tailscale*")
	diags = server.Apply(t, t.Context(), server.Plan(t, r, with("tskey-refused-canary", 1)))
	if text := protocoltest.Text(diags); !strings.Contains(text, "invalid key: [redacted]") || strings.Contains(text, "canary") {
		t.Errorf("a key that is refused: %s", text)
	}
	apply(t, server, r, with("tskey-canary-1", 1), "update")
	calls := run("cat /root/calls")
	name := strings.ToLower(strings.NewReplacer(".", "-", "_", "-").Replace(env.Owner)) + "-" + id
	for _, want := range []string{"tailscaled --state=/var/lib/tailscale/tailscaled.state --tun=userspace-networking", "--hostname=" + name, "--advertise-tags=tag:sandbox,tag:ci"} {
		if !strings.Contains(calls, want) {
			t.Errorf("%q isn't in\n%s", want, calls)
		}
	}
	if got := run("cat /root/mode"); got != "600\n" {
		t.Errorf("the key's file had mode %s", got)
	}
	if got := run("grep -r canary /run /root /etc /var /tmp || ls /run | grep tailscale-key || echo none"); !strings.HasSuffix(got, "none\n") {
		t.Errorf("of the key is left: %s", got)
	}
	if got := r.Get(t, "tailscale.auth_key_wo"); got != nil {
		t.Errorf("the state holds %v", got)
	}

	// Another key alone plans nothing; another version joins anew; taken out, it logs out.
	if plan := server.Plan(t, r, with("tskey-canary-2", 1)); plan.Action() != "no-op" {
		t.Errorf("another key plans %s", plan.Action())
	}
	apply(t, server, r, with("tskey-canary-2", 2), "update")
	if n := strings.Count(run("cat /root/calls"), "tailscale up "); n != 3 {
		t.Errorf("it joined %d times", n)
	}
	apply(t, server, r, values{"hostname": "web-1"}, "update")
	if calls := run("cat /root/calls"); !strings.Contains(calls, "tailscale logout") {
		t.Errorf("it didn't log out:\n%s", calls)
	}
	if plan := server.Plan(t, r, values{"hostname": "web-1", "started": false, "tailscale": values{"auth_key_wo": "k", "auth_key_wo_version": 1}}); !strings.Contains(protocoltest.Text(plan.Diags), "A stopped container can't join") {
		t.Errorf("stopped: %s", protocoltest.Text(plan.Diags))
	}
}
