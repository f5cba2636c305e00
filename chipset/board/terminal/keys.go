package terminal

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/gastown-chipset/chipset/chipset/board/act"
)

// key handles a key press.
func (b *Board) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	if b.running != nil {
		if name == "esc" {
			b.running()
		}
		return nil
	}
	b.message = ""
	switch {
	case b.prompt != nil:
		return b.typed(k)
	case b.box != nil:
		confirm := b.confirm
		b.box, b.confirm = nil, nil
		if confirm != nil && (name == "y" || name == "enter") {
			return confirm()
		}
		return nil
	case b.move(name):
		return b.selected()
	}
	if cmd, known := b.global(name); known {
		return cmd
	}
	s := b.subject().Subject
	for i := range b.acts {
		if a := &b.acts[i]; a.Key == name && a.Can(s) {
			return b.do(a, s)
		}
	}
	return nil
}

// global handles the keys that mean the same everywhere.
func (b *Board) global(name string) (cmd tea.Cmd, known bool) {
	switch name {
	case "q":
		return tea.Quit, true
	case "?":
		b.box = b.help()
	case "tab", "shift+tab":
		b.cycle(name == "tab")
		return b.selected(), true
	case "1", "2", "3", "4", "5":
		b.goTo(paneID(name[0] - '1'))
		return b.selected(), true
	case "enter":
		if b.focus != detailPane {
			b.goTo(detailPane)
		}
	case "esc":
		if b.detail.shown != nil {
			b.detail.shown = nil
			return b.load(), true
		}
		if b.work.filter != "" {
			b.filter("")
		} else if b.focus == detailPane {
			b.goTo(b.from)
		}
		return b.selected(), true
	case "]", "[", "right", "left", "l", "h":
		b.detail.turn(name == "]" || name == "right" || name == "l")
		return b.load(), true
	case ".", ",":
		if name == "." {
			b.work.all = !b.work.all
		} else {
			b.work.graph = !b.work.graph
		}
		b.grow()
		b.layout()
		return b.selected(), true
	case "/":
		return b.search(), true
	case ":":
		return b.command(), true
	case "w":
		b.show("Warnings", b.warnings())
	case "v":
		return b.open(b.Pager, true), true
	case "e":
		return b.edit(), true
	case "E":
		return b.open(b.Editor, false), true
	default:
		return nil, false
	}
	return nil, true
}

// move handles the keys that move the selection in the focused pane.
func (b *Board) move(name string) bool {
	_, page := b.places[b.focus].inner()
	by := 0
	switch name {
	case "down", "j":
		by = 1
	case "up", "k":
		by = -1
	case "pgdown", "ctrl+d", "space":
		by = page
	case "pgup", "ctrl+u":
		by = -page
	case "home", "g":
		by = -1 << 30
	case "end", "G":
		by = 1 << 30
	default:
		return false
	}
	if b.focus == detailPane {
		b.detail.scroll(by, page)
	} else {
		b.lists[b.focus].move(by)
	}
	return true
}

// goTo gives a pane the focus.
func (b *Board) goTo(p paneID) {
	if p == needsPane && len(b.view.Needs) == 0 {
		return
	}
	b.focus = p
	if p != detailPane {
		b.from = p
	}
	b.layout()
	b.detail.fit(b.detailRoom())
}

func (b *Board) cycle(forward bool) {
	by := paneID(1)
	if !forward {
		by = paneCount - 1
	}
	next := (b.focus + by) % paneCount
	if next == needsPane && len(b.view.Needs) == 0 {
		next = (next + by) % paneCount
	}
	b.goTo(next)
}

// do asks for the input of an act, and then runs it.
func (b *Board) do(a *act.Act, s act.Subject) tea.Cmd {
	run := func(text string) tea.Cmd {
		if text = strings.TrimSpace(text); text == "" && a.Ask != nil {
			return nil
		}
		args := a.Command(s, text)
		if a.Terminal {
			return tea.Exec(onTerminal(func() error { return b.RunOnTerminal(context.Background(), args) }), func(err error) tea.Msg { return openedMsg{err} })
		}
		if a.Lost == nil {
			return b.run(args, false)
		}
		b.ask(a, s, func() tea.Cmd { return b.run(args, false) })
		return nil
	}
	if a.Ask == nil {
		return run("")
	}
	question, begin := a.Ask(s)
	return b.begins(question, begin, run, nil)
}

// ask opens a dialog that names what is lost.
func (b *Board) ask(a *act.Act, s act.Subject, yes func() tea.Cmd) {
	title := ""
	if s.Item != nil {
		title = fmt.Sprintf("%s %s %s?", strings.ToUpper(a.Name[:1])+a.Name[1:], s.Item.Bead.ID, s.Item.Bead.Title)
	}
	b.box, b.confirm = b.dialog(title, a.Lost(s)), yes
}

// begins opens the prompt.
func (b *Board) begins(question, begin string, done func(string) tea.Cmd, each func(string)) tea.Cmd {
	in := textinput.New()
	in.Prompt = ""
	in.SetVirtualCursor(true)
	in.SetValue(begin)
	in.CursorEnd()
	b.prompt = &prompt{Model: in, question: question, done: done, each: each}
	b.prompt.SetWidth(max(10, b.width-len(question)-4))
	return b.prompt.Focus()
}

// typed passes a message to the prompt.
func (b *Board) typed(msg tea.Msg) tea.Cmd {
	p := b.prompt
	if p == nil {
		return nil
	}
	if k, is := msg.(tea.KeyPressMsg); is {
		switch k.String() {
		case "esc":
			b.prompt = nil
			if p.each != nil {
				p.each("")
			}
			return b.selected()
		case "enter":
			b.prompt = nil
			return tea.Batch(p.done(p.Value()), b.selected())
		case "up":
			if p.each == nil && len(b.history) > 0 {
				p.SetValue(b.history[len(b.history)-1])
				p.CursorEnd()
			}
			return nil
		}
	}
	before := p.Value()
	var cmd tea.Cmd
	p.Model, cmd = p.Model.Update(msg)
	if p.each != nil && p.Value() != before {
		p.each(p.Value())
	}
	return cmd
}

// command runs the command line that the person types.
func (b *Board) command() tea.Cmd {
	return b.begins(":", "", func(text string) tea.Cmd {
		if text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "chipset ")); text == "" {
			return nil
		}
		b.history = append(b.history, text)
		args, err := b.Words(text)
		if err != nil {
			b.say(err, "")
			return nil
		}
		return b.run(args, true)
	}, nil)
}

// onTerminal runs while the board has released the terminal, which it opens itself.
type onTerminal func() error

func (run onTerminal) Run() error          { return run() }
func (run onTerminal) SetStdin(io.Reader)  {}
func (run onTerminal) SetStdout(io.Writer) {}
func (run onTerminal) SetStderr(io.Writer) {}

// openedMsg is the end of a program that used the terminal.
type openedMsg struct{ err error }

// open opens the selection in a program of the person: the transcript in a pager, the
// worktree in an editor.
func (b *Board) open(program []string, file bool) tea.Cmd {
	path := b.path(b.subject(), file)
	if path == "" || len(program) == 0 {
		b.message, b.failed = "✗ there is nothing to open", true
		return nil
	}
	cmd := exec.Command(program[0], append(program[1:len(program):len(program)], path)...)
	return tea.ExecProcess(cmd, func(err error) tea.Msg { return openedMsg{err} })
}

// click focuses the pane under the mouse, and selects the row. A click on the selected row
// opens it.
func (b *Board) click(x, y int) tea.Cmd {
	if b.box != nil || b.prompt != nil {
		return nil
	}
	for p := range paneCount {
		at := b.places[p]
		if !at.holds(x, y) {
			continue
		}
		row, before := y-at.y-1, b.focus
		b.goTo(p)
		if p == detailPane {
			if y == at.y {
				b.detail.turn(true)
				return b.load()
			}
			return nil
		}
		l := &b.lists[p]
		if i := l.offset + row; row >= 0 && i < len(l.keys) {
			if i == l.cursor && before == p {
				b.goTo(detailPane)
			}
			l.cursor = i
		}
		return b.selected()
	}
	return nil
}

func (b *Board) wheel(msg tea.MouseWheelMsg) {
	by := 3
	if msg.Button == tea.MouseWheelUp {
		by = -3
	}
	for p := range paneCount {
		if !b.places[p].holds(msg.X, msg.Y) {
			continue
		}
		if p == detailPane {
			_, h := b.places[p].inner()
			b.detail.scroll(by, h)
		} else {
			b.lists[p].move(by)
		}
	}
}
