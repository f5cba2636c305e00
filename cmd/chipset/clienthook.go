package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/agentcli/session"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

// clientHookDeadline is how long a hook may take at most: longer than any lock is
// held, and shorter than a person's patience.
const clientHookDeadline = 5 * time.Second

func newClientHookCmd(a *app) *cobra.Command {
	var worker bool
	cmd := &cobra.Command{
		Use:         "client-hook CLIENT EVENT",
		Short:       "Answer a hook of a coding-agent client",
		Annotations: map[string]string{ownFormat: ""},
		Long: `Answer a hook of a coding-agent client. The client runs this command: it reads
the event from standard input as JSON, and prints the answer for the agent in
the client's format. Most events, and all events outside of a rig, have no
answer; then nothing is printed. Errors are printed on standard error and never
block the client: the exit code is 0, or 2 to keep a teammate or a task from
ending, or to wake an idle session.

Clients: ` + strings.Join(clients.WithHooks(), ", ") + `.
EVENT is the client's own name of the event. chipset plugin install writes the
configuration that calls this command.`,
		Example: "  echo '{\"session_id\":\"s\",\"source\":\"startup\"}' | chipset client-hook claude SessionStart",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 { // not a usage error: its exit code would hold a client up
				return exitWith(codeFailed, fmt.Errorf("client-hook: expected a client and an event, got %s", wording.Count(len(args), "argument")))
			}
			if !worker && a.env(agentcli.EnvWorkerHooks) != "" {
				return nil // this worker was given hooks of its own, which say it all
			}
			return runClientHook(cmd.Context(), args[0], args[1], a)
		},
	}
	cmd.Flags().BoolVar(&worker, "worker", false, "set in the hooks that a rig gives its own workers; other hooks are silent there")
	return cmd
}

func runClientHook(ctx context.Context, name, eventName string, a *app) error {
	c := clients.Named(name)
	if c.Hooks == nil {
		return nil
	}
	event, known := c.Hooks.Events[eventName]
	if !known {
		return nil // a newer client has more events than are answered
	}
	if event == agentcli.Idle && c.Hooks.Attended != nil && !c.Hooks.Attended(a.env) {
		return nil
	}
	data, ctx, cancel, err := a.clientInput(ctx, &c, event)
	defer cancel()
	if err != nil {
		return err
	}
	code := codeOK
	show := func(answer agentcli.Answer) error {
		if event == agentcli.Idle && c.Hooks.Wake != nil {
			return a.wake(ctx, &c, data, answer)
		}
		out := c.Hooks.Output(event, eventName, answer)
		code = out.Code
		_, err := a.stdout.Write(out.Stdout)
		_, errErr := io.WriteString(a.stderr, out.Stderr)
		return errors.Join(err, errErr)
	}
	if err := a.clientAnswer(ctx, &c, event, data, show); err != nil {
		a.warnf("client-hook %s %s: %v", name, eventName, err)
	}
	if code != codeOK {
		return exitWith(code, errSilent)
	}
	return nil
}

// nobodyNamed reports whether the agent is the person only by default.
func (a *app) nobodyNamed(id state.AgentID) bool {
	return id == state.Human && a.as == "" && a.env(envAgent) == ""
}

// maxClientInput bounds what is read of an event, in bytes: tools answer at length.
const maxClientInput = 32 << 20

// clientInput reads what the client tells about an event. The context that it returns ends with the time that an answer may
// take. At Idle it has no end; where the client holds standard input open then, the first line is read, and the context ends with
// the rest, which a client that is killed closes, too.
func (a *app) clientInput(ctx context.Context, c *agentcli.Client, event agentcli.Event) ([]byte, context.Context, context.CancelFunc, error) {
	input := io.LimitReader(a.stdin, maxClientInput)
	var cancel context.CancelFunc
	if event == agentcli.Idle {
		ctx, cancel = context.WithCancel(ctx)
	} else {
		ctx, cancel = context.WithTimeout(ctx, clientHookDeadline)
	}
	if event != agentcli.Idle || !c.Hooks.HoldsInput {
		data, err := io.ReadAll(input)
		return data, ctx, cancel, err
	}
	lines := bufio.NewReader(input)
	data, err := lines.ReadBytes('\n')
	if err == nil {
		go func() {
			_, _ = io.Copy(io.Discard, lines)
			cancel()
		}()
	}
	return data, ctx, cancel, err
}

// passOn makes the commands of a session speak as its agent, if the client has a
// file for that, which the variable names.
func (a *app) passOn(variable string, id state.AgentID) error {
	file := a.env(variable)
	if variable == "" || !filepath.IsAbs(file) {
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

// clientAnswer prints the answer. Outside of a rig there is none.
func (a *app) clientAnswer(ctx context.Context, c *agentcli.Client, event agentcli.Event, data []byte, show func(agentcli.Answer) error) error {
	in, err := c.Hooks.Input(data)
	if err != nil {
		return err
	}
	r, err := a.openState(ctx)
	if errors.Is(err, rig.ErrNoRig) || errors.Is(err, rig.ErrUntrusted) {
		return nil
	}
	if err != nil {
		return err
	}
	id, err := a.identity(r)
	if err != nil {
		return err
	}
	known, _ := r.Agents.Get(string(id)) // one that is not known is refused where it acts
	hooks := session.Hooks{Rig: r, Agent: id, Beside: known.IsSession(), Client: c.Preset.Name, Limit: c.Hooks.Limit, Print: show, Prepend: c.Hooks.Prepend, SpawnedBy: c.Hooks.SpawnedBy,
		Resumed: c.Hooks.Resumed, HoldsInput: c.Hooks.HoldsInput}
	if id == state.Human || id == r.Mayor() { // no session is either
		hooks.Beside = true
		if hooks.Agent, err = session.Member(ctx, r, c.Preset.Name, in.Session, process.Ancestors()); err != nil {
			return err
		}
		if event == agentcli.SessionStart {
			if err := a.passOn(c.Hooks.EnvFile, hooks.Agent); err != nil {
				a.warnf("client-hook: commands of this session are not told who speaks: %v", err)
			}
		}
	}
	if hooks.Session, err = a.session(); err != nil {
		return err
	}
	if given := a.env(envAssignment); given != "" {
		if hooks.Assignment, err = state.ParseAssignmentID(given); err != nil {
			return err
		}
	}
	_, err = hooks.Answer(ctx, event, in)
	if event == agentcli.Stop && c.Hooks.Wake != nil && hooks.Beside && hooks.Assignment == "" {
		err = errors.Join(err, a.waitFor(c, in.Session))
	}
	return err
}

// waitFor starts the hook at Idle of a client that has none: a process of its own, which ends with the client.
func (a *app) waitFor(c *agentcli.Client, session string) error {
	input, err := json.Marshal(map[string]string{"session_id": session})
	if err != nil {
		return err
	}
	cmd := exec.Command(a.self, "client-hook", c.Preset.Name, "wait")
	cmd.Dir, cmd.SysProcAttr = a.cwd, &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err = pipe.Write(input)
	return errors.Join(err, pipe.Close(), cmd.Process.Release())
}

// wakeDeadline bounds the command that wakes a session.
const wakeDeadline = time.Minute

// wake starts a turn of the idle session that an event is about.
func (a *app) wake(ctx context.Context, c *agentcli.Client, data []byte, answer agentcli.Answer) error {
	in, err := c.Hooks.Input(data)
	if err != nil || answer.GoOn == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wakeDeadline)
	defer cancel()
	argv := c.Hooks.Wake(in.Session, string(answer.GoOn))
	if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", argv[0], err, out)
	}
	return nil
}
