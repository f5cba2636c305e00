package execute

import (
	"context"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// configRecord keeps the hash of what the person's git obeys in this repository (git.Repo.Configured), as it was when it was last looked
// at.
const configRecord = state.RunDir + "/git-config.json"

type knownConfig struct {
	Sum string `json:"sum"`
}

// noteRepository tells the person once when what git obeys in this repository has changed since a worker began: without a
// box a worker can do that.
func (p *Polecat) noteRepository(ctx context.Context) {
	sum, err := p.Rig.Git.Configured()
	if err != nil {
		p.Say("%s: can't read the git configuration: %v", p.ID, err)
		return
	}
	var known knownConfig
	err = p.Rig.Tree.ReadJSON(configRecord, &known)
	if err == nil && known.Sum == sum {
		return
	}
	if err == nil && known.Sum != "" {
		const short = 32
		err = p.send(ctx, mail.Message{To: state.Human, Type: mail.Coordination, Priority: mail.Urgent, ID: "git-config:" + sum[:short],
			Subject: "What git obeys in this repository has changed while workers ran",
			Body: "It is one of .git/config (upstreams of branches aside), .git/info/exclude, .git/info/attributes, .git/objects/info/alternates and .git/hooks. If it was you, all is " +
				"well; if not, look at it before you use git here: what stands there can run programs in your name, or let commits vanish.\n"})
		if err != nil {
			p.Say("%s: %v", p.ID, err)
			return
		}
	}
	if err := p.Rig.Tree.ReplaceJSON(configRecord, knownConfig{sum}); err != nil {
		p.Say("%s: %v", p.ID, err)
	}
}
