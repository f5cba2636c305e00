package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gastown-chipset/chipset/chipset/run"
	"github.com/gastown-chipset/chipset/chipset/view"
)

// footer keeps lines at the bottom of a terminal, below what is printed.
type footer struct {
	w io.Writer
	// none is true if there are no lines to keep: output is only serialized.
	none bool

	mu    sync.Mutex
	lines []string
	over  bool
}

// print writes a line above the footer.
func (f *footer) print(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = fmt.Fprintf(f.w, "%s%s\n%s", f.erased(), line, f.drawn()) // a lost write is reported when the command ends
}

// Write writes between lines. The data must not move the cursor.
func (f *footer) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.w.Write(p)
}

// set replaces the lines.
func (f *footer) set(lines []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || slices.Equal(lines, f.lines) {
		return
	}
	erased := f.erased()
	f.lines = lines
	_, _ = fmt.Fprint(f.w, erased+f.drawn()) // as above
}

// end removes the footer for good.
func (f *footer) end() {
	f.set(nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
}

// erased returns what erases the lines; the cursor is at the end of the last one.
func (f *footer) erased() string {
	if len(f.lines) == 0 {
		return ""
	}
	return "\r" + strings.Repeat("\x1b[A", len(f.lines)-1) + "\x1b[J"
}

func (f *footer) drawn() string { return strings.Join(f.lines, "\n") }

const (
	// footerInterval is how often the footer is redrawn without a change, for its ages.
	footerInterval = 2 * time.Second
	// footerPace is the least time between two updates of the footer.
	footerPace = 250 * time.Millisecond
)

// follow draws what a rig does, until the returned function is called.
func (f *footer) follow(ctx context.Context, a *app, p *run.Process) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	model := view.NewModel(p.Rig, p.Watcher)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if v, _, err := model.Update(ctx); err == nil {
				now := *v
				now.At = p.Rig.Clock.Now()
				how := a.screen()
				how.Width-- // a full line would wrap on some terminals
				f.set(now.Footer(how))
			}
			for _, wait := range []<-chan struct{}{nil, model.Changed()} {
				limit := footerInterval
				if wait == nil {
					limit = footerPace
				}
				timer := time.NewTimer(limit)
				select {
				case <-ctx.Done():
				case <-wait:
				case <-timer.C:
				}
				timer.Stop()
			}
		}
	}()
	return func() { cancel(); <-done; f.end() }
}
