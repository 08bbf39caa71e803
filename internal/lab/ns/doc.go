// Package ns is the engine whose guests are real Linux containers: unprivileged, with namespaces, overlayfs, cgroups and a
// network of their own, made without any container runtime. It needs Linux, and root or a user with a range of subordinate
// ids (/etc/subuid, newuidmap). Everything lives in the namespaces of one supervisor process per lab: nothing of the
// machine's network or mounts is touched, and nothing is left when the program that uses it is killed.
//
// What it can't do: sizes of roots and volumes are only reported, not enforced, as a plain folder has no quota; /proc shows the
// machine's memory, processors and uptime; snapshots of a guest without a freezer stop its processes by signals. Limits
// need a cgroup that this user may write to.
package ns
