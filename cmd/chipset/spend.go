package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/state/spend"
)

type spendOptions struct{ by, since string }

// AddFlags registers the flags of spend.
func (o *spendOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.by, "by", string(view.ByDay), "one line for each `bead|convoy|agent|model|day`")
	fs.StringVar(&o.since, "since", "", "only since this day: a `date` such as 2026-11-23, today, or a number of days such as 7d")
}

func newSpendCmd(a *app) *cobra.Command {
	var opts spendOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "spend",
		Short: "Show what attempts have used: tokens, money, time",
		Long: `Show what the attempts have used, by bead, convoy, agent, model or day. The
figures are those that the clients report; where a client reports no cost, the
prices in chipset.yaml apply. Every --by adds up to the same total. Running
attempts are counted as of a few seconds ago.`,
		Example: "  chipset spend\n  chipset spend --by bead --since today\n  chipset spend --by model --since 7d --json",
		Args:    nargs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			by := view.SpendBy(opts.by)
			if !slices.Contains(view.SpendKeys(), by) {
				return usagef("--by %q is not one of bead, convoy, agent, model, day", opts.by)
			}
			r, err := a.openState(cmd.Context())
			if err != nil {
				return err
			}
			since, err := firstDay(opts.since, r)
			if err != nil {
				return err
			}
			rows, bad, err := r.Spend.AllRows()
			if err != nil {
				return err
			}
			warnAll(a, bad)
			report := view.ReportSpend(rows, by, since)
			return a.show(report, nil, func() error {
				a.printf("%s", report.Text(a.screen()))
				return nil
			})
		},
	})
}

// firstDay parses --since: a date, today, or a number of days up to today.
func firstDay(text string, r *rig.Rig) (string, error) {
	today := r.Clock.Now().Local()
	if text == "" {
		return "", nil
	}
	if text == "today" {
		return spend.Day(today), nil
	}
	if days, found := strings.CutSuffix(text, "d"); found {
		const most = 36500
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= most {
			return spend.Day(today.AddDate(0, 0, 1-n)), nil
		}
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return "", usagef("--since %q is not a date such as 2026-11-23, today, or a number of days such as 7d", text)
	}
	return day.Format(time.DateOnly), nil
}
