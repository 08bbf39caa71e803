package lxc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/internal/packertest"
)

// broken fails inside after the first of two provisioners; what was cleaned up says so in a file of this machine.
const broken = `
  provisioner "shell" { inline = ["echo one > /etc/one"] }
  provisioner "shell" { inline = ["echo two; exit 3"] }
  error-cleanup-provisioner "shell-local" { inline = ["echo cleaned > cleaned"] }
`

func TestAProvisionerThatFailsLeavesWhatOnErrorSays(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]struct {
		left    int
		cleaned bool
	}{"cleanup": {0, true}, "abort": {1, false}, "run-cleanup-provisioner": {1, true}} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			l := packertest.StartLab(t, lab.Options{})
			c := packertest.New(t).Lab(l)
			c.Write("t.pkr.hcl", build(l, "", broken))
			c.Must("init", "t.pkr.hcl")
			out := c.Fails([]string{"exit status: 3"}, "build", "-on-error="+flag, "t.pkr.hcl")
			templates, strays := left(t, l)
			if len(templates) != 0 || len(strays) != want.left {
				t.Errorf("left are %v %v, want %d\n%s", templates, strays, want.left, out)
			}
			if _, err := os.Stat(filepath.Join(c.Dir, "cleaned")); (err == nil) != want.cleaned {
				t.Errorf("the cleanup provisioner ran: %v, want %v", err == nil, want.cleaned)
			}
			for _, id := range strays { // what is left says whose it is, so that the next build removes it
				if d := guest(t, l, id).Description(); !strings.Contains(d, "kind=template phase=creating") {
					t.Errorf("container %d has the notes %q", id, d)
				}
			}
		})
	}
}

// TestAStepThatFailsLeavesNothing has each step fail once, by a task that fails after the server has said 200.
func TestAStepThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	l := packertest.StartLab(t, lab.Options{})
	c := packertest.New(t).Lab(l)
	c.Write("t.pkr.hcl", build(l, "", ""))
	c.Must("init", "t.pkr.hcl")
	for _, task := range []string{"vzcreate", "vzstart", "vzshutdown", "vztemplate", "vzclone", "vzreboot"} {
		if err := l.Control().FailTask(t.Context(), control.TaskFault{Type: task, Count: 1, Exit: "unable to do it: disk quota"}); err != nil {
			t.Fatal(err)
		}
		out := c.Fails([]string{"unable to do it: disk quota"}, "build", "t.pkr.hcl")
		if err := l.Control().Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		if templates, strays := left(t, l); len(templates)+len(strays) != 0 {
			t.Fatalf("after a failed %s there is left %v %v\n%s", task, templates, strays, out)
		}
	}
}

func TestANetworkThatIsAwayInTheMiddleIsSaid(t *testing.T) {
	t.Parallel()
	l := packertest.StartLab(t, lab.Options{})
	c := packertest.New(t).Lab(l)
	c.Write("t.pkr.hcl", build(l, `  task_timeout = "2s"`, ""))
	c.Must("init", "t.pkr.hcl")
	id, err := l.Control().Inject(t.Context(), control.Fault{Pattern: ".", Nth: 8, Count: -1, Kind: control.DropBefore})
	if err != nil {
		t.Fatal(err)
	}
	out := c.Fails([]string{"could not be removed", "the next build of small removes it"}, "build", "t.pkr.hcl")
	if state, err := l.Control().WaitFired(t.Context(), id, 1, time.Second); err != nil || state.Fired == 0 {
		t.Fatalf("the network was never away: %v\n%s", err, out)
	}
	if err := l.Control().Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, strays := left(t, l)
	if len(strays) != 1 || !strings.Contains(guest(t, l, strays[0]).Description(), "kind=template phase=creating") {
		t.Errorf("left %v\n%s", strays, out)
	}
}

func TestForceNeverTouchesWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	l := packertest.StartLab(t, lab.Options{})
	c := packertest.New(t).Lab(l)
	nodeLogin(c, l)
	clone := strings.Replace(build(l, fmt.Sprintf(`
  clone_vm_id  = %d
  communicator = "pct"
`, lab.TemplateID), ""), `os_template          = "`+lab.TemplateFile+`"`, "", 1)
	c.Write("t.pkr.hcl", clone)
	c.Must("init", "t.pkr.hcl")
	before := guest(t, l, lab.TemplateID)
	c.Write("taken.pkr.hcl", strings.Replace(clone, "clone_vm_id", fmt.Sprintf("vm_id = %d\n  clone_vm_id", lab.TemplateID), 1))
	c.Fails([]string{"can't be built over what it is cloned from"}, "build", "-force", "taken.pkr.hcl")
	c.Must("build", "-force", "t.pkr.hcl")
	if after := guest(t, l, lab.TemplateID); after.Digest() != before.Digest() {
		t.Error("the source, which isn't ours, was changed")
	}
	if templates, strays := left(t, l); len(templates) != 1 || len(strays) != 0 {
		t.Errorf("left %v %v", templates, strays)
	}
}

func TestATokenHearsWhatOnlyRootMayDo(t *testing.T) {
	t.Parallel()
	l := packertest.StartLab(t, lab.Options{})
	c := packertest.New(t).Lab(l)
	c.Write("t.pkr.hcl", build(l, `
  features {
    nesting = true
    keyctl  = true
  }`, ""))
	c.Must("init", "t.pkr.hcl")
	c.Fails([]string{"features.keyctl: Only root@pam may set the feature keyctl", "keep nesting = true alone", "lxc_raw"}, "build", "t.pkr.hcl")
	if templates, strays := left(t, l); len(templates)+len(strays) != 0 {
		t.Errorf("left %v %v", templates, strays)
	}
	c.Setenv("PROXMOX_USERNAME", "root@pam")
	c.Setenv("PROXMOX_PASSWORD", l.RootPassword())
	c.Must("build", "t.pkr.hcl")
}
