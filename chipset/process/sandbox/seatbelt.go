package sandbox

import (
	"fmt"
	"strconv"
	"strings"
)

// seatbelt writes the profile in the language of sandbox-exec(1), in which the last rule that matches counts.
func (p *Profile) seatbelt() string {
	var text strings.Builder
	rule := func(what string, paths []string) {
		if len(paths) == 0 {
			return
		}
		text.WriteString("(" + what)
		for _, path := range paths {
			text.WriteString(" (subpath " + strconv.Quote(path) + ")")
		}
		text.WriteString(")\n")
	}
	write, devices := append(p.writable(), p.plain()...), []string{"/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper", "/dev/fd"}
	text.WriteString("(version 1)\n(allow default)\n(deny file-write*)\n")
	rule("deny file-read-data", resolved(p.Hide))
	rule("allow file-read-data", append(resolved(p.Show), write...))
	rule("allow file-write*", append(write, devices...))
	return text.String()
}

// plain returns the folders of p.Plain, and those of loose objects.
func (p *Profile) plain() []string {
	all := resolved(p.Plain)
	for _, objects := range resolved([]string{p.Objects}) {
		for first := range 256 {
			all = append(all, fmt.Sprintf("%s/%02x", objects, first))
		}
	}
	return all
}
