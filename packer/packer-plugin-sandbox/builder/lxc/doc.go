// Package lxc is the builder sandbox-lxc: a container is made, filled by the provisioners, sealed, made a template, and
// proved by a clone.
package lxc
