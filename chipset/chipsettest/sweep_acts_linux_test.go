package chipsettest_test

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/state/statetest/powercut"
)

// invocation is one run of the binary.
type invocation struct {
	args  []string
	stdin string
	// patience is how long it may go on with a disk that takes nothing any more;
	// 0 for what ends by itself.
	patience time.Duration
}

func run(args ...string) invocation { return invocation{args: args} }

func as(agent string, args ...string) invocation {
	return invocation{args: append([]string{"--as", agent}, args...)}
}

// act is one durable operation, as the binary performs it.
type act struct {
	name string
	// prepare brings a fresh rig to where the act begins, and returns the act.
	prepare func(b *bench) invocation
	// touches are the places below state/ that it may change; prefixes.
	touches []string
	// effect is how often what it does stands there: 0 not or not wholly, 1 once
	// and whole. The error is for what must never be.
	effect func(v view) (int, error)
	// git holds the repository against the tree, and against how much was
	// acknowledged, at any moment.
	git func(w *chipsettest.World, v view, acked int) error
	// acks is how many effects what it printed acknowledges; nil: one, if it
	// printed anything or ended with 0.
	acks func(o outcome) int
	// whole is how many effects make the whole; 0 means 1.
	whole int
	// hint is an act that promises nothing: the story.
	hint bool
	// repeatable is done again after the crash, whatever came of it.
	repeatable bool
	// bare is an act that doctor takes back, because it leaves the pipeline out, or
	// goes on with, because it is the beginning of something.
	bare bool
}

const alpha = "polecat-alpha"

func acts() []act {
	return append(append(append(mailActs(), hookActs()...), workActs()...), doctorActs()...)
}

func messages(dir, subject string) func(v view) (int, error) {
	return func(v view) (int, error) {
		return v.count(dir, func(o object) bool { return o.text("subject") == subject && o.text("body") == "the body" }), nil
	}
}

func send(to ...string) []string {
	return append(append([]string{"mail", "send"}, to...), "--subject", "sweep", "--body", "the body")
}

func mailActs() []act {
	box := "mail/" + alpha
	first := func(b *bench) string {
		b.world.Chipset("mail", "send", alpha, "--subject", "first", "--body", "the body")
		return strings.TrimSpace(b.world.Chipset("mail", "send", alpha, "--subject", "second", "--body", "the body"))
	}
	return []act{
		{name: "mail-send-existing", effect: messages(box, "sweep"), prepare: func(b *bench) invocation {
			first(b)
			return run(send(alpha)...)
		}},
		{name: "mail-send-new", effect: messages(box, "sweep"), prepare: func(*bench) invocation { return run(send(alpha)...) }},
		{name: "mail-send-id", effect: messages(box, "sweep"), repeatable: true, prepare: func(b *bench) invocation {
			first(b)
			return run(append(send(alpha), "--id", "once")...)
		}},
		{name: "mail-send-many", effect: messages("mail", "sweep"), whole: 2, acks: lines, repeatable: true, prepare: func(*bench) invocation {
			return run(append(send(alpha, "polecat-bravo"), "--id", "once")...)
		}},
		{name: "mail-batch", effect: messages("mail", "sweep"), whole: batchSize, acks: lines, repeatable: true, prepare: func(*bench) invocation {
			return invocation{args: []string{"mail", "send", "--batch"}, stdin: batch(batchSize)}
		}},
		{name: "mail-read", touches: []string{box + "/"}, repeatable: true, prepare: func(b *bench) invocation {
			return as(alpha, "mail", "read", first(b))
		}, effect: func(v view) (int, error) {
			if n, _ := messages(box, "second")(v); n != 1 {
				return 0, fmt.Errorf("the message stands there %d times", n)
			}
			return v.count(box, func(o object) bool { return o["read"] == true && o.text("subject") == "second" }), nil
		}},
		{name: "mail-archive", touches: []string{box + "/"}, repeatable: true, prepare: func(b *bench) invocation {
			b.world.Chipset("--as", alpha, "mail", "read", first(b))
			return as(alpha, "mail", "archive", "--older-than", "0s")
		}, effect: archived(box)},
		{name: "mail-reply", touches: []string{box + "/"}, prepare: func(b *bench) invocation {
			return as(alpha, "mail", "reply", first(b), "--body", "the body")
		}, effect: messages("mail/human", "Re: second")},
		{name: "nudge-send", touches: []string{"nudge/"}, repeatable: true, prepare: func(b *bench) invocation {
			b.world.Chipset("nudge", "send", alpha, "--type", "sync_request", "--message", "before")
			return run("nudge", "send", alpha, "--type", "health_check", "--message", "sweep", "--respond")
		}, effect: func(v view) (int, error) {
			from := v.object("nudge/" + alpha + "/from/human.json").text("message")
			if from != "sweep" && from != "before" {
				return 0, fmt.Errorf("from/human.json says %q", from)
			}
			return count(from == "sweep"), nil
		}},
		{name: "nudge-respond", touches: []string{"nudge/"}, repeatable: true, prepare: func(b *bench) invocation {
			b.world.Chipset("nudge", "send", alpha, "--type", "health_check", "--message", "there?", "--respond")
			return as(alpha, "nudge", "respond", "--message", "sweep")
		}, effect: func(v view) (int, error) {
			return count(v.object("nudge/human/from/"+alpha+".json").text("message") == "sweep"), nil
		}},
		{name: "handoff-write", prepare: func(b *bench) invocation {
			activate(b)
			return as(alpha, "handoff", "write", "--summary", "sweep", "--remaining", "all")
		}, effect: func(v view) (int, error) {
			return v.count("handoff/"+alpha, func(o object) bool { return o.text("summary") == "sweep" }), nil
		}},
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// lines counts the names of messages that were printed.
func lines(o outcome) int { return strings.Count(o.out, "-human.json\n") }

const batchSize = 14

func batch(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"to":%q,"subject":"sweep","body":"the body","id":"line-%d"}`+"\n", []string{alpha, "polecat-bravo"}[i%2], i)
	}
	return b.String()
}

// archived wants the read message in the archive, and never nowhere.
func archived(box string) func(v view) (int, error) {
	return func(v view) (int, error) {
		in, out := 0, 0
		for _, name := range v.below(box) {
			if v.object(name).text("subject") != "second" {
				continue
			}
			if strings.Contains(name, "/archive/") {
				in++
			} else {
				out++
			}
		}
		if in+out == 0 {
			return 0, fmt.Errorf("the message is neither in the mailbox nor in the archive")
		}
		return count(in == 1 && out == 0), nil
	}
}

// slung prepares a bead on alpha's hook.
func slung(b *bench) string {
	id := strings.TrimSpace(b.world.Chipset("work", "add", "a bead", "-d", "true"))
	b.world.Chipset("sling", id, alpha)
	return id
}

func activate(b *bench) string {
	id := slung(b)
	b.world.Chipset("--as", alpha, "hook", "activate")
	return id
}

// hookIs wants the hook in a state, and before that as it was.
func hookIs(status, before string) func(v view) (int, error) {
	return func(v view) (int, error) {
		h := v.object("hooks/" + alpha + ".json")
		if got := h.text("status"); got != status && got != before {
			return 0, fmt.Errorf("the hook is %q: %v", got, h)
		}
		return count(h.text("status") == status && (h.sub("work_item") != nil) == (status != "empty")), nil
	}
}

func hookActs() []act {
	hook := []string{"hooks/" + alpha + ".json"}
	return []act{
		{name: "hook-set", bare: true, touches: hook, effect: hookIs("pending", "empty"), prepare: func(b *bench) invocation {
			id := strings.TrimSpace(b.world.Chipset("work", "add", "a bead", "-d", "true"))
			return run("hook", "set", alpha, id)
		}},
		{name: "hook-activate", bare: true, touches: hook, effect: hookIs("active", "pending"), prepare: func(b *bench) invocation {
			slung(b)
			return as(alpha, "hook", "activate")
		}},
		{name: "hook-complete", bare: true, touches: hook, effect: hookIs("completed", "active"), prepare: func(b *bench) invocation {
			activate(b)
			return as(alpha, "hook", "complete")
		}},
		{name: "hook-clear", bare: true, touches: hook, effect: hookIs("empty", "pending"), prepare: func(b *bench) invocation {
			slung(b)
			return run("hook", "clear", alpha)
		}},
		{name: "event-append", hint: true, touches: hook, prepare: func(b *bench) invocation {
			activate(b)
			return as(alpha, "hook", "touch", "a note of the sweep")
		}, effect: func(v view) (int, error) {
			n := 0
			for name, data := range v {
				if strings.HasPrefix(name, "events/") {
					n += bytes.Count(data, []byte("a note of the sweep"))
				}
			}
			return n, nil
		}},
	}
}

// beadIs wants the status of the one bead.
func beadIs(wanted func(object) bool) func(v view) (int, error) {
	return func(v view) (int, error) {
		if n := len(v.below("work")); n != 1 {
			return 0, fmt.Errorf("there are %d beads", n)
		}
		return v.count("work", wanted), nil
	}
}

func status(want string) func(object) bool {
	return func(o object) bool { return o.text("status") == want }
}

const importSize = 14

// issues are lines of bd, each of which waits for some that come after it.
func issues() string {
	var b strings.Builder
	for i := range importSize {
		fmt.Fprintf(&b, `{"id":"bd-%d","title":"sweep","priority":2,"dependencies":[`, i)
		if i+2 < importSize {
			fmt.Fprintf(&b, `{"depends_on_id":"bd-%d","type":"blocks"},{"depends_on_id":"bd-%d","type":"related"}`, i+2, i+1)
		}
		b.WriteString("]}\n")
	}
	return b.String()
}

// imported counts the beads of issues: none may wait for one that is not there.
func imported(v view) (int, error) {
	for _, name := range v.below("work") {
		list, _ := v.object(name)["blocked_by"].([]any)
		for _, dep := range list {
			if v.object(fmt.Sprintf("work/%s.json", dep)) == nil {
				return 0, fmt.Errorf("%s waits for %s, which is not there", name, dep)
			}
		}
	}
	return v.count("work", func(o object) bool { return o.text("title") == "sweep" && o.text("status") == "open" }), nil
}

func workActs() []act {
	add := func(b *bench) string {
		return strings.TrimSpace(b.world.Chipset("work", "add", "a bead", "-d", "true"))
	}
	return []act{
		{name: "work-add", prepare: func(*bench) invocation { return run("work", "add", "sweep", "-d", "true") },
			effect: func(v view) (int, error) {
				return v.count("work", func(o object) bool { return o.text("title") == "sweep" && o.text("status") == "open" }), nil
			}},
		{name: "work-import", whole: importSize, repeatable: true, acks: func(o outcome) int { return importSize * count(o.code == 0) },
			prepare: func(*bench) invocation {
				return invocation{args: []string{"work", "import", "-"}, stdin: issues()}
			}, effect: imported},
		{name: "work-edit", touches: []string{"work/"}, repeatable: true, prepare: func(b *bench) invocation {
			return run("work", "edit", add(b), "--title", "sweep")
		}, effect: beadIs(func(o object) bool { return o.text("title") == "sweep" })},
		{name: "work-cancel", touches: []string{"work/"}, repeatable: true, prepare: func(b *bench) invocation {
			return run("work", "cancel", add(b))
		}, effect: beadIs(status("cancelled"))},
		{name: "work-reopen", touches: []string{"work/"}, repeatable: true, prepare: func(b *bench) invocation {
			id := add(b)
			b.world.Chipset("work", "cancel", id)
			return run("work", "reopen", id)
		}, effect: beadIs(status("open"))},
		{name: "convoy-create", touches: []string{"work/"}, prepare: func(b *bench) invocation {
			return run("convoy", "create", "sweep", add(b), add(b))
		}, effect: func(v view) (int, error) {
			// The convoy's own list counts: a bead that does not say so yet is in it.
			made := map[string]bool{}
			for _, name := range v.below("convoys") {
				made[v.object(name).text("id")] = true
			}
			for _, name := range v.below("work") {
				if id := v.object(name).text("convoy_id"); id != "" && !made[id] {
					return 0, fmt.Errorf("%s names the convoy %s, which is not there", name, id)
				}
			}
			n := v.count("convoys", func(o object) bool {
				list, _ := o["bead_ids"].([]any)
				return o.text("name") == "sweep" && len(list) == 2
			})
			return n, nil
		}},
		{name: "sling", touches: []string{"work/", "hooks/" + alpha, "dispatch/"}, repeatable: true, prepare: func(b *bench) invocation {
			return run("sling", add(b), alpha)
		}, effect: slingEffect},
		{name: "unsling", touches: []string{"work/", "hooks/" + alpha, "dispatch/", "mail/" + alpha}, repeatable: true, prepare: func(b *bench) invocation {
			return run("unsling", slung(b))
		}, effect: func(v view) (int, error) {
			return count(v.count("work", status("open")) == 1 && v.object("hooks/"+alpha+".json").text("status") == "empty"), nil
		}},
		verdict("done", "done", "--summary", "sweep"),
		verdict("fail", "fail", "--reason", "sweep"),
		verdict("block", "block", "--reason", "sweep"),
	}
}

// slingEffect wants bead, hook and mail to tell of one assignment.
func slingEffect(v view) (int, error) {
	hook := v.object("hooks/" + alpha + ".json").sub("work_item")
	assigned := hook["assignment_id"]
	if assigned == nil {
		return 0, nil
	}
	mails := v.count("mail/"+alpha, func(o object) bool {
		return o.text("type") == "work_assignment" && o.sub("ref")["assignment_id"] == assigned
	})
	if mails > 1 {
		return 0, fmt.Errorf("%d assignment mails", mails)
	}
	beads := v.count("work", func(o object) bool { return o.text("status") == "hooked" && o["assignment_id"] == assigned })
	return count(beads == 1 && mails == 1), nil
}

// verdict is the word of a worker about its assignment: the record that begins the retirement.
func verdict(outcome string, args ...string) act {
	return act{name: "retire-" + outcome, bare: true, repeatable: true, prepare: func(b *bench) invocation {
		activate(b)
		return as(alpha, args...)
	}, effect: func(v view) (int, error) {
		return v.count("retire", func(o object) bool { return o.text("outcome") == outcome }), nil
	}}
}

// snapshot wants the commit that audit has made to be there and whole.
func snapshot(w *chipsettest.World, _ view, acked int) error {
	const ref = "refs/heads/chipset/audit"
	if out, err := w.TryGit("rev-parse", "--verify", "--quiet", ref); err != nil {
		if acked > 0 {
			return fmt.Errorf("the snapshot is gone: %s", out)
		}
		return nil
	}
	for _, args := range [][]string{{"rev-list", "--objects", ref, "--"}, {"show", "--stat", ref, "--"}} {
		if out, err := w.TryGit(args...); err != nil && acked > 0 {
			return fmt.Errorf("the snapshot is not whole: %s", out)
		}
	}
	return nil
}

// doctorActs move what can't be read to the quarantine.
func doctorActs() []act {
	const garbage = "{\"torn\": tr"
	quarantine := func(name, file string) act {
		return act{name: "quarantine-" + name, acks: func(o outcome) int { return count(o.code == 0) }, touches: []string{file}, repeatable: true, prepare: func(b *bench) invocation {
			b.world.Chipset("mail", "send", alpha, "--subject", "first", "--body", "the body")
			b.world.Write(path.Join(".chipset/state", file), garbage)
			return run("doctor", "--fix")
		}, effect: func(v view) (int, error) {
			there, kept := 0, 0
			for name, data := range v {
				if string(data) != garbage || strings.HasPrefix(path.Base(name), ".tmp") {
					continue
				}
				if strings.HasPrefix(name, "quarantine/") {
					kept++
				} else {
					there++
				}
			}
			if there+kept == 0 {
				return 0, fmt.Errorf("what could not be read is neither at its place nor in quarantine")
			}
			return count(kept == 1 && there == 0), nil
		}}
	}
	audit := func(name string, prepare func(b *bench)) act {
		return act{name: "audit-commit" + name, repeatable: true, git: snapshot, effect: func(view) (int, error) { return 1, nil },
			prepare: func(b *bench) invocation {
				b.world.Chipset("mail", "send", alpha, "--subject", "first", "--body", "the body")
				prepare(b)
				return run("audit", "commit")
			}}
	}
	return []act{
		audit("", func(*bench) {}),
		audit("-next", func(b *bench) {
			b.world.Chipset("audit", "commit")
			b.world.Chipset("mail", "send", alpha, "--subject", "second", "--body", "the body")
		}),
		// What is new is more than git stores one by one.
		audit("-many", func(b *bench) {
			b.run(invocation{args: []string{"mail", "send", "--batch"}, stdin: batch(110)}, powercut.Fault{})
		}),
		quarantine("mail", "mail/"+alpha+"/2026-03-05T10-30-00.000000000Z-mayor.json"),
		quarantine("bead", "work/sw-zzzzz.json"),
	}
}
