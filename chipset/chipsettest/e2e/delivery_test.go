package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
)

// TestDelivery: of mail of all sizes that comes while an agent works, the log says injected for exactly what the
// model was shown whole, and seen once it has answered.
func TestDelivery(t *testing.T) {
	for _, client := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(client, func(t *testing.T) { deliver(t, client) })
	}
}

func deliver(t *testing.T, client string) {
	hold, seen := make(chan struct{}), make(chan struct{})
	begin := shell("I begin.", "echo hello > greeting.txt; git add -A; git commit -qm greeting; echo STEP-0-DONE")
	begin.Hold, begin.Seen = hold, seen
	script := []agentclitest.Turn{begin}
	const steps = 14
	for i := range steps {
		script = append(script, after(fmt.Sprintf("STEP-%d-DONE", i), shell("On.", fmt.Sprintf("printf 'STEP-%%d-DONE' %d", i+1))))
	}
	script = append(script, after(fmt.Sprintf("STEP-%d-DONE", steps), shell("I report.", reports)),
		agentclitest.Turn{Say: "That was all.", Always: true})
	s := set(t, client, "full", "", script...)
	id := s.Chipset("work", "add", "Write the greeting", "-d", "Put ASSIGNED-TEXT into greeting.txt")
	bodies := map[string]string{} // by the names of the messages
	go func() {
		<-seen
		defer close(hold)
		for i, size := range []int{3000, 3000, 3000, 3000, 7000, 8600, 9500, 20_000, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50} {
			body := fmt.Sprintf("BEGIN-%d %s END-%d", i, strings.Repeat("words ", size/6), i)
			name, code := s.Try("mail", "send", "polecat-alpha", "--subject", fmt.Sprintf("letter %d", i), "--body", body, "--as", "mayor")
			if code != 0 {
				t.Errorf("mail send: %s", name)
			}
			bodies[strings.TrimSpace(name)] = body
		}
		if out, code := s.Try("nudge", "send", "polecat-alpha", "--type", "sync_request", "-m", "NUDGE-TEXT", "--as", "mayor"); code != 0 {
			t.Errorf("nudge send: %s", out)
		}
	}()
	s.lands(id)
	all := s.model.Requests()
	text := all[len(all)-1].Text
	recorded := map[string]int{}
	for _, e := range s.events("mail.injected") {
		if strings.Contains(e.Text, " session ") {
			recorded[strings.TrimPrefix(e.Subject, "polecat-alpha/")]++
		}
	}
	answered := map[string]bool{}
	for _, e := range s.events("mail.seen") {
		answered[strings.TrimPrefix(e.Subject, "polecat-alpha/")] = true
	}
	total := 0
	for name, body := range bodies {
		whole := strings.Count(text, body)
		if whole != recorded[name] || len(body) < 7500 && whole != 1 {
			t.Errorf("%.12s… of %d bytes: the model was shown it whole %d times, recorded are %d", body, len(body), whole, recorded[name])
		}
		if (whole > 0) != answered[name] {
			t.Errorf("%.12s…: shown %d times, seen: %v", body, whole, answered[name])
		}
		total += whole
	}
	if total < 17 || !strings.Contains(text, "NUDGE-TEXT") || len(s.events("nudge.injected")) != 1 {
		t.Errorf("%d messages were shown, and the nudge: %v", total, strings.Contains(text, "NUDGE-TEXT"))
	}
}
