package command

import (
	"fmt"
	"path"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

func df(c *shell.Call) int {
	f := parse(c, "hkmPTiaB:lt:x:", "output=", "block-size=B", "human-readable=h", "print-type=T", "portability=P")
	if f == nil {
		return 1
	}
	mounts := c.Machine.FS.Mounts()
	if len(f.args) > 0 {
		mounts = nil
		for _, a := range f.args {
			m, err := c.Machine.FS.MountOf(c.Cred, c.Path(a))
			if err != nil {
				return c.FailFile(a, err)
			}
			mounts = append(mounts, m)
		}
	}
	unit, head := int64(1024), "1K-blocks"
	switch {
	case f.has("m") || f.value["B"] == "M" || f.value["B"] == "1M":
		unit, head = 1<<20, "1M-blocks"
	case f.value["B"] == "1":
		unit, head = 1, "1B-blocks"
	}
	size := func(n int64) string {
		if f.has("h") {
			return human(n)
		}
		return fmt.Sprint((n + unit - 1) / unit)
	}
	if f.has("h") {
		head = "Size"
	}
	kind := ""
	if f.has("T") {
		kind = " Type"
	}
	c.Out("Filesystem%s %s Used Available Use%% Mounted on\n", kind, head)
	for _, m := range mounts {
		used, total := m.Tree.Usage()
		if m.Type != "ext4" && m.Type != "tmpfs" && len(f.args) == 0 {
			continue
		}
		percent := int64(0)
		if total > 0 {
			percent = (used*100 + total - 1) / total
		}
		if kind != "" {
			kind = " " + m.Type
		}
		c.Out("%s%s %s %s %s %d%% %s\n", m.Source, kind, size(total), size(used), size(max(0, total-used)), percent, m.Path)
	}
	return 0
}

func human(n int64) string {
	units := "BKMGT"
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	if i == 0 {
		return fmt.Sprint(n)
	}
	if v < 10 {
		return fmt.Sprintf("%.1f%c", v, units[i])
	}
	return fmt.Sprintf("%.0f%c", v, units[i])
}

func du(c *shell.Call) int {
	f := parse(c, "shkmbacxd:", "summarize=s", "bytes=b", "human-readable=h", "max-depth=d")
	if f == nil {
		return 1
	}
	if len(f.args) == 0 {
		f.args = []string{"."}
	}
	show := func(n int64, name string) {
		switch {
		case f.has("h"):
			c.Out("%s\t%s\n", human(n), name)
		case f.has("b"):
			c.Out("%d\t%s\n", n, name)
		case f.has("m"):
			c.Out("%d\t%s\n", (n+1<<20-1)>>20, name)
		default:
			c.Out("%d\t%s\n", (n+1023)>>10, name)
		}
	}
	status := 0
	var walk func(name string, top bool) int64
	walk = func(name string, top bool) int64 {
		in, err := c.Machine.FS.Lstat(c.Cred, c.Path(name))
		if err != nil {
			status = c.Fail("cannot access '%s': %s", name, message(err))
			return 0
		}
		n := in.Size()
		if !f.has("b") {
			n = (n + 4095) / 4096 * 4096
		}
		if in.IsDir() {
			list, err := c.Machine.FS.ReadDir(c.Cred, c.Path(name))
			if err != nil {
				status = c.Fail("cannot read directory '%s': %s", name, message(err))
			}
			for _, e := range list {
				n += walk(path.Join(name, e.Name()), false)
			}
		}
		if top || in.IsDir() && !f.has("s") || f.has("a") {
			show(n, name)
		}
		return n
	}
	for _, a := range f.args {
		walk(a, true)
	}
	return status
}

func mountOptions(m vfs.Mount) string {
	switch {
	case m.ReadOnly:
		return "ro,relatime"
	case m.Type == "tmpfs":
		return "rw,nosuid,nodev"
	}
	return "rw,relatime"
}

// mount lists; an unprivileged container may not mount anything.
func mount(c *shell.Call) int {
	f := parse(c, "t:o:", "bind")
	if f == nil {
		return 1
	}
	if len(f.args) > 0 {
		c.Fail("%s: permission denied.", f.args[len(f.args)-1])
		return 32
	}
	for _, m := range c.Machine.FS.Mounts() {
		if t := f.value["t"]; t == "" || t == m.Type {
			c.Out("%s on %s type %s (%s)\n", m.Source, m.Path, m.Type, mountOptions(m))
		}
	}
	return 0
}

func findmnt(c *shell.Call) int {
	f := parse(c, "no:T:M:", "noheadings=n", "output=o", "target=T", "mountpoint=M")
	if f == nil {
		return 1
	}
	columns := strings.Split(f.value["o"], ",")
	if f.value["o"] == "" {
		columns = []string{"TARGET", "SOURCE", "FSTYPE", "OPTIONS"}
	}
	if !f.has("n") {
		c.Out("%s\n", strings.Join(columns, " "))
	}
	found := false
	for _, m := range c.Machine.FS.Mounts() {
		want := f.value["M"]
		if len(f.args) > 0 {
			want = f.args[0]
		}
		if t := f.value["T"]; t != "" {
			at, err := c.Machine.FS.MountOf(c.Cred, c.Path(t))
			if err != nil {
				return 1
			}
			want = at.Path
		}
		if want != "" && want != m.Path {
			continue
		}
		found = true
		var row []string
		for _, col := range columns {
			row = append(row, map[string]string{"TARGET": m.Path, "SOURCE": m.Source, "FSTYPE": m.Type, "OPTIONS": mountOptions(m)}[strings.ToUpper(col)])
		}
		c.Out("%s\n", strings.Join(row, " "))
	}
	if !found {
		return 1
	}
	return 0
}

func mountpoint(c *shell.Call) int {
	f := parse(c, "q", "quiet=q")
	if f == nil || !needOperand(c, f, 1) {
		return 1
	}
	full := path.Clean(c.Path(f.args[0]))
	m, err := c.Machine.FS.MountOf(c.Cred, full)
	is := err == nil && m.Path == full
	if !f.has("q") {
		not := map[bool]string{true: "", false: "not "}[is]
		c.Out("%s is %sa mountpoint\n", f.args[0], not)
	}
	if is {
		return 0
	}
	return 32
}
