package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli/session"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// clientHookDeadline is how long a client waits for its hook at most: longer
// than any lock is held, and shorter than a person's patience.
const clientHookDeadline = 5 * time.Second

// envWorkerHooks is set in a worker whose client was given the rig's hooks.
const envWorkerHooks = "CHIPSET_WORKER_HOOKS"

func newClientHookCmd(a *app) *cobra.Command {
	var kinds, events []string
	for _, k := range session.Kinds() {
		kinds = append(kinds, string(k))
	}
	for _, e := range session.Events() {
		events = append(events, string(e))
	}
	var worker bool
	cmd := &cobra.Command{
		Use:   "client-hook CLIENT EVENT",
		Short: "Answer a hook of a coding-agent client",
		Long: `Answer a hook of a coding-agent client, for the client to run: the event is read from
standard input as JSON, and what the agent is to know is printed in the client's own
format. There is nothing to say most of the time, outside of a rig always, and then
nothing is printed. What goes wrong is told on standard error and never holds the
client up: the exit code is 0 but for a teammate or a task that is kept going (2).

Clients: ` + strings.Join(kinds, ", ") + `. Events, in Claude Code's words: ` + strings.Join(events, ", ") + `.
chipset plugin install writes the configuration that calls this.`,
		Example: "  echo '{\"session_id\":\"s\",\"source\":\"startup\"}' | chipset client-hook claude SessionStart",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 { // not a usage error: its exit code would hold a client up
				return exitWith(codeFailed, fmt.Errorf("client-hook: wants a client and an event, got %d arguments", len(args)))
			}
			if !worker && a.env(envWorkerHooks) != "" {
				return nil // this worker was given hooks of its own, which say it all
			}
			return runClientHook(cmd.Context(), args[0], args[1], a)
		},
	}
	cmd.Flags().BoolVar(&worker, "worker", false, "called by what a rig hands to its own workers; other hooks are silent in those")
	return cmd
}

func runClientHook(ctx context.Context, kind, name string, a *app) error {
	event, known := session.Canonical(session.Kind(kind), name)
	if !known {
		return nil // a newer client has more events than are answered
	}
	ctx, cancel := context.WithTimeout(ctx, clientHookDeadline)
	defer cancel()
	answer, err := a.clientAnswer(ctx, session.Kind(kind), event)
	if err != nil {
		a.warnf("client-hook %s %s: %v", kind, name, err)
	}
	stdout, stderr, code := answer.Render(session.Kind(kind), event, name)
	a.printf("%s", stdout)
	a.tellf("%s", stderr)
	if code != 0 {
		return exitWith(code, errSilent)
	}
	return nil
}

// nobodyNamed tells whether the speaker is the person only because nobody said
// who it is.
func (a *app) nobodyNamed(id state.AgentID) bool {
	return id == state.Human && a.as == "" && a.env(envAgent) == ""
}

// envClaudeFile names the file in which Claude Code reads what the commands of its
// session are to have in their environment.
const envClaudeFile = "CLAUDE_ENV_FILE"

// passOn lets the commands that a session runs speak as its agent, where the
// client has a way for that.
func (a *app) passOn(id state.AgentID) error {
	file := a.env(envClaudeFile)
	if !filepath.IsAbs(file) {
		return nil
	}
	const most = 1 << 20
	before, err := state.ReadOutside(file, most)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	line := "export " + envAgent + "=" + string(id) + "\n"
	if strings.Contains(string(before), line) {
		return nil
	}
	return state.ReplaceOutside(file, append(before, line...))
}

// clientAnswer is silence outside of a rig.
func (a *app) clientAnswer(ctx context.Context, kind session.Kind, event session.Event) (session.Answer, error) {
	data, err := io.ReadAll(io.LimitReader(a.stdin, session.MaxInput))
	if err != nil {
		return session.Answer{}, err
	}
	in, err := session.Decode(data)
	if err != nil {
		return session.Answer{}, err
	}
	r, err := a.openState(ctx)
	if errors.Is(err, rig.ErrNoRig) {
		return session.Answer{}, nil
	}
	if err != nil {
		return session.Answer{}, err
	}
	id, err := a.speaker(r)
	if err != nil {
		return session.Answer{}, err
	}
	hooks := session.Hooks{Rig: r, Agent: id}
	if a.nobodyNamed(id) {
		hooks.Beside = true
		if hooks.Agent, err = actor.Crew(ctx, r, string(kind)); err != nil {
			return session.Answer{}, err
		}
		if event == session.SessionStart {
			if err := a.passOn(hooks.Agent); err != nil {
				a.warnf("client-hook: commands of this session speak as human: %v", err)
			}
		}
	}
	if hooks.Session, err = a.session(); err != nil {
		return session.Answer{}, err
	}
	if given := a.env(envAssignment); given != "" {
		if hooks.Assignment, err = state.ParseAssignmentID(given); err != nil {
			return session.Answer{}, err
		}
	}
	return hooks.Answer(ctx, event, in)
}
