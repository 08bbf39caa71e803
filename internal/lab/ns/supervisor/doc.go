// Package supervisor is the ns engine's inner half: one process in namespaces of its own (mounts, network, processes, and
// users unless it is root's), in which all guests, bridges and filters of a lab live. It does what the engine's outer half
// asks for, and cleans up and ends when that is gone, however it went.
package supervisor
