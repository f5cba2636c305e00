package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// hostileTitle is what no page may obey.
const hostileTitle = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>\u202eevil\x1b[31m\x07" + `'"--></title>`

// scene is a rig with something of everything, and the pages that show it.
type scene struct {
	*webBoard
	asked mail.Name
	work  bead.Bead
}

func newScene(t testing.TB) *scene {
	t.Helper()
	s := &scene{webBoard: newWebBoard(t)}
	work, rec := rigtest.Hang(t, s.Rig, rigtest.Alpha, "Write the manual of the parser, and "+strings.Repeat("a title without a blank_", 8))
	s.work = work
	me := &actor.Actor{Rig: s.Rig, ID: rigtest.Alpha, Session: rigtest.Session, Assignment: rec.AssignmentID}
	var err error
	s.asked, _, err = me.RequestPermission(s.Context(), "Bash(npm publish)", "the release needs it")
	s.Must(err)
	_, err = me.Ask(s.Context(), "Which licence? "+strings.Repeat("long", 60))
	s.Must(err)
	s.Plant(rig.Transcript(rigtest.Session), `{"type":"assistant","session_id":"s","message":{"content":[{"type":"text","text":"I read the parser first."},{"type":"tool_use","name":"Bash","input":{"command":"go test ./..."}}]}}`+"\n")
	s.PutBead("gt-stuck", bead.Blocked, func(b *bead.Bead) { b.CloseReason = "attempt 3 of 3 failed: exit code 3" })
	s.PutBead("gt-evil", bead.Open, func(b *bead.Bead) {
		b.Title, b.Description, b.Labels = hostileTitle, hostileTitle, []string{hostileTitle}
	})
	s.PutBead("gt-china", bead.Open, func(b *bead.Bead) {
		b.Title, b.BlockedBy = "用中文写一份很长的文档，说明这个系统是如何工作的", []state.BeadID{"gt-evil"}
	})
	s.PutBead("gt-arab", bead.Open, func(b *bead.Bead) { b.Title, b.ConvoyID = "اكتب الوثائق بالعربية", "cv-a" })
	s.PutBead("gt-landed", bead.Merged, func(b *bead.Bead) { b.ConvoyID = "cv-a" })
	s.PutRequest(s.PutBead("gt-again", bead.Done, nil), mergequeue.Conflicted, func(q *mergequeue.Request) {
		q.Failure, q.Reason = mergequeue.FailConflict, "conflict in "+strings.Repeat("a/very/long/path/", 12)
	})
	s.Must(s.Convoys.Put("cv-a", convoy.Convoy{ID: "cv-a", Name: "The first convoy " + hostileTitle, BeadIDs: []state.BeadID{"gt-arab", "gt-landed"}, CreatedAt: s.At()}))
	return s
}

// pages are all kinds of pages.
func (s *scene) pages() []string {
	work := "/bead/" + string(s.work.ID)
	return []string{"/", "/work", work, work + "/diff", work + "/transcript", "/bead/gt-evil", "/agent/polecat-alpha", "/agent/polecat-alpha/transcript",
		"/mail", "/mail/" + string(s.asked), "/convoy/cv-a", "/graph", "/figures"}
}

// look sets the size of the window and the person's colours.
func (p *tab) look(width, height int64, scheme string) {
	p.Helper()
	p.run(chromedp.EmulateViewport(width, height))
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	if err != nil {
		p.Fatal(err)
	}
}

// axe is the checker of accessibility.
func axe(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "axe", "axe.min.js.gz"))
	rigtest.Must(t, err)
	in, err := gzip.NewReader(bytes.NewReader(data))
	rigtest.Must(t, err)
	script, err := io.ReadAll(in)
	rigtest.Must(t, err)
	return string(script)
}

// TestPagesAreForEverybody: every page on a screen and on a phone, in light and dark. axe finds
// nothing serious, nothing scrolls sideways on a phone, and text of others stays text.
func TestPagesAreForEverybody(t *testing.T) {
	s, page, checker := newScene(t), newBrowser(t), axe(t)
	page.enter(s.serve())
	for _, c := range []struct {
		name          string
		width, height int64
		scheme        string
	}{{"screen", 1280, 900, "light"}, {"phone", 390, 844, "dark"}} {
		for _, path := range s.pages() {
			page.look(c.width, c.height, c.scheme)
			page.open(path)
			if strings.HasPrefix(path, "/convoy") || path == "/graph" {
				page.until(`document.querySelector("#graph").dataset.drawn`)
				if long := eval[string](page, `[...document.querySelectorAll("#graph text")].filter((e) => e.getBBox().x + e.getBBox().width > 210).map((e) => e.textContent).join("|")`); long != "" {
					t.Errorf("%s: %s leaves its box", path, long)
				}
			}
			if wide := eval[int64](page, `document.documentElement.scrollWidth`); wide > c.width {
				t.Errorf("%s on a %s is %d wide: %s", path, c.name, wide, eval[string](page, fmt.Sprintf(`[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > %d).slice(0, 5).map((e) => e.outerHTML.slice(0, 120)).join("\n")`, c.width)))
			}
			if eval[bool](page, `!!window.hacked || !!document.querySelector("img") || document.body.innerText.includes("\u202e") || document.body.innerText.includes("\x1b")`) {
				t.Errorf("%s obeys a title", path)
			}
			page.run(page.script(checker))
			found := eval[string](page, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.filter((v) => v.impact === "serious" || v.impact === "critical")
				.map((v) => v.id + ": " + v.help + "\n" + v.nodes.slice(0, 3).map((n) => "  " + n.html.slice(0, 200) + " " + (n.any[0] ? n.any[0].message : "")).join("\n")).join("\n"))`)
			if found != "" {
				t.Errorf("%s on a %s in %s:\n%s", path, c.name, c.scheme, found)
			}
		}
	}
}

// script runs a script in the page.
func (p *tab) script(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](text + ";0")
}

// TestByKeyboardAlone finds its way, answers what waits and gives a bead up without a mouse.
func TestByKeyboardAlone(t *testing.T) {
	const tabKey, enter, escape = "\t", "\r", "\x1b"
	s, page := newScene(t), newBrowser(t)
	page.enter(s.serve())
	page.keys(tabKey)
	page.until(`document.activeElement.classList.contains("skip")`)
	page.keys("j")
	page.until(`document.activeElement.closest(".need .kind, .need").querySelector(".kind").textContent === "permission"`)
	page.keys("a")
	if said := page.said(); strings.HasPrefix(said, "failed") {
		t.Errorf("a: %s", said)
	}
	page.until(`![...document.querySelectorAll(".need .kind")].some((k) => k.textContent === "permission")`)
	page.until(`document.activeElement.matches("[data-row]") || document.activeElement === document.body`)
	for range 5 {
		if eval[bool](page, `document.activeElement.matches(".need") && document.activeElement.querySelector(".kind").textContent === "question"`) {
			break
		}
		page.keys("j")
	}
	page.keys("r")
	page.until(`document.activeElement.tagName === "TEXTAREA"`)
	page.keys("MIT, and the docs CC-BY")
	page.keys(tabKey + enter)
	if said := page.said(); strings.HasPrefix(said, "failed") {
		t.Errorf("r: %s", said)
	}
	if got := s.chipset("inbox"); strings.Contains(got, "Which licence") || strings.Contains(got, "npm publish") {
		t.Errorf("still there:\n%s", got)
	}

	page.keys("?")
	page.until(`document.querySelector("#keys").open`)
	page.keys(escape)
	page.until(`!document.querySelector("#keys").open`)

	page.keys("gw")
	page.until(`location.pathname.endsWith("/work") && document.documentElement.dataset.connected`)
	page.keys("/")
	page.until(`document.activeElement.id === "search"`)
	page.keys("stuck" + enter)
	page.until(`location.search.includes("stuck") && document.documentElement.dataset.connected`)
	page.keys("j")
	page.until(`document.activeElement.id === "bead-gt-stuck"`)
	page.keys(enter)
	page.until(`location.pathname.endsWith("/bead/gt-stuck") && document.documentElement.dataset.connected`)
	page.keys("c")
	page.until(`document.activeElement.closest("details.grave[open]")`)
	page.keys(enter)
	if said := page.said(); strings.HasPrefix(said, "failed") {
		t.Errorf("c: %s", said)
	}
	if got, err := s.Beads.Get("gt-stuck"); err != nil || got.Status != bead.Cancelled {
		t.Errorf("after c and enter: %s, %v", got.Status, err)
	}
}
