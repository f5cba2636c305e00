package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// doubled is how long a repeated signal counts as the same one: some tools, such as
// timeout(1), signal a process and then its whole group.
const doubled = 200 * time.Millisecond

// interrupts holds what the first SIGINT of a process does instead of ending its command.
type interrupts struct {
	mu    sync.Mutex
	first func()
}

// onFirst makes the first SIGINT from now on call f instead of ending the command.
func (i *interrupts) onFirst(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.first = f
}

// take returns what the first SIGINT does, once.
func (i *interrupts) take() func() {
	i.mu.Lock()
	defer i.mu.Unlock()
	f := i.first
	i.first = nil
	return f
}

// runWithSignals executes one command line and returns the exit code. SIGTERM cancels the command's
// context, and so does SIGINT: the first one, or the second of a command that drains at the first. A
// later signal has its usual effect.
func runWithSignals(args []string, a *app) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		var last os.Signal
		var at time.Time
		for sig := range signals {
			if sig == last && time.Since(at) < doubled {
				continue
			}
			last, at = sig, time.Now() //nolint:forbidigo // tells two signals apart, decides nothing of the rig
			if drain := a.interrupts.take(); drain != nil && sig == os.Interrupt {
				drain()
				continue
			}
			cancel()
			time.AfterFunc(doubled, func() { signal.Stop(signals) })
		}
	}()
	return execute(ctx, args, a)
}
