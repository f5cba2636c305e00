package terminal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// edit is a bead in the person's editor: its title, an empty line, its description.
type edit struct {
	id   state.BeadID
	file string
	// before is the text before it was edited.
	before string
}

// editedMsg is the end of the editor.
type editedMsg struct {
	edit
	err error
}

func editText(b *bead.Bead) string {
	if b.Description == "" {
		return b.Title + "\n"
	}
	return b.Title + "\n\n" + b.Description + "\n"
}

// edit opens the bead that is selected in the person's editor.
func (b *Board) edit() tea.Cmd {
	s := b.subject()
	switch {
	case s.Item == nil || len(b.Editor) == 0:
		b.say(errors.New("no bead is selected"), "")
		return nil
	case !s.Item.Bead.Editable():
		b.say(fmt.Errorf("%s is %s and can't be edited; E opens its agent's worktree", s.Item.Bead.ID, s.Item.Bead.Status), "")
		return nil
	}
	e := edit{id: s.Item.Bead.ID, before: editText(s.Item.Bead)}
	f, err := os.CreateTemp("", "chipset-"+string(e.id)+"-*.md") //nolint:forbidigo // the person's own file, outside of the tree
	if err == nil {
		e.file = f.Name()
		_, err = f.WriteString(e.before)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		b.say(err, "")
		return nil
	}
	cmd := exec.Command(b.Editor[0], append(b.Editor[1:len(b.Editor):len(b.Editor)], e.file)...)
	return tea.ExecProcess(cmd, func(err error) tea.Msg { return editedMsg{e, err} })
}

// edited saves what the person has written, by running work edit. If that fails, the text
// stays in its file.
func (b *Board) edited(msg editedMsg) tea.Cmd {
	data, err := os.ReadFile(msg.file)
	if err = errors.Join(msg.err, err); err != nil {
		b.say(err, "")
		return nil
	}
	text := string(data)
	item := b.view.Work.Find(msg.id)
	switch {
	case strings.TrimSpace(text) == strings.TrimSpace(msg.before):
		_ = os.Remove(msg.file) //nolint:forbidigo // as above
		b.say(nil, "nothing changed")
		return nil
	case item == nil || editText(item.Bead) != msg.before:
		b.say(fmt.Errorf("%s was changed meanwhile; your text is in %s", msg.id, msg.file), "")
		return nil
	}
	title, description, _ := strings.Cut(strings.TrimLeft(text, "\n"), "\n")
	args := []string{"work", "edit", string(msg.id), "--title=" + strings.TrimSpace(title), "--description=" + strings.Trim(description, "\n")}
	run := b.run(args, false)
	return func() tea.Msg {
		ran := run().(ranMsg)
		ran.args = args[:3]
		if ran.err == nil {
			_ = os.Remove(msg.file) //nolint:forbidigo // as above
		} else {
			ran.err = fmt.Errorf("%w; your text is in %s", ran.err, msg.file)
		}
		return ran
	}
}
