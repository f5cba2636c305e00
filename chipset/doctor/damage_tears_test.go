package doctor

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The files of the rig in mid-flight, one of each kind, with what may stay when
// their content is gone: what was in them is in the quarantine then.
var victims = []struct{ path, stays string }{
	{"state/agents/polecat-alpha.json", ""},
	{"state/work/gt-aaaaa.json", "dependency bead-hook hook-bead request-bead retire-bead incident-stale salvage-ref"},
	{"state/work/gt-ccccc.json", "request-bead retire-bead convoy hook-bead"},
	{"state/convoys/cv-aaa.json", "convoy"},
	{"state/hooks/polecat-alpha.json", ""},
	{"state/hooks/polecat-bravo.json", ""},
	{"state/mail/human/*-mayor.json", ""},
	{"state/mail/mayor/archive/*.json", ""},
	{"state/nudge/polecat-alpha/latest.json", ""},
	{"state/nudge/polecat-alpha/from/mayor.json", ""},
	{"state/nudge/polecat-alpha/seen.json", ""},
	{"state/merge-queue/mr-gt-ccccc.json", "done-without-request"},
	{"state/merge-queue/mr-gt-ddddd.json", "merged-without-request"},
	{"state/dispatch/gt-bbbbb.json", ""},
	{"state/retire/*.json", ""},
	{"state/handoff/polecat-alpha/*.json", ""},
	{"state/incidents/in-aaa.json", ""},
}

// tears are what can happen to a file. Each is found by one rule, and healed by
// moving what is left of it away.
var tears = []struct {
	name, rule, stays string
	tear              func(f *fixture, path string)
}{
	{"empty", ruleUnreadable, "", func(f *fixture, path string) { f.Must(os.Truncate(path, 0)) }},
	{"torn", ruleUnreadable, "", func(f *fixture, path string) { f.Must(os.Truncate(path, 21)) }},
	{"zeros", ruleUnreadable, "", func(f *fixture, path string) { f.Must(os.WriteFile(path, make([]byte, 512), 0o644)) }},
	{"zero tail", ruleUnreadable, "", func(f *fixture, path string) { appendTo(f, path, string(make([]byte, 100))) }},
	{"another's content", ruleUnreadable, "", func(f *fixture, path string) {
		f.Must(os.WriteFile(path, []byte("{\n  \"id\": \"somebody\",\n  \"from\": \"nobody\"\n}\n"), 0o644))
	}},
	{"a key twice", ruleUnreadable, "", func(f *fixture, path string) {
		data, err := os.ReadFile(path)
		f.Must(err)
		f.Must(os.WriteFile(path, []byte(strings.Replace(string(data), "{", `{"x":1,"x":2,`, 1)), 0o644))
	}},
	{"too large", ruleUnreadable, "", func(f *fixture, path string) { f.Must(os.Truncate(path, 3<<20)) }},
	{"a FIFO", ruleSpecial, "", func(f *fixture, path string) { f.Must(os.Remove(path)); f.Must(unix.Mkfifo(path, 0o644)) }},
	{"a link", ruleSpecial, "", func(f *fixture, path string) {
		f.Must(os.Rename(path, filepath.Join(f.Dir, "moved.json")))
		f.Must(os.Symlink(filepath.Join(f.Dir, "moved.json"), path))
	}},
	{"a folder", ruleSpecial, "", func(f *fixture, path string) { f.Must(os.Remove(path)); f.Must(os.Mkdir(path, 0o755)) }},
	{"a second name", ruleSpecial, "special-file bead-hook hook-without-agent incident-agent worktree-agent", func(f *fixture, path string) { f.Must(os.Link(path, filepath.Join(f.Dir, "second"))) }},
}

func appendTo(f *fixture, path, text string) {
	f.T.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	f.Must(err)
	_, err = file.WriteString(text)
	f.Must(err)
	f.Must(file.Close())
}
