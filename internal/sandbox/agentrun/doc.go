// Package agentrun runs an agent, or any command, in a sandbox, once: started
// there under a supervisor, so that it belongs to the sandbox and not to the
// connection, with a time limit, secrets that exist only in memory, and a
// report.
//
// A run is found again by its key, which depends on the container's claim and
// on everything that makes the run what it is, secrets excepted. Whoever asks
// for a run of a key whose result nobody has collected gets that run; else a
// new attempt is started. So a run survives the process that started it, and
// is never started twice.
//
// What surrounds a run (code that goes in, patches and artifacts that come
// out, checkpoints) is a Stage.
package agentrun
