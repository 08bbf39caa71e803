//go:build linux

package guestinit

// Argv0 is the program name by which a binary that has this package in it knows that it is to be a guest's init.
const Argv0 = "sandbox-lab-guest"

// ControlFD is the descriptor of the control socket (package wire).
const ControlFD = 3

// The calls that an init answers, in the order of a guest's life.
const (
	CallSetup = "setup" // Setup; returns with the guest's mounts in place and nothing running
	CallStart = "start" // Start; the services run
	CallExec  = "exec"  // Exec, with three files: stdin, stdout, stderr; returns an exit code
	CallCount = "count" // no arguments; the number of processes
	CallPause = "pause" // bool; stops or continues all processes, for machines without a freezer
	CallStop  = "stop"  // no arguments; all processes are asked to end, then the init ends, which is the answer
)

// Setup is what the guest's view is built of.
type Setup struct {
	Root     string // folder of the root, in the mount namespace that the init inherits
	Hostname string
	BootID   string
}

// Start names what runs in the guest.
type Start struct {
	Services [][]string
}

// Exec is a command.
type Exec struct {
	Argv []string
	Env  []string // added to the default environment
}
