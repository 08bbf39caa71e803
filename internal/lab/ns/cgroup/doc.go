// Package cgroup limits, freezes and measures the guests of the ns engine, with cgroups of version 1 or 2. Without a cgroup
// hierarchy that this user may write to, there are no limits, and everything else works.
package cgroup
