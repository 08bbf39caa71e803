//go:build linux

package guestinit

import (
	"errors"
	"slices"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
)

// refused are the system calls that LXC's common policy and Proxmox' addition keep from containers, and those with which
// the kernel's most exposed parts are reached, as container engines refuse them too.
var refused = []string{
	// LXC's common policy.
	"kexec_load", "kexec_file_load", "open_by_handle_at", "init_module", "finit_module", "delete_module",
	// The kernel's keyring is not divided by namespaces; Proxmox refuses it to unprivileged containers.
	"add_key", "request_key", "keyctl",
	// Exposed parts.
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "lookup_dcookie",
	// The machine's, which the kernel would refuse as well.
	"acct", "swapon", "swapoff", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "iopl", "ioperm", "nfsservctl", "quotactl",
	"uselib", "vhangup",
}

// restrict sets the filter for this process and all that it starts. Calls of a foreign architecture are refused with them.
func restrict() error {
	info, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	known := slices.DeleteFunc(slices.Clone(refused), func(name string) bool {
		_, ok := info.SyscallNames[name]
		return !ok
	})
	if len(known) == 0 {
		return errors.New("no system call is known by name")
	}
	return seccomp.LoadFilter(seccomp.Filter{
		Flag: seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionAllow,
			Syscalls:      []seccomp.SyscallGroup{{Names: known, Action: seccomp.ActionErrno}},
		},
	})
}
