package sandbox

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const seatbeltProgram = "/usr/bin/sandbox-exec"

// Kind says in a few words what restricts commands on this machine, and missing what does not and why; either may be "".
func Kind() (kind, missing string) {
	if err := unix.Access(seatbeltProgram, unix.X_OK); err != nil {
		return "", "no sandbox-exec: " + err.Error()
	}
	return "sandbox-exec", ""
}

// Enter returns what is to be executed instead of path with argv, so that the profile holds.
func (p *Profile) Enter(path string, argv []string) (program string, words []string, gate *os.File, err error) {
	if _, missing := Kind(); missing != "" {
		if p.Mode == Require {
			return "", nil, nil, errors.New(missing)
		}
		return path, argv, nil, nil
	}
	return seatbeltProgram, append([]string{"sandbox-exec", "-p", p.seatbelt(), path}, argv[1:]...), nil, nil
}
