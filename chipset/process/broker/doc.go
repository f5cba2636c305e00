// Package broker lets a worker use its rig without a way to say who it is. The
// supervisor of a worker listens on a socket that belongs to one session of one
// agent; the worker's chipset sends its command line there, with its own standard
// streams and the files it names, and the supervisor runs the command outside of the
// worker's reach:
//
//	worker ──▶ chipset mail send …                          in the worker's sandbox
//	             │ command line, descriptors 0, 1, 2, files
//	             ▼ $CHIPSET_BROKER
//	           supervisor ──fork──▶ chipset brokered …      as the session's agent
//	             │                        │ writes to the worker's own descriptors
//	             ◀── exit code ───────────┘
//
// A call is one connection. The caller sends the length of a JSON document in four
// bytes, big-endian, with the descriptors as ancillary data, then the document. After
// that every byte is a signal for the command. The answer is one JSON document, the
// Status, when the command has ended. A caller that goes away takes its command
// along: TERM, and after the grace KILL.
//
// Three things identify a caller. The folder of the socket admits one user; on Linux
// the calling process must descend from the supervisor, which a process of another
// session can't; and it knows the secret of the session. The environment of the
// caller, its working directory and its paths count for nothing: a file that the
// command line names is opened by the caller, with the caller's rights.
package broker
