package notify

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
)

const (
	// sendTimeout bounds one delivery.
	sendTimeout = 10 * time.Second
	// closeTimeout is how long Close waits for deliveries in progress.
	closeTimeout = 3 * time.Second
	// maxQueued bounds the queue of one channel.
	maxQueued = 100
)

var (
	errTimeout = errors.New("it took too long")
	errFull    = errors.New("too many notices are waiting for it")
)

// Options are the options of a notifier.
type Options struct {
	// Dir is the working directory of commands.
	Dir string
	// Terminal is the terminal of this process, nil without one.
	Terminal io.Writer
	// Failed is called for the first of several failures of a channel in a row, by its goroutine or by Send.
	Failed func(channel string, err error)
	// Timeout bounds one delivery; 0 is ten seconds.
	Timeout time.Duration
}

// Notifier sends notices through the channels of a definition.
type Notifier struct {
	channels []*channel
	stop     context.CancelCauseFunc
	running  sync.WaitGroup
}

// channel is one way to reach the person.
type channel struct {
	name   string
	send   func(ctx context.Context, n Notice) error
	queue  chan Notice
	failed func(channel string, err error)

	mu      sync.Mutex
	failing bool
}

// New starts the channels of a definition. The caller closes the notifier.
func New(def *definition.Notify, o Options) *Notifier {
	ctx, stop := context.WithCancelCause(context.Background())
	t := &Notifier{stop: stop}
	if o.Timeout == 0 {
		o.Timeout = sendTimeout
	}
	add := func(is bool, name string, send func(ctx context.Context, n Notice) error) {
		if !is {
			return
		}
		c := &channel{name: name, send: send, queue: make(chan Notice, maxQueued), failed: o.Failed}
		t.channels = append(t.channels, c)
		t.running.Go(func() { c.run(ctx, o.Timeout) })
	}
	client := &http.Client{CheckRedirect: sameHost}
	add(def.Terminal && o.Terminal != nil, "terminal", func(_ context.Context, n Notice) error { return terminal(o.Terminal, n) })
	add(def.Desktop, "desktop", func(ctx context.Context, n Notice) error { return desktopOf(ctx, o.Dir, n) })
	add(len(def.Command) > 0, "command", func(ctx context.Context, n Notice) error { return execute(ctx, o.Dir, def.Command, n.JSON) })
	add(def.Webhook != "", "webhook", func(ctx context.Context, n Notice) error { return webhook(ctx, client, def.Webhook, n) })
	return t
}

// Send hands a notice to every channel. It does not wait; it is not called after Close.
func (t *Notifier) Send(n Notice) {
	for _, c := range t.channels {
		select {
		case c.queue <- n:
		default:
			c.note(errFull)
		}
	}
}

// Close ends the channels, after up to three seconds for deliveries in progress.
func (t *Notifier) Close() {
	for _, c := range t.channels {
		close(c.queue)
	}
	late := time.AfterFunc(closeTimeout, func() { t.stop(errors.New("the rig ends")) })
	defer late.Stop()
	done := make(chan struct{})
	go func() { t.running.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * closeTimeout): // a write to a blocked terminal can't be cancelled
	}
}

func (c *channel) run(ctx context.Context, timeout time.Duration) {
	for n := range c.queue {
		if ctx.Err() != nil {
			return
		}
		limited, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
		err := c.send(limited, n)
		if err != nil && limited.Err() != nil {
			err = context.Cause(limited)
		}
		cancel()
		c.note(err)
	}
}

// note reports the first of several failures in a row.
func (c *channel) note(err error) {
	c.mu.Lock()
	first := err != nil && !c.failing
	c.failing = err != nil
	c.mu.Unlock()
	if first {
		c.failed(c.name, err)
	}
}
