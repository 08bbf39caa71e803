// Package workcopy brings code into a guest and what became of it back out: a folder sent or a repository cloned, the
// changes as a patch, files by pattern, and copies of the working folder to return to.
//
// A guest is where an agent has worked, so nothing that comes out of one is believed:
//
//   - What runs inside runs as the user of the run, never with more rights, so that a link set in its way leads
//     nowhere that the agent couldn't go itself.
//   - The changes are found by comparing two folders of the guest and are written as a patch here, by this package.
//     Git is never run on a repository that an agent could touch: not its hooks, filters, fsmonitor, includes or
//     textconv, neither here nor there.
//   - Names, kinds, modes and sizes are checked before anything is kept, and files are written through os.Root, below
//     the one folder that was named.
//
// The package knows neither Terraform nor Proxmox VE. A guest is something that runs commands (Guest).
package workcopy
