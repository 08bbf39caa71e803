// Package conformance replays recorded exchanges of a real Proxmox VE against the lab and compares the answers: status,
// reason phrase, error body, shape and values of data. What a recording can't fix (ids of processes, digests, times, MAC
// addresses, measurements) is compared by kind. The recordings are read from SANDBOX_TRACES or, beside the repository,
// ../shared/pve/traces; they are no part of the repository.
//
//	go run ./internal/lab/conformance/cmd -flow clone -v
package conformance
