package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
)

// TestRecording records `chipset demo` on a terminal, as a picture that moves.
// `make pictures` keeps it in docs/pictures.
func TestRecording(t *testing.T) {
	dir := os.Getenv("CHIPSET_PICTURES")
	if dir == "" {
		dir = t.TempDir()
	}
	path, err := exec.LookPath("chipset")
	rigtest.Must(t, err)
	const columns = 110
	s := newScreen(t, columns, 300, t.TempDir(), []string{"HOME=" + t.TempDir(), "TERM=xterm-256color"},
		"sh", "-c", `"$0" demo; read -r line`, path)
	r := recording{began: time.Now()}
	for deadline := r.began.Add(2 * time.Minute); ; {
		r.add(s.tmux("capture-pane", "-p", "-e", "-t", "x"), time.Since(r.began))
		if r.shows("is removed") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the demo does not end:\n%s", s.text())
		}
	}
	picture := r.draw(columns)
	if err := xml.Unmarshal(picture, new(struct{ XMLName xml.Name })); err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(picture), "everything\u00a0is\u00a0in\u00a0order") || !strings.Contains(string(picture), `to="hidden"`) {
		t.Errorf("the recording has no end, or does not move:\n%.2000s", picture)
	}
	rigtest.Must(t, os.WriteFile(filepath.Join(dir, "demo.svg"), picture, 0o644))
}

// recording is what a terminal showed, line by line.
type recording struct {
	began time.Time
	lines []*shown // all of them, in the order in which they came
	rows  []*shown // what each row shows now
}

// shown is a line in a row of the screen, and when it stood there. until is 0 while it does.
type shown struct {
	row         int
	text        string
	from, until time.Duration
}

// add takes what the screen shows at a time.
func (r *recording) add(screen string, at time.Duration) {
	for i, text := range strings.Split(strings.TrimRight(screen, "\n"), "\n") {
		if i == len(r.rows) {
			r.rows = append(r.rows, nil)
		}
		switch now := r.rows[i]; {
		case now != nil && now.text == text:
			continue
		case now != nil:
			now.until = at
		}
		r.rows[i] = &shown{row: i, text: text, from: at}
		r.lines = append(r.lines, r.rows[i])
	}
}

func (r *recording) shows(text string) bool {
	for _, row := range r.rows {
		if strings.Contains(row.text, text) {
			return true
		}
	}
	return false
}

// draw makes the picture. Where nothing moves, it shows the last of it.
func (r *recording) draw(columns int) []byte {
	var out strings.Builder
	out.WriteString(svgHead(columns, len(r.rows)))
	for _, line := range r.lines {
		var pieces strings.Builder
		drawLine(&pieces, line.text, &style{}, line.row)
		if pieces.Len() == 0 {
			continue
		}
		visibility := ""
		if line.until > 0 {
			visibility = ` visibility="hidden"`
		}
		fmt.Fprintf(&out, "<g%s>", visibility)
		if line.until > 0 {
			fmt.Fprintf(&out, `<set attributeName="visibility" to="visible" begin="%.2fs" end="%.2fs"/>`, line.from.Seconds(), line.until.Seconds())
		} else {
			fmt.Fprintf(&out, `<set attributeName="visibility" to="hidden" begin="0s" end="%.2fs"/>`, line.from.Seconds())
		}
		out.WriteString(pieces.String() + "</g>\n")
	}
	out.WriteString("</svg>\n")
	return []byte(out.String())
}
