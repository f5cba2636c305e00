package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/state/audit"
)

// tree is one snapshot, by the path below state/.
type tree map[string]string

func (t tree) with(p, content string) tree {
	next := maps.Clone(t)
	next[p] = content
	return next
}

func (t tree) without(p string) tree {
	next := maps.Clone(t)
	delete(next, p)
	return next
}

func (t tree) file(p string) audit.File {
	content, there := t[p]
	if !there {
		return audit.File{}
	}
	return audit.File{ID: string(newNamer("sha1")("blob", []byte(content))), Data: []byte(content)}
}

// judge holds one snapshot against the next.
func judge(t *testing.T, before, after tree) []audit.Violation {
	t.Helper()
	paths := map[string]bool{}
	for p := range before {
		paths[p] = true
	}
	for p := range after {
		paths[p] = true
	}
	var changes []audit.Change
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		if b, a := before.file(p), after.file(p); b.ID != a.ID {
			changes = append(changes, audit.Change{Path: p, Before: b, After: a})
		}
	}
	found, err := NewChecker().Check(changes, func(p string) (audit.File, error) { return after.file(p), nil })
	if err != nil {
		t.Fatal(err)
	}
	return found
}

const (
	messageName  = "2026-03-05T10-30-00.000000000Z-human.json"
	mergeRequest = "merge-queue/mr-gt-abc12.json"
	inbox        = "mail/mayor/" + messageName
	archived     = "mail/mayor/archive/" + messageName
	message      = `{"body":"b","from":"human","priority":"normal","read":true,"subject":"s","timestamp":"2026-03-05T10:30:00.000000000Z","to":"mayor","type":"coordination"}`
	oldHook      = `{"agent_id":"mayor","gen":7,"last_activity":"2026-03-05T10:30:00.000000000Z","status":"empty","work_item":null}`
	convoyFile   = `{"bead_ids":["gt-abc12"],"created_at":"2026-03-05T10:30:00.000000000Z","id":"cv-1","name":"n","progress":0}`
	request      = `{"agent_id":"polecat-alpha","assignment_id":"as-1","attempts":1,"bead_id":"gt-abc12","head":"%[1]s","id":"mr-gt-abc12","onto":"ffffffffffffffffffffffffffffffffffffffff",` +
		`"candidate":"%[1]s","seq":1,"source_branch":"polecat/gt-abc12","status":"merging","submitted_at":"2026-03-05T10:30:00Z","target_branch":"main","updated_at":"2026-03-05T10:30:00Z"}`
	retired    = `{"agent_id":"polecat-alpha","assignment_id":"as-1","bead_id":"gt-abc12","created_at":"2026-03-05T10:30:00Z","outcome":"done","stage":"committed","updated_at":"2026-03-05T10:30:00Z"}`
	nudged     = `{"from":"human","message":"m","requires_response":false,"timestamp":"2026-03-05T10:30:00Z","type":"health_check"}`
	dispatched = `{"agent_id":"polecat-alpha","assignment_id":"as-1","bead_id":"gt-abc12","branch":"b","by":"mayor","created_at":"2026-03-05T10:30:00Z","mail_name":"x","stage":"launched"}`
)

const handedOff = `{"agent_id":"mayor","summary":"s","timestamp":"2026-03-05T10:31:00Z"}`

func reason(path, file string, copied bool) string {
	return fmt.Sprintf(`{"at":"2026-03-05T10:30:00.000000000Z","copied":%v,"file":%q,"path":%q,"reason":"r"}`, copied, file, "state/"+path)
}

// TestSteps holds one step each against the rules of all kinds.
func TestSteps(t *testing.T) {
	mr := fmt.Sprintf(request, strings.Repeat("a", 40))
	base := tree{
		inbox: message, "hooks/mayor.json": oldHook, "convoys/cv-1.json": convoyFile, "merge-queue/mr-gt-abc12.json": mr, "retire/as-1.json": retired,
		"nudge/mayor/from/human.json": nudged, "nudge/mayor/seen.json": `{"seen":{"human":"2026-03-05T10:30:00Z"}}`,
		"events/2026-03-05.jsonl": "{\"type\":\"a\"}\n{\"type\":\"b\"}\n", "rig.json": `{"format":1,"rig_id":"rig-1"}`,
		"dispatch/gt-abc12.json": dispatched, "handoff/mayor/2026-03-05T10-30-00.000000000Z.json": handedOff,
		"quarantine/q1": "x", "strange/thing.txt": "?",
	}
	edit := func(p, old, new string) tree {
		if !strings.Contains(base[p], old) {
			t.Fatalf("%s holds no %s", p, old)
		}
		return base.with(p, strings.Replace(base[p], old, new, 1))
	}
	damaged := "{torn"
	for _, c := range []struct {
		name  string
		after tree
		wrong string // the path that must be named; "" for a legal step
	}{
		{"nothing", base, ""},
		{"archived", base.without(inbox).with(archived, message), ""},
		{"archived twice over", base.with(archived, message), ""},
		{"archived and changed", base.without(inbox).with(archived, strings.Replace(message, `"b"`, `"c"`, 1)), inbox},
		{"archived under another name", base.without(inbox).with(strings.Replace(archived, "00Z", "01Z", 1), message), inbox},
		{"gone", base.without(inbox), inbox},
		{"moved to another mailbox", base.without(inbox).with("mail/witness/"+messageName, message), inbox},
		{"quarantined", base.without(inbox).with("quarantine/f", message).with("quarantine/f.reason.json", reason(inbox, "f", false)), ""},
		{"quarantined as another", base.without(inbox).with("quarantine/f", message).with("quarantine/f.reason.json", reason("mail/x.json", "f", false)), inbox},
		{"quarantined without a reason", base.without(inbox).with("quarantine/f", message), inbox},
		{"changed and quarantined", base.without(inbox).with("quarantine/f", damaged).with("quarantine/f.reason.json", reason(inbox, "f", false)), inbox},
		{"overwritten", base.with(inbox, damaged), inbox},
		{"garbage appears", base.with("mail/mayor/2026-03-05T10-30-01Z-human.json", damaged), ""},
		{"hook gone", base.without("hooks/mayor.json"), "hooks/mayor.json"},
		{"hook damaged", base.with("hooks/mayor.json", damaged), "hooks/mayor.json"},
		{"hook rebuilt", edit("hooks/mayor.json", `"gen":7`, `"gen":8`).with("quarantine/h", damaged).with("quarantine/h.reason.json", reason("hooks/mayor.json", "h", true)), ""},
		{"hook rebuilt below its gen", edit("hooks/mayor.json", `"gen":7`, `"gen":1`).with("quarantine/h", damaged).with("quarantine/h.reason.json", reason("hooks/mayor.json", "h", true)), "hooks/mayor.json"},
		{"hook set back beside a copy that is whole", edit("hooks/mayor.json", `"gen":7`, `"gen":8`).with("quarantine/h", oldHook).with("quarantine/h.reason.json", reason("hooks/mayor.json", "h", true)), "hooks/mayor.json"},
		{"convoy taken back", base.without("convoys/cv-1.json"), ""},
		{"convoy gone that a bead names", base.without("convoys/cv-1.json").with("work/gt-abc12.json", `{"convoy_id":"cv-1","created_at":"2026-03-05T10:30:00Z","gen":2,"id":"gt-abc12","priority":"P2","status":"open","title":"t","updated_at":"2026-03-05T10:30:00Z"}`), "convoys/cv-1.json"},
		{"convoy lost a bead", edit("convoys/cv-1.json", `"gt-abc12"`, ""), "convoys/cv-1.json"},
		{"request merged", edit("merge-queue/mr-gt-abc12.json", `"merging"`, `"merged","merged_sha":"`+strings.Repeat("a", 40)+`"`), ""},
		{"request merged as another", edit("merge-queue/mr-gt-abc12.json", `"merging"`, `"merged","merged_sha":"`+strings.Repeat("b", 40)+`"`), "merge-queue/mr-gt-abc12.json"},
		{"request merged as what was there before", base.with(mergeRequest, strings.NewReplacer(strings.Repeat("f", 40), strings.Repeat("a", 40),
			`"merging"`, `"merged","merged_sha":"`+strings.Repeat("b", 40)+`"`).Replace(base[mergeRequest])), ""},
		{"request with another head", edit("merge-queue/mr-gt-abc12.json", `"head":"aaaa`, `"head":"bbbb`), "merge-queue/mr-gt-abc12.json"},
		{"request tried again", edit("merge-queue/mr-gt-abc12.json", `"attempts":1`, `"attempts":4`), ""},
		{"request gone", base.without("merge-queue/mr-gt-abc12.json"), "merge-queue/mr-gt-abc12.json"},
		{"retired", edit("retire/as-1.json", "committed", "released"), ""},
		{"retired backwards", edit("retire/as-1.json", "committed", "published"), "retire/as-1.json"},
		{"retired otherwise", edit("retire/as-1.json", `"done"`, `"fail"`), "retire/as-1.json"},
		{"newer nudge", edit("nudge/mayor/from/human.json", "10:30:00Z", "10:30:01Z"), ""},
		{"older nudge", edit("nudge/mayor/from/human.json", "10:30:00Z", "10:29:00Z"), "nudge/mayor/from/human.json"},
		{"other nudge of the same time", edit("nudge/mayor/from/human.json", `"m"`, `"n"`), "nudge/mayor/from/human.json"},
		{"unseen", edit("nudge/mayor/seen.json", "10:30:00Z", "10:29:59Z"), "nudge/mayor/seen.json"},
		{"events added", edit("events/2026-03-05.jsonl", "b\"}\n", "b\"}\n{}\n"), ""},
		{"event changed", edit("events/2026-03-05.jsonl", `"a"`, `"c"`), "events/2026-03-05.jsonl"},
		{"events cut", edit("events/2026-03-05.jsonl", "{\"type\":\"b\"}\n", ""), "events/2026-03-05.jsonl"},
		{"events gone", base.without("events/2026-03-05.jsonl"), "events/2026-03-05.jsonl"},
		{"another rig", edit("rig.json", "rig-1", "rig-2"), "rig.json"},
		{"dispatch over", base.without("dispatch/gt-abc12.json"), ""},
		{"dispatch backwards", edit("dispatch/gt-abc12.json", "launched", "stored"), "dispatch/gt-abc12.json"},
		{"the next dispatch", base.with("dispatch/gt-abc12.json", strings.NewReplacer("as-1", "as-2", "launched", "stored").Replace(dispatched)), ""},
		{"hand-off changed", edit("handoff/mayor/2026-03-05T10-30-00.000000000Z.json", `"s"`, `"z"`), "handoff/mayor/2026-03-05T10-30-00.000000000Z.json"},
		{"hand-off gone", base.without("handoff/mayor/2026-03-05T10-30-00.000000000Z.json"), "handoff/mayor/2026-03-05T10-30-00.000000000Z.json"},
		{"hand-off under the name of its time", base.without("handoff/mayor/2026-03-05T10-30-00.000000000Z.json").with("handoff/mayor/2026-03-05T10-31-00.000000000Z.json", handedOff), ""},
		{"quarantine changed", base.with("quarantine/q1", "y"), "quarantine/q1"},
		{"quarantine dealt with", base.without("quarantine/q1"), ""},
		{"what no rule knows", base.with("strange/thing.txt", "!"), ""},
	} {
		found := judge(t, base, c.after)
		switch {
		case c.wrong == "" && len(found) > 0:
			t.Errorf("%s: %v", c.name, found)
		case c.wrong != "" && (len(found) != 1 || found[0].Path != c.wrong):
			t.Errorf("%s: found %v, expected %s alone", c.name, found, c.wrong)
		}
	}
}

// TestReusedName: a name that stands in the archive is taken forever.
func TestReusedName(t *testing.T) {
	before := tree{archived: message}
	if found := judge(t, before, before.with(inbox, strings.Replace(message, "true", "false", 1))); len(found) != 0 {
		t.Errorf("a twin that is not read yet: %v", found)
	}
	if found := judge(t, before, before.with(inbox, strings.Replace(message, `"b"`, `"c"`, 1))); len(found) != 1 {
		t.Errorf("another message under an archived name: %v", found)
	}
	if found := judge(t, before, tree{inbox: message}); len(found) != 1 || found[0].Path != archived {
		t.Errorf("taken out of the archive: %v", found)
	}
}
