package clients

import (
	"slices"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/process"
)

// PresetsOf are the workers that a definition knows: the built-in ones, changed
// and extended by the definition's own.
func PresetsOf(d *definition.Definition) []agentcli.Preset {
	presets := Presets()
	for _, own := range d.Worker.Presets {
		i := slices.IndexFunc(presets, func(p agentcli.Preset) bool { return p.Name == own.Name })
		if i < 0 {
			presets = append(presets, agentcli.Preset{Name: own.Name, Timeout: agentcli.DefaultWorkerTimeout})
			i = len(presets) - 1
		}
		change(&presets[i], own)
	}
	return presets
}

// change applies what a preset of the definition sets, and nothing else.
func change(p *agentcli.Preset, own definition.WorkerPreset) {
	if argv := own.Command.Argv; len(argv) > 0 {
		p.Command = argv
	} else if argv, err := process.ParseCommand(own.Command.Line); err == nil {
		p.Command = argv
	}
	switch {
	case own.Prompt != "":
		p.Prompt = agentcli.PromptMode(own.Prompt)
	case p.Prompt == "":
		p.Prompt = agentcli.PromptModeOf(p.Command)
	}
	if own.Timeout != nil {
		p.Timeout = *own.Timeout
	}
	if len(own.Env) > 0 {
		p.Env = own.Env
	}
	if own.StallDetection > 0 {
		p.StallDetection = own.StallDetection
	}
	if len(own.Permissions) > 0 {
		p.Permissions = own.Permissions
	}
	if own.Client != "" {
		p.Client = own.Client
	}
	if own.Resumes != nil {
		p.Resumes = *own.Resumes
		if *own.Resumes == 0 {
			p.Resumes = agentcli.NoResumes
		}
	}
}
