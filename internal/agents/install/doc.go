// Package install puts coding agents into a system, by scripts that a
// remote.Runner runs as root in it: a container over SSH or its node, an engine's
// container, a folder.
//
// Each agent gets a folder of its own, /opt/agents/<name>, that belongs to root
// and that nobody else may write, and links to its command in /usr/local/bin.
// What was asked for is what is there: the version that the command itself says
// must equal the pin, because package managers report success for commands that
// can't run (scripts/npm.sh names three ways).
package install
