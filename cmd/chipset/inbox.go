package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/need"
)

func newInboxCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "inbox",
		Short: "List what only you can decide, with the commands that answer it",
		Long: `List the decisions that wait for you: agents' questions, permissions, plans,
blocked beads, work that can't land, records that can't be read, critical
incidents. An entry goes when its cause goes, whether or not its mail was read.
It keeps its number for as long as it is listed, and no later entry gets that
number.`,
		Example: "  chipset inbox\n  chipset approve 1\n  chipset answer 2 \"MIT\"\n  chipset reopen 3 4",
		Args:    nargs(0, 0, ""),
		RunE: with(a.openState, func(ctx context.Context, r *rig.Rig, _ []string) error {
			needs, err := a.needs(ctx, r)
			return a.show(needs, err, func() error { return view.WriteNeeds(a.stdout, needs, a.clock.Now(), a.screen()) })
		}),
	}
}

// needs returns the rig's needs. If only some can be read, the error is a warning.
func (a *app) needs(ctx context.Context, r *rig.Rig) ([]view.Need, error) {
	needs, err := view.Needs(ctx, r)
	if err != nil && len(needs) > 0 {
		a.warnf("%v", err)
		return needs, nil
	}
	return needs, err
}

// asked is what an argument of approve, deny, answer or reopen refers to.
type asked struct {
	need *view.Need // nil for a message that is not a need
	mail *mail.Entry
}

// find looks up an argument: the number of a need, the ID of a bead with a need of one of
// the kinds, or the name of a message.
func (a *app) find(ctx context.Context, r *rig.Rig, given string, kinds ...view.NeedKind) (asked, error) {
	number, notNumber := strconv.Atoi(given)
	id, notBead := state.ParseBeadID(given)
	q, requestErr := r.Queue.Get(given)
	if requestErr == nil {
		id, notBead = q.BeadID, nil
	}
	if notNumber != nil && notBead != nil {
		_, e, err := mailboxFlag{}.find(a, r, given)
		return asked{mail: &e}, err
	}
	needs, err := a.needs(ctx, r)
	if err != nil {
		return asked{}, err
	}
	var n *view.Need
	if notNumber == nil {
		n, err = numbered(r, needs, number)
	} else {
		n, err = ofBead(r, needs, id, kinds)
	}
	if err != nil || n.Name == "" {
		return asked{need: n}, err
	}
	_, e, err := mailboxFlag{}.find(a, r, string(n.Name))
	return asked{n, &e}, err
}

// numbered returns the need with a number; the error says why there is none.
func numbered(r *rig.Rig, needs []view.Need, number int) (*view.Need, error) {
	for i := range needs {
		if needs[i].Number == number && number > 0 {
			return &needs[i], nil
		}
	}
	was, err := need.NewStore(r.Tree).Find(number)
	if err == nil {
		err = state.Conflictf(fmt.Sprintf("need %d", number), "no longer waits for you (%s)", was.What)
	}
	return nil, withHint(err, "chipset inbox lists what waits for you")
}

// ofBead returns the only need of a bead of one of the kinds.
func ofBead(r *rig.Rig, needs []view.Need, id state.BeadID, kinds []view.NeedKind) (*view.Need, error) {
	var found []*view.Need
	var handles []string
	for i := range needs {
		for _, k := range kinds {
			if needs[i].BeadID == id && needs[i].Kind == k {
				found = append(found, &needs[i])
				handles = append(handles, needs[i].Handle())
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if _, err := r.Beads.Get(string(id)); err != nil {
			return nil, err
		}
		return nil, withHint(state.Conflictf("bead "+string(id), "does not wait for this"), "chipset why "+string(id)+" says what it waits for")
	}
	return nil, usagef("bead %s has %d open questions: choose one of %s", id, len(found), strings.Join(handles, ", "))
}

// wrongAnswer returns the error for a need that another command answers.
func wrongAnswer(n *view.Need, verb string) error {
	return withHint(state.Conflictf("need "+n.Handle(), "%s does not answer this (%s)", verb, n.Kind), strings.Join(n.Commands, ", or "))
}

// forEach calls do for each argument, and prints the outcomes. A failure does not keep
// the others from being done.
func (a *app) forEach(args []string, do func(arg string) (outcome, error)) error {
	var all []outcome
	var failed []error
	for _, arg := range args {
		d, err := do(arg)
		if err != nil {
			failed = append(failed, err)
		}
		if d.Did != "" {
			all = append(all, d)
		}
	}
	return a.didAll(all, joined(failed), func(o *outcome) string {
		if o.Name != "" {
			return string(o.Name)
		}
		return strings.TrimSpace(string(o.BeadID) + " " + o.Did)
	})
}

// joined joins errors; a single one keeps its hint.
func joined(failed []error) error {
	failed = slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	if len(failed) == 1 {
		return failed[0]
	}
	return errors.Join(failed...)
}

func newAnswerCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "answer NUMBER|BEAD|MESSAGE TEXT",
		Short: "Answer an agent's question, or reopen a blocked bead",
		Long: `Answer a question. NUMBER is from chipset inbox, BEAD is the bead whose worker
asks, MESSAGE the name of the message that asks. The worker continues with the
answer. A blocked bead is reopened, with the answer in the notes for its next
worker. Permissions and plans are decided with approve and deny.`,
		Example: "  chipset answer 1 \"MIT\"\n  chipset answer gt-abc12 \"use the staging database\"",
		Args:    nargs(2, 2, "a number, a bead or a message, and the answer (quote it)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.forEach(args[:1], func(arg string) (outcome, error) { return a.answer(cmd.Context(), arg, args[1]) })
		},
	}
}

func (a *app) answer(ctx context.Context, arg, text string) (outcome, error) {
	if strings.TrimSpace(text) == "" {
		return outcome{}, usagef("the answer is empty")
	}
	me, err := a.asPerson(a.openRigActor(ctx))
	if err != nil {
		return outcome{}, err
	}
	q, err := a.find(ctx, me.Rig, arg, view.NeedQuestion, view.NeedBlocked, view.NeedPermission, view.NeedPlan)
	switch {
	case err != nil:
		return outcome{}, err
	case q.need != nil && q.need.Kind == view.NeedBlocked:
		err := me.ReopenBead(ctx, q.need.BeadID, text)
		return outcome{Number: q.need.Number, Did: didIf(err, "open"), BeadID: q.need.BeadID}, err
	case q.need != nil && q.need.Kind != view.NeedQuestion:
		return outcome{}, wrongAnswer(q.need, "a text")
	case q.mail.Type != mail.Coordination:
		return outcome{}, usagef("%s is a %s: use chipset approve or deny", q.mail.Name, q.mail.Type)
	}
	name, err := me.Reply(ctx, q.mail, actor.Answer{Body: text})
	d := outcome{Did: didIf(err, "answered"), Name: name}
	if name != "" {
		d.Did = "answered"
	}
	if q.need != nil {
		d.Number, d.BeadID = q.need.Number, q.need.BeadID
	}
	return d, err
}

// didIf returns what was done, or "" if it failed.
func didIf(err error, did string) string {
	if err != nil {
		return ""
	}
	return did
}

type reopenOptions struct {
	reasonOptions
	all bool
}

// AddFlags registers the flags of reopen.
func (o *reopenOptions) AddFlags(fs *pflag.FlagSet) {
	o.reasonOptions.AddFlags(fs)
	fs.BoolVar(&o.all, "all", false, "reopen every blocked bead")
}

func newReopenCmd(a *app) *cobra.Command {
	var opts reopenOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "reopen NUMBER|BEAD|MR|MESSAGE…",
		Short: "Reopen beads that are blocked, failed, closed or cancelled",
		Long: `Reopen beads, as chipset work reopen does. NUMBER is from chipset inbox, MESSAGE
is one about the bead. The bead's failure counts are reset, and the reason goes
into the notes for its next worker.`,
		Example: "  chipset reopen 3 4\n  chipset reopen --all --reason \"the registry is back\"",
		Args: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) != opts.all {
				return withHint(usagef("expected numbers, beads, merge requests or messages, or --all"), seeHelp(cmd))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runReopen(cmd.Context(), opts, args, a) },
	})
}

func runReopen(ctx context.Context, opts reopenOptions, args []string, a *app) error {
	me, err := a.openRigActor(ctx)
	if err != nil {
		return err
	}
	if opts.all {
		needs, err := a.needs(ctx, me.Rig)
		if err != nil {
			return err
		}
		for i := range needs {
			if needs[i].Kind == view.NeedBlocked {
				args = append(args, string(needs[i].BeadID))
			}
		}
		if len(args) == 0 {
			a.note("no bead is blocked\n")
		}
	}
	return a.forEach(args, func(arg string) (outcome, error) {
		d, err := a.beadNamed(ctx, me.Rig, arg)
		if err == nil {
			err = me.ReopenBead(ctx, d.BeadID, opts.reason)
		}
		d.Did = didIf(err, "open")
		return d, err
	})
}

// beadNamed returns the bead that an argument of reopen refers to.
func (a *app) beadNamed(ctx context.Context, r *rig.Rig, arg string) (outcome, error) {
	if _, err := strconv.Atoi(arg); err != nil {
		if id, err := state.ParseBeadID(arg); err == nil {
			return outcome{BeadID: id}, nil
		}
	}
	q, err := a.find(ctx, r, arg)
	switch {
	case err != nil:
		return outcome{}, err
	case q.need != nil && q.need.Kind != view.NeedBlocked:
		return outcome{}, wrongAnswer(q.need, "reopen")
	case q.need != nil:
		return outcome{Number: q.need.Number, BeadID: q.need.BeadID}, nil
	case q.mail.Ref == nil || q.mail.Ref.BeadID == "":
		return outcome{}, usagef("message %s is about no bead", q.mail.Name)
	}
	return outcome{BeadID: q.mail.Ref.BeadID}, nil
}
