package history

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// BenchmarkVerify proves a history of 2,000 snapshots, each with a new message, one that was
// read, a touched hook and three more events.
func BenchmarkVerify(b *testing.B) {
	const commits = 2000
	y := newYard(b)
	var in strings.Builder
	var log strings.Builder
	file := func(p, content string) {
		fmt.Fprintf(&in, "M 100644 inline .chipset/state/%s\ndata %d\n%s\n", p, len(content), content)
	}
	at := func(n int) state.Time { return state.At(y.now.Add(time.Duration(n) * time.Second)) }
	message := func(n int, read bool) (string, string) {
		return "mail/mayor/" + at(n).Stamp() + "-human.json", fmt.Sprintf(
			`{"body":"b","from":"human","priority":"normal","read":%v,"subject":"s","timestamp":%q,"to":"mayor","type":"coordination"}`, read, at(n))
	}
	for n := range commits {
		fmt.Fprintf(&in, "commit refs/heads/chipset/audit\ncommitter t <t@example.invalid> %d +0000\ndata 2\nm\n", 1772000000+n)
		file("rig.json", `{"format":1,"rig_id":"rig-1"}`)
		file(message(n, false))
		if n > 0 {
			file(message(n-1, true))
		}
		file("hooks/mayor.json", fmt.Sprintf(`{"agent_id":"mayor","gen":%d,"last_activity":%q,"status":"active","work_item":`+
			`{"assigned_at":%q,"assignment_id":"as-1","bead_id":"gt-abc12","session":"ses-1","title":"t"}}`, 3+n, at(n), at(0)))
		for range 3 {
			fmt.Fprintf(&log, "{\"agent\":\"mayor\",\"subject\":\"mayor\",\"text\":\"%40d\",\"time\":%q,\"type\":\"hook.touched\"}\n", n, at(n))
		}
		file("events/2026-03-05.jsonl", log.String())
	}
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = y.Dir, strings.NewReader(in.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("fast-import: %v\n%s", err, out)
	}
	for b.Loop() {
		if report := y.verify(""); report.Steps != commits-1 {
			b.Fatalf("%+v", report)
		}
	}
	b.ReportMetric(float64(commits)*float64(b.N)/b.Elapsed().Seconds(), "snapshots/s")
}
