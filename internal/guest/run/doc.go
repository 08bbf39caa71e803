// Package run is the protocol of sbx-run, the script that supervises runs in a
// guest: what is sent to it, what it answers, and what it writes down.
//
// The script goes over the standard input of the first call and installs
// itself; so do all arguments of Start, secrets included, which therefore stand
// in no command line. A key and everything else that goes into a file name are
// hex digits.
//
// Answers are lines NAME=VALUE, an empty line, and what the call is about:
// a template's manifest (Look), a part of the output (Poll). An exit code of 3
// goes with error=KIND and message=TEXT, which is an *Error here.
//
// The folders in the guest, for a login as root; other logins have the same in
// their home and in XDG_RUNTIME_DIR, where there is such a folder:
//
//	/usr/local/bin/sbx-run            the script
//	/var/lib/sandbox/runs/KEY.N/      on disk: attempt N of a key
//	  spec, in/                       what was asked for; in/ belongs to the run's user
//	  log.0, log.1, …                 output, in files of 4 MiB: the first and the last three
//	  started, steps, end             Unix time; "agent|test ATTEMPT CODE CENTISECONDS"; the result
//	  collected                       the result was taken: nobody adopts the run any more
//	/run/sandbox/runs/KEY.N/          in memory, gone when the guest stops
//	  pid                             the supervisor, with its start time
//	  secrets, redact                 for the run's user; removed at the end of the run
//	  limit, stop                     why it was ended
//
// Everything of a run carries SBX_RUN=:KEY.N: in its environment. By that, by
// sessions, and where there is systemd by the unit's control group, the
// supervisor finds what it has to end. Without systemd, a process that clears
// its environment and makes a session of its own gets away.
package run
