package terminal

import (
	"context"
	"strings"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/gastown-chipset/chipset/chipset/board/act"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// Options are what a board needs from its caller.
type Options struct {
	Rig *rig.Rig
	// Model is used by the board alone.
	Model *view.Model
	// Run runs a chipset command line, given without its first word, as the person, and
	// returns what it printed and its error for the person.
	Run func(ctx context.Context, args []string) (output string, err error)
	// RunOnTerminal is Run for a command line that uses the terminal itself.
	RunOnTerminal func(ctx context.Context, args []string) error
	// Words splits a command line that the person typed into words.
	Words func(line string) ([]string, error)
	// Editor and Pager are the person's programs, with their arguments.
	Editor, Pager []string
}

// Board is the model of Bubble Tea.
type Board struct {
	Options
	theme theme
	acts  []act.Act

	width, height int
	places        [paneCount]rect
	view          *view.View
	lists         [paneCount]list
	// focus is the pane that gets the keys; from is the list whose selection the detail shows.
	focus, from paneID

	// tree are the lines of the work, chosen and sorted by work; hidden counts those left out.
	tree   []workRow
	hidden int
	work   sorting

	detail detail
	prompt *prompt
	// box are the lines of a dialog above everything, and confirm what y does in it.
	box     []string
	confirm func() tea.Cmd
	// message is the result of the last act, until the next key; failed is true if it failed.
	message string
	failed  bool
	// running cancels the running command; it is nil while there is none.
	running context.CancelFunc
	// trouble is the error of the last look at the rig, or "".
	trouble string
	history []string
	// letters are the person's mail, newest first, since the last search.
	letters []mail.Entry
}

// prompt is a line that the person types.
type prompt struct {
	textinput.Model
	question string
	// done is called with the final line, each, if not nil, with every change of it.
	done func(text string) tea.Cmd
	each func(text string)
}

// New makes a board that looks for the first time when it runs.
func New(o Options) *Board {
	b := &Board{Options: o, theme: newTheme(), acts: act.OnTerminal(), view: &view.View{}, focus: agentsPane, from: agentsPane}
	b.layout()
	return b
}

// now is the rig's clock.
func (b *Board) now() state.Time { return b.Rig.Clock.Now() }

// viewMsg is a new look at the rig.
type viewMsg struct {
	view  *view.View
	parts view.Parts
	err   error
}

// ranMsg is the end of a command.
type ranMsg struct {
	args   []string
	output string
	err    error
	// show is true if the person wants to see the output.
	show bool
}

// Init implements tea.Model.
func (b *Board) Init() tea.Cmd { return b.look(0) }

const (
	// lookInterval is how often the board looks without a signal.
	lookInterval = time.Second
	// lookPace is the least time between two looks.
	lookPace = 25 * time.Millisecond
	// agesInterval is how often ages are redrawn while agents work, idleInterval how often
	// while none does.
	agesInterval = time.Second
	idleInterval = 20 * time.Second
)

// look returns a command that waits for a change, and returns the new view. A view without
// changed parts only updates the ages.
func (b *Board) look(pace time.Duration) tea.Cmd {
	model, ages := b.Model, idleInterval
	for i := range b.view.Agents {
		if b.view.Agents[i].BeadID != "" && b.view.Agents[i].Alive {
			ages = agesInterval
		}
	}
	return func() tea.Msg {
		time.Sleep(pace)
		if pace == 0 { // the first look
			v, parts, err := model.Update(context.Background())
			return viewMsg{v, parts, err}
		}
		began := time.Now() //nolint:forbidigo // paces looks, decides nothing
		tick := time.NewTimer(lookInterval)
		defer tick.Stop()
		for {
			select {
			case <-model.Changed():
			case <-tick.C:
				tick.Reset(lookInterval)
			}
			v, parts, err := model.Update(context.Background())
			if parts != 0 || err != nil || time.Since(began) >= ages {
				return viewMsg{v, parts, err}
			}
		}
	}
}

// Update implements tea.Model.
func (b *Board) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		b.width, b.height = msg.Width, msg.Height
		b.layout()
		b.detail.fit(b.detailRoom())
		return b, nil
	case viewMsg:
		return b, b.see(msg)
	case ranMsg:
		b.ran(msg)
		return b, nil
	case detailMsg:
		return b, b.loaded(msg)
	case dueMsg:
		return b, b.due(msg)
	case tea.KeyPressMsg:
		return b, b.key(msg)
	case tea.PasteMsg:
		return b, b.typed(msg)
	case tea.MouseClickMsg:
		return b, b.click(msg.X, msg.Y)
	case tea.MouseWheelMsg:
		b.wheel(msg)
		return b, b.selected()
	case editedMsg:
		return b, b.edited(msg)
	case lettersMsg:
		b.letters = msg
		b.grow()
		return b, nil
	case openedMsg:
		b.say(msg.err, "")
		return b, nil
	}
	if b.prompt != nil {
		return b, b.typed(msg) // the cursor blinks
	}
	return b, nil
}

// see shows a new view.
func (b *Board) see(msg viewMsg) tea.Cmd {
	b.trouble = ""
	if msg.err != nil {
		b.trouble = firstLine(msg.err.Error())
	}
	first := b.view.At.IsZero()
	b.view = msg.view
	if msg.parts.Has(view.NeedsPart) {
		b.lists[needsPane].set(b.needRows())
	}
	if msg.parts.Has(view.AgentsPart) {
		b.lists[agentsPane].set(b.agentRows())
	}
	if msg.parts.Has(view.WorkPart|view.ConvoysPart) || b.work.filter != "" {
		b.grow()
	}
	if msg.parts.Has(view.QueuePart | view.StoryPart | view.WorkPart) {
		b.lists[queuePane].set(b.queueRows())
	}
	if first {
		b.begin()
	}
	if b.focus == needsPane && len(b.view.Needs) == 0 {
		b.focus = agentsPane
	}
	b.layout()
	again := b.look(lookPace)
	if msg.err != nil {
		again = b.look(lookInterval)
	}
	return tea.Batch(again, b.refresh(msg.parts))
}

// begin places the cursor at first: on a need, or on a working agent.
func (b *Board) begin() {
	if len(b.view.Needs) > 0 {
		b.focus, b.from = needsPane, needsPane
	}
	agents := &b.lists[agentsPane]
	for i, id := range agents.keys {
		if a := b.agent(state.AgentID(id)); a != nil && a.BeadID != "" {
			agents.cursor = i
			break
		}
	}
}

// grow makes the lines of the work again.
func (b *Board) grow() {
	if b.work.filter != "" {
		b.tree, b.hidden = b.found(), 0
	} else {
		b.tree, b.hidden = tree(b.view, b.work)
	}
	b.lists[workPane].set(b.workRows())
}

// layout computes the places of the panes.
func (b *Board) layout() {
	var heights [paneCount]int
	for p := range heights {
		heights[p] = max(1, len(b.lists[p].keys))
	}
	b.places = layout(b.width, b.height, heights, b.focus, len(b.view.Needs) > 0)
}

// subject returns what is selected in the list that the detail belongs to.
func (b *Board) subject() subject {
	var s subject
	key := b.lists[b.from].key()
	switch b.from {
	case needsPane:
		for i := range b.view.Needs {
			if string(b.view.Needs[i].Key) == key {
				s.Need = &b.view.Needs[i]
				s.Agent, s.Item = b.agent(s.Need.AgentID), b.view.Work.Find(s.Need.BeadID)
				s.Merge = b.request(func(q *view.QueueEntry) bool { return q.ID == s.Need.MergeID })
			}
		}
	case agentsPane:
		if s.Agent = b.agent(state.AgentID(key)); s.Agent != nil {
			s.Item = b.view.Work.Find(s.Agent.BeadID)
		}
	case workPane:
		if at := b.lists[workPane].cursor; at >= 0 && at < len(b.tree) {
			b.tree[at].about(&s, b)
		}
	case queuePane:
		s.Merge = b.request(func(q *view.QueueEntry) bool { return string(q.ID) == key })
		if s.Merge != nil {
			s.Item = b.view.Work.Find(s.Merge.BeadID)
		} else {
			s.Item = b.view.Work.Find(state.BeadID(strings.TrimPrefix(key, "landed ")))
		}
	case detailPane, paneCount:
	}
	if s.Item != nil && s.Agent == nil {
		if a := b.agent(s.Item.Bead.Assignee); a != nil && a.BeadID == s.Item.Bead.ID {
			s.Agent = a
		}
	}
	if s.Item != nil && s.Need == nil {
		for i := range b.view.Needs {
			if b.view.Needs[i].BeadID == s.Item.Bead.ID {
				s.Need = &b.view.Needs[i]
				break
			}
		}
	}
	if s.Agent != nil && (s.Item == nil || s.Agent.BeadID == s.Item.Bead.ID) {
		s.session = s.Agent.Session
	}
	return s
}

func (b *Board) agent(id state.AgentID) *view.AgentStatus {
	for i := range b.view.Agents {
		if b.view.Agents[i].ID == id {
			return &b.view.Agents[i]
		}
	}
	return nil
}

func (b *Board) request(is func(*view.QueueEntry) bool) *view.QueueEntry {
	for i := range b.view.Queue {
		if is(&b.view.Queue[i]) {
			return &b.view.Queue[i]
		}
	}
	return nil
}

// ran shows the result of a command.
func (b *Board) ran(msg ranMsg) {
	b.running = nil
	out := strings.TrimRight(msg.output, "\n")
	if msg.show && strings.Contains(out, "\n") && msg.err == nil {
		b.show(strings.Join(msg.args, " "), out)
		return
	}
	b.say(msg.err, "✓ "+strings.Join(msg.args, " ")+"  "+firstLine(out))
}

// show shows a text in the detail pane, until esc.
func (b *Board) show(title, text string) {
	b.detail.output(title, text)
	b.goTo(detailPane)
}

// warnings lists what is wrong with the rig, one line each.
func (b *Board) warnings() string {
	var lines []string
	for i := range b.view.Pauses {
		lines = append(lines, "‖ "+b.view.Pauses[i].String())
	}
	for _, i := range b.view.Incidents {
		lines = append(lines, strings.Join([]string{string(i.Severity), string(i.AgentID), string(i.Kind), string(i.BeadID), i.Detail}, "  "))
	}
	for _, w := range b.view.Warnings {
		lines = append(lines, "! "+w)
	}
	if len(lines) == 0 {
		return "no warnings, incidents or pauses"
	}
	return strings.Join(lines, "\n")
}

// say shows an error, or else a message.
func (b *Board) say(err error, well string) {
	b.message, b.failed = well, err != nil
	if err != nil {
		b.message = "✗ " + strings.Join(strings.Fields(err.Error()), " ")
	}
}

// run returns a command that runs a command line.
func (b *Board) run(args []string, show bool) tea.Cmd {
	ctx, cancel := context.WithCancel(context.Background())
	b.running = cancel
	b.message, b.failed = "… "+strings.Join(args, " "), false
	run := b.Run
	return func() tea.Msg {
		defer cancel()
		out, err := run(ctx, args)
		return ranMsg{args, out, err, show}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
