package lxc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/internal/packertest"
)

// nodeLogin are the variables of a login on the lab's node.
func nodeLogin(c *packertest.CLI, l *lab.Lab) {
	c.Setenv("SANDBOX_NODE_SSH_HOST", l.SSHHost())
	c.Setenv("SANDBOX_NODE_SSH_PORT", fmt.Sprint(l.SSHPort()))
	c.Setenv("SANDBOX_NODE_SSH_PRIVATE_KEY", l.PrivateKey())
	c.Setenv("SANDBOX_NODE_SSH_HOST_KEY", l.SSHHostKey())
}

func TestABuildWithoutANetworkGoesThroughTheNode(t *testing.T) {
	t.Parallel()
	l := packertest.StartLab(t, lab.Options{})
	c := packertest.New(t).Lab(l)
	nodeLogin(c, l)
	binary := make([]byte, 9000)
	for i := range binary {
		binary[i] = byte(i * 7)
	}
	c.Write("up/deep/binary", string(binary))
	c.Write("up/it's a name", "quoted\n")
	c.Write("t.pkr.hcl", build(l, `
  communicator          = "pct"
  network_adapters_none = true
  lxc_raw               = ["lxc.cap.drop: sys_module sys_time"]
`, `
  provisioner "file" {
    source      = "up"
    destination = "/opt"
  }
  provisioner "shell" {
    environment_vars = ["SECRET=it's \"one\" $HOME"]
    inline           = [
      "test \"$SECRET\" = \"it's \\\"one\\\" \\$HOME\"",
      "test \"$(cat \"/opt/up/it's a name\")\" = quoted",
      "mkdir -p /srv/out; cp /opt/up/deep/binary /srv/out/binary; echo $SECRET > /srv/out/text",
    ]
  }
  provisioner "file" {
    direction   = "download"
    source      = "/srv/out/"
    destination = "down/"
  }
  provisioner "file" {
    direction   = "download"
    source      = "/opt/up/deep/binary"
    destination = "one"
  }
`))
	c.Must("init", "t.pkr.hcl")
	out := c.Must("build", "t.pkr.hcl")
	for _, file := range []string{"down/binary", "one"} {
		if got, err := os.ReadFile(filepath.Join(c.Dir, file)); err != nil || string(got) != string(binary) {
			t.Errorf("%s came back with %d bytes (%v)", file, len(got), err)
		}
	}
	templates, strays := left(t, l)
	if len(templates) != 1 || len(strays) != 0 {
		t.Fatalf("templates %v, strays %v\n%s", templates, strays, out)
	}
	g := guest(t, l, templates[0])
	if len(g.RawLines) != 1 || g.RawLines[0].Key != "lxc.cap.drop" || g.RawLines[0].Value != "sys_module sys_time" {
		t.Errorf("the raw lines are %v", g.RawLines)
	}
}

func TestACommandThatFailsThroughTheNodeFailsTheBuild(t *testing.T) {
	t.Parallel()
	l := packertest.StartLab(t, lab.Options{})
	c := packertest.New(t).Lab(l)
	nodeLogin(c, l)
	c.Write("t.pkr.hcl", build(l, `  communicator = "pct"`, `
  provisioner "shell" { inline = ["exit 23"] }
`))
	c.Must("init", "t.pkr.hcl")
	c.Fails([]string{"exit status: 23"}, "build", "t.pkr.hcl")
	if templates, strays := left(t, l); len(templates)+len(strays) != 0 {
		t.Errorf("left %v %v", templates, strays)
	}
}
