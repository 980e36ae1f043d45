// Package proc runs programs so that nothing of them outlives the host.
//
// Each program runs under a supervisor: this binary executed again. The
// supervisor is the leader of a session of its own and, on Linux, the reaper of
// every descendant, also of those that left their group or session. A pipe from
// the host is its lifeline: end of file means that the host is gone or wants it
// gone. It then ends the whole tree, terminate first, kill after the grace, and
// repeats until no descendant is left.
//
// On Linux a program can be confined with Landlock before it starts; the rules
// hold for all its descendants. Where the kernel cannot do that, Exit.Confined says so.
//
// After kill -9 of the host the supervisors do their work alone. After kill -9 of
// a supervisor its tree may survive; Survivors finds it by marker and start time.
package proc
