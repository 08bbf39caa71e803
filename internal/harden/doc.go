// Package harden makes a Debian or Ubuntu system fit to be the template of
// sandboxes: accounts, SSH, keys at first boot, a lease, a filter, limits, and
// what has no business in a container. Each step is a shell script that changes
// what isn't right and says so; a second run changes nothing. internal/audit is
// the other side: for each step there are checks.
//
// It goes through a remote.Runner, so that it works over SSH, a Packer
// communicator, a container engine, or in a chroot.
package harden
