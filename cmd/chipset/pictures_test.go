package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/chromedp/chromedp"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// TestPictures draws the pictures of the documentation: the board on a terminal and in a
// browser. `make pictures` keeps them in docs/pictures.
func TestPictures(t *testing.T) {
	dir := os.Getenv("CHIPSET_PICTURES")
	if dir == "" {
		dir = t.TempDir()
	}
	draw := func(name string, picture []byte) {
		t.Helper()
		if strings.HasSuffix(name, ".svg") {
			if err := xml.Unmarshal(picture, new(struct{ XMLName xml.Name })); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		rigtest.Must(t, os.WriteFile(filepath.Join(dir, name), picture, 0o644))
	}
	b := newBusyRig(t)
	path, err := exec.LookPath("chipset")
	b.Must(err)
	s := newScreen(t, 132, 36, b.dir, []string{"HOME=" + b.home, "TERM=xterm-256color"}, path, "board")
	s.until("1 Needs you", "asks for Bash(npm", "Add a cache", "working")
	s.keys("2", "]")
	s.until("go test ./parser")
	draw("terminal.svg", drawScreen(s.tmux("capture-pane", "-p", "-e", "-t", "x"), 132))

	page := newBrowser(t)
	page.look(1180, 860, "light")
	page.enter(b.serve())
	page.until(`document.querySelectorAll("#agents-list li").length >= 7`)
	png, err := chromedp.Run(page.ctx, chromedp.CaptureScreenshot())
	b.Must(err)
	draw("browser.png", png)
}

// TestPicturesAreSmall: a README is read over slow lines.
func TestPicturesAreSmall(t *testing.T) {
	size := int64(0)
	for _, name := range []string{"terminal.svg", "browser.png", "demo.svg"} {
		info, err := os.Stat(filepath.Join("..", "..", "docs", "pictures", name))
		rigtest.Must(t, err)
		size += info.Size()
	}
	if size > 300_000 {
		t.Errorf("the pictures are %d bytes together", size)
	}
}

// newBusyRig is a rig of five at work, as a person finds it after an hour.
func newBusyRig(t *testing.T) *webBoard {
	t.Helper()
	t.Cleanup(gittest.Isolate())
	b := &webBoard{TB: t, home: t.TempDir()}
	b.makePerson()
	y := &rigtest.Yard{T: t, Dir: gittest.Repo(t), Now: time.Now()}
	var err error
	y.Rig, err = rig.Init(t.Context(), rig.InitOptions{Dir: y.Dir, Clock: func() time.Time { return y.Now },
		Template: definition.TemplateOptions{RigName: "greenhouse", Prefix: "gh", Worker: "claude", Polecats: 5, Test: "make check", Target: "main"}})
	rigtest.Must(t, err)
	b.Yard, b.dir = y, y.Dir
	now := y.Now
	ago := func(minutes int) { y.Now = now.Add(-time.Duration(minutes) * time.Minute) }
	for i, w := range []struct {
		id    state.BeadID
		title string
		ago   int
		p     bead.Priority
	}{{"gh-cache", "Add a cache in front of the parser", 14, bead.P1}, {"gh-flags", "Read flags from the environment, too", 9, bead.P2},
		{"gh-docs1", "Document the wire format", 4, bead.P2}} {
		ago(w.ago)
		who := state.AgentID([]string{"polecat-alpha", "polecat-bravo", "polecat-charlie"}[i])
		item := y.PutBead(w.id, bead.InProgress, func(x *bead.Bead) { x.Title, x.Assignee, x.Priority = w.title, who, w.p })
		session := state.SessionID("ses-" + string(w.id))
		y.Must(y.Hooks.Put(string(who), hook.Hook{AgentID: who, Gen: 3, Status: hook.Active, LastActivity: state.Time{Time: now},
			WorkItem: &hook.WorkItem{AssignedAt: y.At(), AssignmentID: item.AssignmentID, BeadID: w.id, Title: w.title, Session: session}}))
		data, err := json.Marshal(agentcli.Progress{Session: session, Client: "claude", Figures: agentcli.Figures{Tool: []string{"Bash", "Edit", "Read"}[i], CostUSD: 0.4 + float64(w.ago)/20, TokensOut: int64(900 * w.ago), TokensIn: int64(21000 * w.ago)}, UpdatedAt: state.Time{Time: now}})
		y.Must(err)
		y.Plant(agentcli.ProgressDir.Join(string(session)+".json"), string(data))
	}
	y.Plant(rig.Transcript("ses-gh-cache"), transcript)
	ago(70)
	for i, title := range []string{"Split the lexer out of the parser", "Report positions in errors", "Fuzz the decoder", "Drop Go 1.24"} {
		ago(70 - 12*i)
		id := state.BeadID("gh-done" + strconv.Itoa(i+1))
		y.PutBead(id, bead.Merged, func(x *bead.Bead) { x.Title = title })
		ago(50 - 12*i)
		y.Events.Tell(event.BeadMoved("refinery", event.BeadMove{Bead: id, From: string(bead.Done), To: string(bead.Merged)}))
	}
	ago(6)
	y.PutRequest(y.PutBead("gh-retry", bead.Done, func(x *bead.Bead) { x.Title, x.Assignee = "Retry requests that time out", "polecat-delta" }), mergequeue.Pending, nil)
	y.PutBead("gh-logs1", bead.Open, func(x *bead.Bead) { x.Title, x.BlockedBy = "Log slow requests", []state.BeadID{"gh-retry"} })
	y.PutBead("gh-bench", bead.Open, func(x *bead.Bead) {
		x.Title, x.BlockedBy = "Measure the parser with the cache", []state.BeadID{"gh-cache"}
	})
	y.PutBead("gh-relea", bead.Open, func(x *bead.Bead) { x.Title, x.BlockedBy = "Release 1.4", []state.BeadID{"gh-bench", "gh-docs1"} })
	y.PutBead("gh-yaml1", bead.Blocked, func(x *bead.Bead) {
		x.Title, x.CloseReason = "Accept YAML", "3 attempts failed: the test suite of YAML 1.2 is not in the repository"
	})
	ago(3)
	_, err = y.Sender.Send(t.Context(), mail.Message{From: "polecat-charlie", To: state.Human, Type: mail.PermissionRequest, Subject: "Bash(npm publish)", Body: "The release needs it.", Priority: mail.Normal, Ref: &mail.Ref{BeadID: "gh-docs1", AssignmentID: "as-gh-docs1"}})
	y.Must(err)
	y.Now = now
	agents, _, err := y.Agents.All()
	y.Must(err)
	for _, a := range agents {
		if a.Role != agent.Human {
			y.Run(a.ID)
		}
	}
	return b
}

// transcript is what a session of Claude Code prints.
const transcript = `{"type":"assistant","session_id":"s","message":{"content":[{"type":"text","text":"The parser is called for the same text up to forty times. I look at who calls it."},{"type":"tool_use","id":"1","name":"Grep","input":{"pattern":"parser\\.Parse\\(","path":"."}}]}}
{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","tool_use_id":"1","content":"server/handler.go:88\nserver/replay.go:41\ncmd/check/main.go:23"}]}}
{"type":"assistant","session_id":"s","message":{"content":[{"type":"text","text":"Three callers, none changes the tree. A bounded cache by content is safe."},{"type":"tool_use","id":"2","name":"Edit","input":{"file_path":"parser/cache.go","old_string":"var last *Tree","new_string":"cache *lru.Cache[sum, *Tree]"}}]}}
{"type":"assistant","session_id":"s","message":{"content":[{"type":"tool_use","id":"3","name":"Bash","input":{"command":"go test ./parser ./server"}}]}}
{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","tool_use_id":"3","content":"ok  greenhouse/parser  0.41s\nok  greenhouse/server  1.02s"}]}}
`

const (
	cellWidth, cellHeight = 7.8, 17.0
	paper, ink            = "#11151c", "#d6dde6"
	mono                  = `font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="13"`
)

// svgHead begins a picture of so many columns and lines.
func svgHead(columns, lines int) string {
	w, h := float64(columns)*cellWidth+24, float64(lines)*cellHeight+24
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" %s><rect width="100%%" height="100%%" rx="8" fill="%s"/>`, w, h, w, h, mono, paper)
}

// style is how a piece of text on a terminal looks.
type style struct {
	fg                       string
	bold, faint, back, under bool
}

// apply follows the numbers of an escape sequence.
func (s *style) apply(codes string) {
	colours := []string{"#3b4252", "#f07178", "#8fd18a", "#e7c664", "#7aa8f0", "#c792ea", "#5ccfe6", ink}
	for code := range strings.SplitSeq(codes, ";") {
		switch n, _ := strconv.Atoi(code); {
		case n == 0:
			*s = style{}
		case n == 1:
			s.bold = true
		case n == 2:
			s.faint = true
		case n == 4:
			s.under = true
		case n == 7:
			s.back = true
		case n >= 30 && n <= 37:
			s.fg = colours[n-30]
		case n == 39:
			s.fg = ""
		case n == 90:
			s.fg = "#7b8696"
		case n >= 91 && n <= 97:
			s.fg = colours[n-90]
		}
	}
}

// drawScreen makes a picture of what a terminal shows, with its escape sequences.
func drawScreen(screen string, columns int) []byte {
	lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
	var out strings.Builder
	out.WriteString(svgHead(columns, len(lines)))
	var st style
	for y, line := range lines {
		drawLine(&out, line, &st, y)
	}
	out.WriteString("</svg>\n")
	return []byte(out.String())
}

// drawLine draws a line of the screen, and follows its styles.
func drawLine(out *strings.Builder, line string, st *style, y int) {
	x := 0
	for len(line) > 0 {
		if codes, rest, is := sequence(line); is {
			st.apply(codes)
			line = rest
			continue
		}
		end := strings.IndexByte(line, 0x1b)
		if end < 0 {
			end = len(line)
		}
		x += drawPiece(out, line[:end], *st, x, y)
		line = line[end:]
	}
}

// sequence is the escape sequence for a style at the beginning of a line.
func sequence(line string) (codes, rest string, is bool) {
	after, is := strings.CutPrefix(line, "\x1b[")
	if !is {
		if strings.HasPrefix(line, "\x1b(B") || strings.HasPrefix(line, "\x1b") {
			return "0", strings.TrimPrefix(strings.TrimPrefix(line, "\x1b"), "(B"), true
		}
		return "", line, false
	}
	codes, rest, _ = strings.Cut(after, "m")
	return codes, rest, true
}

// drawPiece draws text of one style, and returns how many columns it takes.
func drawPiece(out *strings.Builder, text string, s style, x, y int) int {
	width := ansi.StringWidth(text)
	left, base := 12+float64(x)*cellWidth, 12+float64(y)*cellHeight
	fg := s.fg
	if fg == "" {
		fg = ink
	}
	if s.back {
		fmt.Fprintf(out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, left, base, float64(width)*cellWidth, cellHeight, fg)
		fg = paper
	}
	// Spaces have no width that one can rely on.
	inner := strings.TrimLeft(text, " ")
	left += float64(len(text)-len(inner)) * cellWidth
	if inner = strings.TrimRight(inner, " "); inner == "" {
		return width
	}
	extra := ""
	if s.bold {
		extra += ` font-weight="700"`
	}
	if s.faint {
		extra += ` opacity=".65"`
	}
	if s.under {
		extra += ` text-decoration="underline"`
	}
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" fill="%s" textLength="%.1f" lengthAdjust="spacingAndGlyphs"%s>%s</text>`+"\n",
		left, base+13, fg, float64(ansi.StringWidth(inner))*cellWidth, extra, html.EscapeString(strings.ReplaceAll(inner, " ", "\u00a0")))
	return width
}
