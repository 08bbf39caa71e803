package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/tree"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// procTree makes /proc: files whose content is made when they are opened, and a directory per process.
func procTree(m *machine.Machine) (*tree.Tree, error) {
	t := tree.New(m.Clock.Now, 0)
	f := vfs.New(&vfs.Mount{Path: "/", Tree: t})
	text := func(s string) func() []byte { return func() []byte { return []byte(s) } }
	files := map[string]func() []byte{
		"/sys/kernel/random/boot_id": text(m.BootID + "\n"),
		"/sys/kernel/hostname":       func() []byte { return []byte(m.Hostname() + "\n") },
		"/sys/kernel/osrelease":      text(machine.KernelRelease + "\n"),
		"/sys/kernel/pid_max":        text("4194304\n"),
		"/sys/net/ipv4/ip_forward":   text("0\n"),
		"/mounts":                    func() []byte { return []byte(mountTable(m)) },
		"/uptime":                    func() []byte { return fmt.Appendf(nil, "%.2f %.2f\n", m.Uptime().Seconds(), m.Uptime().Seconds()) },
		"/loadavg":                   text("0.00 0.00 0.00 1/20 100\n"),
		"/version":                   text("Linux version " + machine.KernelRelease + " (build@lab) #1 SMP\n"),
		"/meminfo":                   func() []byte { return []byte(memInfo(m)) },
		"/cpuinfo":                   func() []byte { return []byte(cpuInfo(m)) },
		"/swaps":                     text("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"),
		"/filesystems":               text("nodev\tproc\nnodev\ttmpfs\n\text4\n"),
		"/net/tcp":                   func() []byte { return []byte(socketTable(m, true)) },
		"/net/tcp6":                  func() []byte { return []byte(socketTable(m, false)) },
		"/cmdline":                   text("BOOT_IMAGE=/boot/vmlinuz root=/dev/mapper/pve-root ro quiet\n"),
	}
	var errs []error
	for name, generate := range files {
		errs = append(errs, f.MkdirAll(vfs.Root, path.Dir(name), 0o555), generated(f, name, generate, 0o444, vfs.Root))
	}
	_, err := t.Make(tree.Root, "self", vfs.SelfLink())
	m.Watch(func(p *machine.Process, alive bool) {
		dir := fmt.Sprintf("/%d", p.PID)
		if !alive {
			_ = f.RemoveAll(vfs.Root, dir) // it may be gone with the machine
			return
		}
		addProcess(f, dir, p)
	})
	return t, errors.Join(append(errs, err)...)
}

// generated makes a synthetic file that belongs to c.
func generated(f *vfs.FS, name string, generate func() []byte, mode fs.FileMode, c vfs.Cred) error {
	return f.Synthetic(name, tree.Inode{Mode: mode, Generate: generate, UID: c.UID, GID: c.GID})
}

func addProcess(f *vfs.FS, dir string, p *machine.Process) {
	name := path.Base(p.Argv[0])
	files := map[string]struct {
		text string
		mode fs.FileMode
	}{
		"cmdline": {strings.Join(p.Argv, "\x00") + "\x00", 0o444},
		"comm":    {name[:min(len(name), 15)] + "\n", 0o444},
		"status": {fmt.Sprintf("Name:\t%s\nState:\tS (sleeping)\nPid:\t%d\nPPid:\t%d\nUid:\t%[4]d\t%[4]d\t%[4]d\t%[4]d\nGid:\t%[5]d\t%[5]d\t%[5]d\t%[5]d\n",
			name, p.PID, p.PPID, p.Cred.UID, p.Cred.GID), 0o444},
		"stat":    {statLine(p, name), 0o444},
		"environ": {strings.Join(append(p.Env, ""), "\x00"), 0o400},
	}
	if err := f.Mkdir(vfs.Root, dir, 0o555); err != nil {
		return
	}
	for n, file := range files {
		_ = generated(f, dir+"/"+n, func() []byte { return []byte(file.text) }, file.mode, p.Cred) // the directory is new: nothing to fail
	}
}

// statLine is /proc/PID/stat up to the start time, which is in hundredths of a second.
func statLine(p *machine.Process, name string) string {
	return fmt.Sprintf("%d (%s) S %d %d %d 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n", p.PID, name[:min(len(name), 15)], p.PPID, p.Group, p.Session, p.Started.UnixMilli()/10)
}

func mountTable(m *machine.Machine) string {
	var b strings.Builder
	for _, mt := range m.FS.Mounts() {
		options := "rw,relatime"
		if mt.ReadOnly {
			options = "ro,relatime"
		}
		if mt.Type == "tmpfs" {
			options = "rw,nosuid,nodev"
		}
		fmt.Fprintf(&b, "%s %s %s %s 0 0\n", mt.Source, mt.Path, mt.Type, options)
	}
	return b.String()
}

// socketTable is the kernel's table of TCP sockets of one IP version (Linux, proc_net_tcp.txt): addresses in hexadecimal,
// 32 bits at a time with the lowest byte first.
func socketTable(m *machine.Machine, four bool) string {
	var b strings.Builder
	b.WriteString("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n")
	n := 0
	for _, s := range m.Network.Sockets() {
		if s.Local.Addr().Is4() != four {
			continue
		}
		state := "01" // established
		if !s.Remote.IsValid() {
			state, s.Remote = "0A", netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
		}
		fmt.Fprintf(&b, "%4d: %s %s %s 00000000:00000000 00:00000000 00000000     0        0 %d\n", n, socketEnd(s.Local), socketEnd(s.Remote), state, 10000+n)
		n++
	}
	return b.String()
}

func socketEnd(a netip.AddrPort) string {
	var b strings.Builder
	raw := a.Addr().AsSlice()
	for i := 0; i+4 <= len(raw); i += 4 {
		fmt.Fprintf(&b, "%02X%02X%02X%02X", raw[i+3], raw[i+2], raw[i+1], raw[i])
	}
	return fmt.Sprintf("%s:%04X", b.String(), a.Port())
}

func memInfo(m *machine.Machine) string {
	total, used := m.Memory(), m.MemoryUsed()
	swap := m.Config().Limits.SwapBytes
	return fmt.Sprintf("MemTotal:       %8d kB\nMemFree:        %8d kB\nMemAvailable:   %8d kB\nBuffers:               0 kB\nCached:                0 kB\nSwapTotal:      %8d kB\nSwapFree:       %8d kB\n",
		total>>10, (total-used)>>10, (total-used)>>10, swap>>10, swap>>10)
}

func cpuInfo(m *machine.Machine) string {
	var b strings.Builder
	for i := range m.Cores() {
		fmt.Fprintf(&b, "processor\t: %d\nvendor_id\t: GenuineIntel\nmodel name\t: Simulated CPU\ncpu MHz\t\t: 2400.000\ncpu cores\t: %d\n\n", i, m.Cores())
	}
	return b.String()
}
