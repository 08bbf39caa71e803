// Package guestinit is the first process of a guest of the ns engine. It builds the guest's view of the machine, starts its
// services, collects orphans, and runs commands for the supervisor, as `pct exec` does.
package guestinit
