// Package guest does what happens inside a container: it reaches it by SSH
// (through a jump host where there is one), waits until it answers, runs
// commands and moves files.
//
// It knows neither Terraform nor Proxmox VE. A caller says where a guest is
// (Target) and which host key it has; everything goes through a Pool, which
// keeps one connection per guest and is safe for concurrent use.
//
// Three promises run through the package:
//
//   - A host key is always checked. The first contact pins it and hands it to
//     the caller to keep; afterwards another key is an error (HostKeyChanged).
//   - A command that may have started is never sent a second time. A
//     connection that is lost in between is a LostError: fate unknown.
//   - Environment, scripts and standard input never stand in a command line,
//     here or in the guest: they travel over the session's standard input.
package guest
