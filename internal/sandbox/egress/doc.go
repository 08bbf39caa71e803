// Package egress is what may pass a sandbox's wall: the network modes, rendered
// to ordered lists of Proxmox VE firewall rules, and the writing of such lists
// with the fewest calls, each against the state that was read.
//
// A [Policy] says what is wanted. [Render] makes a [Filter] of it: rules and IP
// sets, the same for a security group of the datacenter and for a guest's own
// firewall. [RenderGuest] and [GroupGuest] add the switches of a guest's firewall.
// [SyncRules], [SyncSet] and [SyncGuest] bring the server there and read back what
// it holds; what differs then is an error, never a success.
package egress
