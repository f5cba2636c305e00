package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

// DownOptions are the options of Down.
type DownOptions struct {
	// Now stops workers at once instead of asking and waiting.
	Now bool
	// Patience is how long agents may take to finish before they are signalled;
	// Insist is how long they may take to end after each signal.
	Patience, Insist time.Duration
	By               state.AgentID
	Say              func(format string, args ...any)
}

// pollInterval is how often locks are polled, which send no notification.
const pollInterval = 50 * time.Millisecond

// Down asks every running agent to finish by mail that names its session,
// waits, then signals the processes (TERM, then KILL). It returns how many
// agents were running. Nothing is lost either way: the next start continues
// interrupted sessions.
func Down(ctx context.Context, r *rig.Rig, opts DownOptions) (int, error) {
	running, err := alive(r)
	if err != nil || len(running) == 0 {
		return 0, err
	}
	n := len(running)
	if !opts.Now {
		for _, s := range running {
			if err := askToFinish(ctx, r, opts.By, s); err != nil {
				return n, err
			}
		}
		opts.Say("asked %s to finish; waiting up to %s", wording.Count(n, "agent"), opts.Patience)
		if running, err = waitGone(ctx, r, running, opts.Patience); err != nil || len(running) == 0 {
			return n, err
		}
	}
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, opts.Insist}, {syscall.SIGKILL, opts.Insist}} {
		for pid, names := range processes(running) {
			opts.Say("%s: pid %d (%s)", step.signal, pid, names)
			if err := syscall.Kill(pid, step.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
				return n, fmt.Errorf("signal pid %d: %w", pid, err)
			}
		}
		if running, err = waitGone(ctx, r, running, step.wait); err != nil || len(running) == 0 {
			return n, err
		}
	}
	return n, fmt.Errorf("%s still running: %w", wording.Count(len(running), "agent"), state.ErrLockTimeout)
}

// askToFinish asks one session of an agent to finish what it does.
func askToFinish(ctx context.Context, r *rig.Rig, by state.AgentID, s rig.Stamp) error {
	quiet, err := json.Marshal(mail.Ask{NoReply: true}) // the locks show who has ended
	if err != nil {
		return err
	}
	_, err = r.Sender.Send(ctx, mail.Message{From: by, To: s.AgentID, Type: mail.ShutdownRequest, Priority: mail.Urgent,
		Subject: "please finish", Body: "The rig is being shut down: finish what you do, and take nothing new.\n",
		Ref: &mail.Ref{Session: s.Session}, Metadata: quiet})
	if errors.Is(err, state.ErrConflict) {
		return nil
	}
	return err
}

func alive(r *rig.Rig) ([]rig.Stamp, error) {
	agents, _, err := r.Agents.All()
	if err != nil {
		return nil, err
	}
	var running []rig.Stamp
	for _, a := range agents {
		if s, ok := r.Alive(a.ID); ok {
			running = append(running, s)
		}
	}
	return running, nil
}

func waitGone(ctx context.Context, r *rig.Rig, running []rig.Stamp, limit time.Duration) ([]rig.Stamp, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		left := running[:0]
		for _, s := range running {
			// If there is another session, the one that was asked is gone.
			if now, ok := r.Alive(s.AgentID); ok && now.Session == s.Session {
				left = append(left, s)
			}
		}
		running = left
		if len(running) == 0 {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return running, nil
			}
			return running, ctx.Err()
		case <-ticker.C:
		}
	}
}

// processes groups agents by the process that runs them.
func processes(running []rig.Stamp) map[int]string {
	names := map[int]string{}
	for _, s := range running {
		if s.PID <= 1 {
			continue
		}
		if names[s.PID] != "" {
			names[s.PID] += ", "
		}
		names[s.PID] += string(s.AgentID)
	}
	return names
}
