// Package mission lets several members, each an agent or a command in a
// sandbox of its own, work on one task: side by side (parallel), one after the
// other (pipeline), in rounds in which each sees the others' answers until a
// judge closes (debate), or against each other for a score (arena).
//
// Every piece of work is a run of package agentrun. A mission that is cut is
// therefore continued by running it again: runs that were started are found,
// and what they answered leads to the same next prompts.
package mission
