package chipsettest_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// place is a folder of the tree that somebody can put a file into.
type place struct {
	dir string
	// name is what a file there is called, for the nth.
	name func(n int) string
	// sound is the content that would be right there under that name.
	sound func(name string) string
}

func places() []place {
	id := func(prefix string) func(int) string {
		return func(n int) string { return fmt.Sprintf("%s%05d.json", prefix, n) }
	}
	base := func(name string) string { return strings.TrimSuffix(name, ".json") }
	at := func(n int) string {
		return fmt.Sprintf("2026-03-05T10-%02d-%02d.000000000Z", n/60%60, n%60)
	}
	when := `"2026-03-05T10:00:00.000000000Z"`
	stamped := func(name string) string { // the time in a name
		return name[:13] + ":" + name[14:16] + ":" + name[17:30]
	}
	letter := func(name string) string {
		return fmt.Sprintf(`{"to":"mayor","body":"b","from":"witness","priority":"normal","read":false,"subject":"s","timestamp":"%s","type":"coordination"}`, stamped(name))
	}
	return []place{
		{"agents", id("a"), func(n string) string {
			return fmt.Sprintf(`{"id":%q,"role":"crew","rig":"r","status":"idle","created_at":%s,"updated_at":%s}`, base(n), when, when)
		}},
		{"work", id("gt-"), func(n string) string {
			return fmt.Sprintf(`{"id":%q,"title":"t","status":"open","priority":"P1","created_at":%s,"updated_at":%s,"gen":1}`, base(n), when, when)
		}},
		{"convoys", id("cv-"), func(n string) string {
			return fmt.Sprintf(`{"id":%q,"name":"n","bead_ids":[],"progress":0,"created_at":%s}`, base(n), when)
		}},
		{"hooks", id("h"), func(n string) string {
			return fmt.Sprintf(`{"agent_id":%q,"gen":1,"last_activity":%s,"status":"empty","work_item":null}`, base(n), when)
		}},
		{"merge-queue", id("mr-"), func(n string) string {
			return fmt.Sprintf(`{"id":%q,"seq":1,"bead_id":"gt-00001","assignment_id":"as-1","agent_id":"a","source_branch":"b","target_branch":"main","head":"","status":"dropped","attempts":0,"submitted_at":%s,"updated_at":%s}`, base(n), when, when)
		}},
		{"dispatch", id("gt-"), func(n string) string {
			return fmt.Sprintf(`{"bead_id":%q,"agent_id":"a","assignment_id":"as-1","by":"mayor","branch":"b","stage":"confirmed","mail_name":"","created_at":%s}`, base(n), when)
		}},
		{"retire", id("as-"), func(n string) string {
			return fmt.Sprintf(`{"assignment_id":%q,"agent_id":"a","bead_id":"gt-1","outcome":"done","stage":"released","created_at":%s,"updated_at":%s}`, base(n), when, when)
		}},
		{"incidents", id("in-"), func(n string) string {
			return fmt.Sprintf(`{"id":%q,"agent_id":"a","kind":"stalled","severity":"alert","nudges":0,"opened_at":%s}`, base(n), when)
		}},
		{"mail/mayor", func(n int) string { return at(n) + "-witness.json" }, letter},
		{"mail/mayor/archive", func(n int) string { return at(n) + "-witness.json" }, letter},
		{"nudge/mayor/from", id("s"), func(n string) string {
			return fmt.Sprintf(`{"from":%q,"type":"health_check","message":"m","timestamp":%s,"requires_response":false}`, base(n), when)
		}},
		{"handoff/mayor", func(n int) string { return at(n) + ".json" }, func(name string) string {
			return fmt.Sprintf(`{"agent_id":"mayor","summary":"s","timestamp":"%s"}`, stamped(name))
		}},
	}
}

// form is one kind of hostile file.
type form struct {
	name string
	// make puts it at path; sound is what would be right there.
	make func(h *hostile, path, sound string)
}

// content is a form that is a plain file.
func content(name string, change func(sound string) string) form {
	return form{name, func(h *hostile, path, sound string) { h.put(path, change(sound)) }}
}

// field replaces the first value of a sound object.
func field(sound, value string) string {
	key, rest, _ := strings.Cut(sound, ":")
	end := strings.IndexAny(rest, ",}")
	return key + ":" + value + rest[end:]
}

func forms() []form {
	always := func(s string) func(string) string { return func(string) string { return s } }
	return []form{
		content("empty", always("")),
		content("blanks", always(" \n\t\n")),
		content("half", func(s string) string { return s[:len(s)/2] }),
		content("NUL tail", func(s string) string { return s + strings.Repeat("\x00", 64) }),
		content("only NULs", always(strings.Repeat("\x00", 4096))),
		content("BOM", func(s string) string { return "\uFEFF" + s }),
		content("UTF-16", func(s string) string { return "\xff\xfe" + strings.Join(strings.Split(s, ""), "\x00") }),
		content("invalid UTF-8", func(s string) string { return strings.Replace(s, "{", "{\"x\":\"\xff\xfe\",", 1) }),
		content("a key twice", func(s string) string { return strings.Replace(s, "{", `{"zz":1,"zz":2,`, 1) }),
		content("a key twice, deep", func(s string) string { return strings.Replace(s, "{", `{"zz":{"a":1,"a":2},`, 1) }),
		content("two objects", func(s string) string { return s + s }),
		content("trailing words", func(s string) string { return s + "and more" }),
		content("a list", func(s string) string { return "[" + s + "]" }),
		content("a string", always(`"{}"`)),
		content("null", always("null")),
		content("an empty object", always("{}")),
		content("single quotes", func(s string) string { return strings.ReplaceAll(s, `"`, "'") }),
		content("a comment", func(s string) string { return "// x\n" + s }),
		content("deep nesting", func(s string) string {
			return strings.Replace(s, "{", `{"x":`+strings.Repeat("[", 10000)+strings.Repeat("]", 10000)+",", 1)
		}),
		content("deep and cut off", always(`{"x":`+strings.Repeat(`{"x":`, 50000))),
		content("a huge list", func(s string) string {
			return strings.Replace(s, "{", `{"x":[`+strings.Repeat("0,", 700000)+"0],", 1)
		}),
		content("a number for a name", func(s string) string { return field(s, "7") }),
		content("a number out of range", func(s string) string { return field(s, "1e999") }),
		content("a list for a name", func(s string) string { return field(s, `["a","b"]`) }),
		content("another's name", func(s string) string { return field(s, `"somebody-else"`) }),
		content("a name that leaves", func(s string) string { return field(s, `"../../canary"`) }),
		content("an option for a name", func(s string) string { return field(s, `"--upload-pack=touch"`) }),
		content("a name of 300 letters", func(s string) string { return field(s, `"`+strings.Repeat("a", 300)+`"`) }),
		content("a time that is none", func(s string) string { return strings.ReplaceAll(s, "2026-03-05T", "2026-99-99T") }),
		content("a year of five digits", func(s string) string { return strings.ReplaceAll(s, `"2026-`, `"12026-`) }),
		{"a gigabyte", func(h *hostile, path, sound string) { h.put(path, sound); h.must(os.Truncate(path, 1<<30)) }},
		{"a folder", func(h *hostile, path, _ string) { h.must(os.Mkdir(path, 0o755)) }},
		{"a full folder", func(h *hostile, path, _ string) { h.must(os.Mkdir(path, 0o755)); h.put(filepath.Join(path, "x"), "x") }},
		{"a FIFO", func(h *hostile, path, _ string) { h.must(unix.Mkfifo(path, 0o644)) }},
		{"a socket", func(h *hostile, path, _ string) {
			cwd, err := os.Getwd()
			h.must(err)
			h.must(os.Chdir(filepath.Dir(path))) // a socket's path is short
			defer func() { h.must(os.Chdir(cwd)) }()
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Base(path), Net: "unix"})
			h.must(err)
			l.SetUnlinkOnClose(false)
			h.must(l.Close())
		}},
		{"a device", func(h *hostile, path, sound string) {
			if err := unix.Mknod(path, unix.S_IFCHR|0o644, int(unix.Mkdev(1, 5))); err != nil { // /dev/zero
				h.must(os.Symlink("/dev/zero", path)) // not for everybody
			}
		}},
		{"a link to the canary", func(h *hostile, path, sound string) {
			h.put(h.canary, sound) // what it leads to would be right
			h.must(os.Symlink(h.canary, path))
		}},
		{"a link inside", func(h *hostile, path, sound string) {
			h.must(os.Symlink(h.w.Dir+"/.chipset/state/rig.json", path))
		}},
		{"a link to itself", func(h *hostile, path, _ string) { h.must(os.Symlink(filepath.Base(path), path)) }},
		{"a link to nothing", func(h *hostile, path, _ string) { h.must(os.Symlink("/nowhere/at/all", path)) }},
		{"a second name outside", func(h *hostile, path, sound string) {
			h.twins++
			outside := filepath.Join(h.outside, fmt.Sprintf("twin-%d", h.twins))
			h.put(outside, sound)
			h.must(os.Link(outside, path))
		}},
	}
}

// names are hostile in every folder, whatever lies under them.
func names() []string {
	return []string{
		"-rf.json", "--upload-pack=touch canary.json", "...json", "a b.json", "new\nline.json", "tab\t.json", "bad\xff\xfe.json",
		strings.Repeat("x", 250) + ".json", "UPPER.json", "ümlaut.json", "r\u202etl.json", "archive.json", "from.json", "latest.json.json",
		"quote\".json", "dollar$(touch canary).json", "back\\slash.json", "no-suffix", ".json", "a.json.json~",
		"2026-03-05T10-30-00Z-..json", "2026-13-45T99-99-99Z-mayor.json", strings.Repeat("ü", 120) + ".json",
	}
}
