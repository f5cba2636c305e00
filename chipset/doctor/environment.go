package doctor

import (
	"context"

	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/state"
)

// environment reports problems of the machine, the target and the remote that the rig
// can't repair. A target that was moved back is reported as merged-unreachable instead,
// for each request.
func (l *inspection) environment(ctx context.Context) error {
	found, err := environment.Look(ctx, l.r)
	for _, t := range found {
		if t.Rule == environment.MovedBack {
			continue
		}
		severity := Warning
		if t.Severe {
			severity = Error
		}
		l.addSettled(t.Rule, t.Path, severity, t.Hint, "%s", t.Detail)
	}
	if err != nil || l.r.Def == nil {
		return err
	}
	checks, err := environment.Clients(ctx, l.r)
	for i := range checks {
		if c := &checks[i]; !c.OK() {
			l.addSettled("client", state.Path(c.Subject), Warning, c.Mend, "%s", c.Fault.Reason)
		}
	}
	return err
}
