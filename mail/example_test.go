package mail_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// One agent writes to another, which reads the message and marks it read.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	check(err)
	defer os.RemoveAll(dir)
	tree, err := state.Create(filepath.Join(dir, ".chipset"))
	check(err)

	clock := func() time.Time { return time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC) }
	agents := agent.NewStore(tree, nil)
	_, err = agents.Register(ctx, "polecat-alpha", agent.Polecat, "example", nil, state.At(clock()))
	check(err)

	sender := mail.NewSender(tree, agents, clock, 0)
	name, err := sender.Send(ctx, mail.Message{
		From: "mayor", To: "polecat-alpha", Type: mail.Coordination,
		Subject: "rebase first", Body: "main has moved",
	})
	check(err)
	fmt.Println("sent:", name) // it survives a power cut now

	box := mail.NewMailbox(tree, "polecat-alpha")
	unread, damaged, err := box.Unread()
	check(err)
	for _, m := range unread {
		fmt.Printf("%s: %s\n", m.From, m.Subject)
		check(box.MarkRead(ctx, m.Name))
	}
	unread, _, err = box.Unread()
	check(err)
	fmt.Println(len(unread), "unread,", len(damaged), "damaged")
	// Output:
	// sent: 2026-03-01T09-00-00.000000000Z-mayor.json
	// mayor: rebase first
	// 0 unread, 0 damaged
}

// A retry with the same ID delivers nothing and returns the first name.
func ExampleSender_Send_retry() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	check(err)
	defer os.RemoveAll(dir)
	tree, err := state.Create(filepath.Join(dir, ".chipset"))
	check(err)

	sender := mail.NewSender(tree, agent.NewStore(tree, nil), time.Now, 0)
	m := mail.Message{ID: "report-1", From: "mayor", To: state.Human, Type: mail.Coordination, Subject: "done"}
	first, err := sender.Send(ctx, m)
	check(err)
	second, err := sender.Send(ctx, m)
	check(err)
	fmt.Println(first == second)
	// Output: true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
