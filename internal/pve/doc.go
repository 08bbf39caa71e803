// Package pve is a thin access layer to the Proxmox VE HTTP API, on the raw
// verbs of github.com/luthermonson/go-proxmox. It knows how a request gets to
// the server and what an answer means, and decides nothing: no naming, no
// ownership, no waiting for locks, no choice of nodes.
//
// What it adds to the raw verbs:
//
//   - transport: TLS by system roots, CA or SHA-256 pin; requests in flight
//     bounded and connections re-used; retries that can never run a write
//     twice; one login for all who wait when a ticket ends; secrets kept out of
//     logs and errors (transport.go, retry.go, login.go, redact.go);
//   - errors: every answer that isn't a success is an [*Error] with a
//     [Meaning]; the table of the server's messages is in messages.go and
//     nowhere else;
//   - tasks: [Client.Wait] polls a task to its end, and can't lose its warnings;
//   - typed calls for what this project uses of the API, with decoding that
//     takes numbers as strings and keeps what it doesn't know;
//   - [Lists], the lists that all readers of a run share.
//
// Every method may be called from any number of goroutines.
package pve
