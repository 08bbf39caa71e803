// Package preflight says whether a Proxmox VE server is ready for sandboxes and whether the provider's identity may do
// what is asked of it: every privilege, the path that it is needed on, what needs it and whether it is there, and the
// least roles that would give it.
//
// The table of needs is the provider's own account of its calls, after the API's documented permissions; a test holds
// it against a server's checks, one privilege taken away at a time.
package preflight
