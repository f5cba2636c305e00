// Package sandbox restricts a process and then executes a command in it: what it may write, what it may read,
// which system calls it may make.
//
//	supervisor ──profile──▶ chipset box ──Enter──▶ execve(command)
//
// On Linux the files are Landlock's (landlock(7)), the system calls are a seccomp filter's (seccomp(2)). Both hold for
// everything that the command starts, can't be taken off again, and need no privilege. On macOS the command runs
// under sandbox-exec(1) with a profile that forbids the same writes and reads.
//
// Landlock knows only allowed paths. To hide a path, the entries of every folder above it are allowed one by one, as
// they are when the command starts. An entry that is made or replaced there later can't be read. Names of files, sizes and times can be seen everywhere, and chmod(2), chown(2) and utimensat(2) are not
// restricted: a process may use them on every file of its user.
package sandbox
