// Package agents is the registry of coding agents, as data: where each comes
// from and at which version, how it is started without a terminal, which keys
// it needs, what it must be kept from (updating itself, calling home), what it
// leaves behind and which hosts it talks to.
//
// One file per agent stands in registry/; a user's own agent is the same
// record. Nothing here installs or starts anything: a command line is rendered
// for whoever runs it, and the prompt and the keys are in it by reference only
// (a file to redirect, names of variables), so that neither shows in a list of
// processes where the agent allows it.
package agents
