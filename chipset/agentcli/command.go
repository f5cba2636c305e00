package agentcli

import (
	"bytes"
)

// commandName stands for any program of which nothing is known.
const commandName = "command"

// command is any other program: exit code 0 is done, and its output is read by people.
type command struct{ name string }

func (c command) Preset() Preset {
	return Preset{Name: commandName, Command: []string{c.name}, Prompt: PromptStdin, Timeout: DefaultWorkerTimeout}
}

func (command) About() About { return About{Title: "any command"} }

func (command) Equip(argv []string, _ Kit) Equipped { return Equipped{Argv: argv} }

func (command) Reader() Reader { return &plain{} }

// shell runs the bead's description as a script.
type shell struct{ command }

func (shell) Preset() Preset {
	return Preset{Name: "sh", Command: []string{"sh", "-e"}, Prompt: PromptScript, Timeout: DefaultWorkerTimeout}
}

func (shell) About() About {
	return About{Title: "the bead's description, run as a script"}
}

// plain reads nothing but the last words.
type plain struct{ transcript }

func (p *plain) Line(line []byte) {
	if line = bytes.TrimSpace(line); len(line) > 0 {
		p.said = clip(string(line))
	}
}

func (p *plain) End(int) End { return End{Said: p.said} }

func (p *plain) Resumed() {}
