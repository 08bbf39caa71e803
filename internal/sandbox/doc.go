// Package sandbox is the domain: what a sandbox is and how it lives.
//
// A sandbox is an unprivileged LXC container on Proxmox VE that this project
// made, that carries an ownership marker in its description, and that is
// thrown away after use. The package takes and returns plain Go values with
// units in their names; it knows neither Terraform nor Packer. Below it,
// internal/pve speaks to the server and internal/guest to the inside of a
// container; every decision is made here: which id is taken, what may be
// touched, when something counts as gone, and what is waited for.
//
// The life of a sandbox, and the file that holds each step:
//
//	spec.go, settings.go    what is wanted, and what the provider block says
//	check*.go               what is refused before any request, or at plan
//	marker.go, owner.go     the proof of ownership, on the server
//	vmids.go, queue.go      an id from the range; one clone at a time per template
//	create.go, clone.go     clone or create from a file, with the marker in the call
//	abandoned.go            what a killed process left behind
//	finish.go               from there to what the specification says, and sealed
//	configure.go            the one write that says everything the spec says
//	power.go, ready.go      start, stop, restart, migrate; address and SSH
//	read.go, state.go       refresh: shared lists, one config per container, no wait
//	update.go               every change the server can make in place
//	destroy.go              marker read back, one DELETE, proved gone
//	import.go, list.go      adopting, finding
//	inside.go               commands and files
//	actions.go, wait.go     lost answers, locks, and the only place that waits
package sandbox
