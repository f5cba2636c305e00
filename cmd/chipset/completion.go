package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

func newCompletionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a completion script for your shell",
		Long: `Print a script with which a shell completes commands and flags, and the IDs of
beads, agents, convoys, merge requests, messages and needs of the rig around the
current directory. make install installs it for bash, zsh and fish.`,
		Example: `  chipset completion bash > ~/.local/share/bash-completion/completions/chipset
  chipset completion zsh > "${fpath[1]}/_chipset"
  chipset completion fish > ~/.config/fish/completions/chipset.fish`,
		Annotations: map[string]string{ownFormat: ""},
		Args:        nargs(1, 1, "bash, zsh or fish"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				a.printf("%s", bashAlone)
				return root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			}
			return usagef("%q is not bash, zsh or fish", args[0])
		},
	}
}

// bashAlone defines the only function of the package bash-completion that is needed, for a bash without it.
const bashAlone = `if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
    _get_comp_words_by_ref() {
        cword=$COMP_CWORD words=("${COMP_WORDS[@]}") cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
    }
fi
`

// addCompletions makes a command tree complete names, by the placeholders in its usages.
func (a *app) addCompletions(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		a.addCompletions(sub)
	}
	if !strings.ContainsAny(cmd.Use, " ") || !namesFile(strings.Fields(cmd.Use)[1]) {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return a.candidates(cmd, argKinds(cmd, len(args)), begun), cobra.ShellCompDirectiveNoFileComp
		}
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		name, _ := pflag.UnquoteUsage(f)
		if _, isFile := f.Annotations[cobra.BashCompFilenameExt]; isFile || namesFile(name) {
			return
		}
		var kinds []nameKind
		for kind := range strings.SplitSeq(name, "|") {
			kinds = append(kinds, nameKind(kind))
		}
		if len(kinds) == 1 {
			kinds[0] = flagKind(f)
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return a.candidates(cmd, kinds, begun), cobra.ShellCompDirectiveNoFileComp
		}) // fails only for a flag that has one
	})
}

// namesFile reports whether a placeholder stands for a file, a folder or a command of the machine.
func namesFile(placeholder string) bool {
	return slices.Contains([]string{"FILE", "DIR", "DIRECTORY", "file", "folder", "directory", "command"}, strings.Trim(placeholder, "[]…"))
}

// candidates returns the completions of the beginning of a name. Without a rig there are none.
func (a *app) candidates(cmd *cobra.Command, kinds []nameKind, begun string) []cobra.Completion {
	var all []cobra.Completion
	add := func(name, about string) {
		if strings.HasPrefix(name, begun) {
			all = append(all, cobra.CompletionWithDesc(name, clean(about)))
		}
	}
	r, err := a.openState(cmd.Context())
	for _, kind := range kinds {
		switch {
		case string(kind) == strings.ToLower(string(kind)): // a word of a fixed list
			add(string(kind), "")
		case err == nil:
			a.addNames(cmd, r, kind, begun, add)
		}
	}
	return all
}

// addNames adds the names of a kind.
func (a *app) addNames(cmd *cobra.Command, r *rig.Rig, kind nameKind, begun string, add func(name, about string)) {
	switch kind {
	case namesBead:
		a.addBeads(r, begun, add)
	case namesAgent, namesTo:
		agents, _, _ := r.Agents.All()
		for i := range agents {
			add(string(agents[i].ID), string(agents[i].Role))
		}
		if kind == namesTo {
			add("@polecats", "every polecat")
			add("@all", "every agent")
		}
	case namesConvoy:
		convoys, _, _ := r.Convoys.All()
		for i := range convoys {
			add(string(convoys[i].ID), convoys[i].Name)
		}
	case namesRequest:
		for _, name := range filesIn(r, mergequeue.Dir) {
			add(name, "")
		}
	case namesMessage:
		me, err := a.identity(r)
		unread, _, readErr := r.Mailbox(me).Unread()
		for i := range unread {
			if errors.Join(err, readErr) == nil {
				add(string(unread[i].Name), unread[i].Subject)
			}
		}
	case namesNeed:
		needs, _ := view.Needs(cmd.Context(), r)
		for i := range needs {
			add(fmt.Sprint(needs[i].Number), needs[i].What)
		}
	}
}

// maxTold is up to how many beads completions show titles; with more, the shell would have to wait.
const maxTold = 1000

// addBeads adds beads; finished ones only where a text begins them.
func (a *app) addBeads(r *rig.Rig, begun string, add func(name, about string)) {
	names := filesIn(r, bead.Dir)
	if len(names) > maxTold {
		for _, name := range names {
			add(name, "")
		}
		return
	}
	beads, _, _ := r.Beads.Overview()
	for i := range beads {
		if b := &beads[i]; begun != "" || !b.Status.Finished() {
			add(string(b.ID), fmt.Sprintf("%s: %s", b.Status, b.Title))
		}
	}
}
