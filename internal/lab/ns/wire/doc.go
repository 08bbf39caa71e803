// Package wire carries calls between the processes of the ns engine: from the program that uses the lab to the supervisor
// inside the lab's namespaces, and from there to the init of each guest. A call has a connection of its own, on which open
// files travel too (SCM_RIGHTS): streams of commands one way, connected sockets the other. Closing that connection cancels
// the call, and the end of the control socket means that the caller's process is gone.
package wire
