package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state/permission"
)

func newRequestCmd(a *app) *cobra.Command {
	return newGroupCmd("request", "Ask for a decision: on a plan, a permission, a question", newRequestPlanCmd(a), newRequestPermissionCmd(a), newRequestAnswerCmd(a))
}

// waitOption is how long a request waits for its answer.
type waitOption struct{ wait time.Duration }

// AddFlags registers --wait.
func (o *waitOption) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.wait, "wait", 0, "how long to wait for the answer (default: print the name of the request)")
}

// answer prints the name of a request, or waits for what is decided: nil for an
// approval, an error with the reason for a denial.
func (o *waitOption) answer(ctx context.Context, a *app, me *actor.Actor, name mail.Name) error {
	if o.wait <= 0 {
		return a.sent(nil, outcome{Did: "asked", Name: name})
	}
	answer, err := me.WaitDecision(ctx, name, o.wait)
	if err != nil {
		return withHint(err, "the answer comes as mail in the thread of "+string(name))
	}
	return a.decided(*answer.Approved, answer.Reason)
}

func (a *app) decided(approved bool, reason string) error {
	if !approved {
		return fmt.Errorf("denied: %s", clean(reason))
	}
	return a.didAll([]outcome{{Did: "approved", Reason: reason}}, nil, func(*outcome) string { return strings.TrimSuffix("approved: "+reason, ": ") })
}

type requestPlanOptions struct {
	waitOption
	body, bodyFile string
}

// AddFlags registers the flags of request plan.
func (o *requestPlanOptions) AddFlags(fs *pflag.FlagSet) {
	o.waitOption.AddFlags(fs)
	fs.StringVarP(&o.body, "body", "b", "", "the plan, as `text`")
	fileFlag(fs, &o.bodyFile, "body-file", "", "read the plan from a `file`; - is standard input")
}

func newRequestPlanCmd(a *app) *cobra.Command {
	var opts requestPlanOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "plan",
		Short: "Send your plan for approval",
		Long: `Mail a plan to the mayor, who approves it or passes it on to the person. Change
nothing before it is approved. With --wait the command waits for the decision:
exit 0 if the plan is approved, exit 1 with the reason if it is sent back, exit
6 if there is no decision in time.`,
		Example: "  chipset request plan --body-file plan.md --wait 1h",
		Args:    nargs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			plan, err := textInput{flag: "--body", fileFlag: "--body-file", text: opts.body, file: opts.bodyFile,
				textGiven: cmd.Flags().Changed("body")}.read(ctx, a, mail.MaxSize)
			if err != nil {
				return err
			}
			me, err := a.openActor(ctx)
			if err != nil {
				return err
			}
			name, err := me.RequestPlan(ctx, plan)
			if err != nil {
				return err
			}
			return opts.answer(ctx, a, me, name)
		},
	})
}

type requestPermissionOptions struct {
	waitOption
	reason string
}

// AddFlags registers the flags of request permission.
func (o *requestPermissionOptions) AddFlags(fs *pflag.FlagSet) {
	o.waitOption.AddFlags(fs)
	fs.StringVar(&o.reason, "reason", "", "what it is for, as `text`")
}

func newRequestPermissionCmd(a *app) *cobra.Command {
	var opts requestPermissionOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "permission RULE",
		Short: "Ask the person for a permission",
		Long: `Ask the person for a permission. RULE names it in one line, literally. If the
person's decision about this rule is remembered (chipset approve --remember),
the answer comes at once: exit 0 if it is permitted, exit 1 if it is not.`,
		Example: "  chipset request permission \"Bash(npm publish)\" --reason \"the bead asks for a release\" --wait 30m",
		Args:    nargs(1, 1, "one rule (quote it)"),
		RunE: with(a.openActor, func(ctx context.Context, me *actor.Actor, args []string) error {
			name, known, err := me.RequestPermission(ctx, args[0], opts.reason)
			if err != nil {
				return err
			}
			if known != nil {
				return a.decided(known.Decision == permission.Approve, strings.TrimSpace("remembered as "+known.ID+" "+known.Reason))
			}
			return opts.answer(ctx, a, me, name)
		}),
	})
}

func newRequestAnswerCmd(a *app) *cobra.Command {
	var opts waitOption
	return withFlags(&opts, &cobra.Command{
		Use:   "answer QUESTION",
		Short: "Ask the person a question",
		Long: `Ask the person a question whose answer you need to continue. With --wait the
answer is printed; exit 6 if it does not come in time. Without --wait, end your
turn: you continue when the answer is there.`,
		Example: "  chipset request answer \"Which licence?\" --wait 30m",
		Args:    nargs(1, 1, "one question (quote it)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			me, err := a.openActor(cmd.Context())
			if err != nil {
				return err
			}
			name, err := me.Ask(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if opts.wait <= 0 {
				return a.sent(nil, outcome{Did: "asked", Name: name})
			}
			e, err := me.WaitAnswer(cmd.Context(), name, opts.wait)
			return withHint(a.did(&e, err, "%s\n", strings.TrimRight(cleanText(e.Body), "\n")), "the answer comes as mail in the thread of "+string(name))
		},
	})
}

type decideOptions struct {
	reason              string
	remember, onlyAgent bool
}

// AddFlags registers the flags of approve and deny.
func (o *decideOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.reason, "reason", "", "why, as `text`; required to send back a plan or to refuse a shutdown")
	fs.BoolVar(&o.remember, "remember", false, "remember the decision about a permission, for every agent")
	fs.BoolVar(&o.onlyAgent, "only-agent", false, "with --remember, only for the agent that asked")
}

func newApproveCmd(a *app) *cobra.Command {
	return newDecideCmd(a, "approve", true, "Approve what an agent asks for")
}

func newDenyCmd(a *app) *cobra.Command {
	return newDecideCmd(a, "deny", false, "Deny what an agent asks for")
}

func newDecideCmd(a *app, name string, approved bool, short string) *cobra.Command {
	var opts decideOptions
	return withFlags(&opts, &cobra.Command{
		Use:   name + " NUMBER|BEAD|MR|MESSAGE…",
		Short: short,
		Long: short + `: a plan, a permission, a shutdown, or a change
to protected files.

NUMBER is from chipset inbox, BEAD is the bead whose worker asks, MESSAGE the
name of the message, which may be in any mailbox. Permissions are decided by the
person, plans by the mayor or the person, and the shutdown of a crew member by
that member. The answer goes to the agent that asked, even if the mayor has
passed the request on.

A decision about a host that a worker or a test wanted to connect to is
remembered: chipset permissions lists and revokes it. network.allow in
chipset.yaml allows hosts, too.

MR is a merge request that changes protected files (merge.protect). It lands
only with the person's approval, which holds for exactly what chipset queue diff
shows: other content is asked about again. A bead that is sent back is open
again, with the reason for its next worker.`,
		Example: "  chipset inbox\n  chipset " + name + " 1\n  chipset " + name + " 2026-03-05T10-30-00.000000000Z-polecat-alpha --reason \"as we said\"",
		Args:    nargs(1, -1, "numbers, beads, merge requests or messages"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.onlyAgent && !opts.remember {
				return usagef("--only-agent requires --remember")
			}
			d := actor.Decision{Approved: approved, Reason: opts.reason, Remember: opts.remember, OnlyAgent: opts.onlyAgent}
			return a.forEach(args, func(arg string) (outcome, error) { return a.decide(cmd.Context(), arg, name, d) })
		},
	})
}

// decide answers one request; verb names the command for messages.
func (a *app) decide(ctx context.Context, arg, verb string, d actor.Decision) (outcome, error) {
	me, err := a.asPerson(a.openActor(ctx))
	if err != nil {
		return outcome{}, err
	}
	q, err := a.find(ctx, me.Rig, arg, view.NeedPermission, view.NeedPlan, view.NeedProtected)
	if err != nil {
		return outcome{}, err
	}
	word := "denied"
	if d.Approved {
		word = "approved"
	}
	if q.need != nil && q.need.Kind == view.NeedProtected {
		err := me.DecideRequest(ctx, q.need.MergeID, q.need.Change, d)
		return outcome{Number: q.need.Number, Did: didIf(err, word), BeadID: q.need.BeadID}, err
	}
	if q.need != nil && q.need.Kind == view.NeedHost {
		_, err := me.DecideHost(ctx, q.need.Permission, d)
		return outcome{Number: q.need.Number, Did: didIf(err, word)}, err
	}
	if q.need != nil && q.need.Kind != view.NeedPermission && q.need.Kind != view.NeedPlan {
		return outcome{}, wrongAnswer(q.need, verb)
	}
	made := outcome{}
	made.Name, err = me.Decide(ctx, q.mail, d)
	if made.Name == "" {
		return made, err
	}
	made.Did = word
	if q.need != nil {
		made.Number, made.BeadID = q.need.Number, q.need.BeadID
	}
	return made, err
}

type idleOptions struct{ reason, summary string }

// AddFlags registers the flags of idle.
func (o *idleOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.reason, "reason", "available", "why you are idle, `available|interrupted|failed`")
	fs.StringVar(&o.summary, "summary", "", "what was done last, as `text`")
}

func newIdleCmd(a *app) *cobra.Command {
	var opts idleOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "idle",
		Short: "Tell the mayor that you are idle",
		Long: `Tell the mayor that you are idle, and why. Polecats do this by themselves at the
end of each attempt. While an earlier notification is unread, no second one is
sent, and the name of the first is printed.`,
		Example: "  chipset idle --summary \"the review is done\"",
		Args:    nargs(0, 0, ""),
		RunE: with(a.openActor, func(ctx context.Context, me *actor.Actor, _ []string) error {
			n, err := me.Idle(ctx, actor.IdleReason(opts.reason), opts.summary)
			return a.sent(err, outcome{Did: "sent", Name: n, To: string(me.Mayor())})
		}),
	})
}

func newPermissionsCmd(a *app) *cobra.Command {
	return newGroupCmd("permissions", "List and revoke what you have decided for good", newPermissionsListCmd(a), newPermissionsRevokeCmd(a))
}

func newPermissionsListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List remembered decisions",
		Example: "  chipset permissions list",
		Args:    nargs(0, 0, ""),
		RunE: with(a.openState, func(_ context.Context, r *rig.Rig, _ []string) error {
			all, bad, err := r.Permissions.All()
			if err != nil {
				return err
			}
			warnAll(a, bad)
			return showList(a, all, []string{"ID", "DECISION", "AGENT", "RULE", "SINCE", "REASON"}, func(p *permission.Rule) []string {
				return []string{p.ID, string(p.Decision), string(p.AgentID), p.Rule, localTime(p.CreatedAt), p.Reason}
			})
		}),
	}
}

func newPermissionsRevokeCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Forget a decision: the next agent asks again",
		Example: "  chipset permissions revoke pm-0123456789abcdef",
		Args:    nargs(1, 1, "the ID of a decision"),
		RunE: with(a.openActor, func(_ context.Context, me *actor.Actor, args []string) error {
			if _, err := a.asPerson(me, nil); err != nil {
				return err
			}
			rule, err := me.Revoke(args[0])
			return a.did(rule, err, "%s revoked: %s\n", rule.ID, clean(rule.Rule))
		}),
	}
}
