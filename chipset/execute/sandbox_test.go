package execute

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/process/proxy"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
	"github.com/gastown-chipset/chipset/state/permission"
	"github.com/gastown-chipset/chipset/state/retire"
)

// TestProfile: what a worker and a test may do, from the facts alone.
func TestProfile(t *testing.T) {
	t.Parallel()
	claude := clients.Named("claude")
	c := confined{level: sandbox.Auto, allow: definition.Allow{Read: []string{"~/.aws"}, Write: []string{"/srv/data"}},
		root: "/rig", git: "/rig/.git", worktree: "/rig/.chipset/worktrees/polecat-alpha", admin: "/rig/.git/worktrees/polecat-alpha", home: "/home/u",
		lookup: func(name string) string {
			return map[string]string{"CLAUDE_CONFIG_DIR": "/moved", "GOCACHE": "/gocache"}[name]
		},
		self: "/opt/chipset", temp: "/var/tmp/chipset-1/ses-1"}
	test := c.profile()
	c.client, c.show = &claude, []string{"/rig/.chipset/run/prompts/ses-1.txt"}
	worker := c.profile()

	for _, path := range []string{"/rig/.chipset/worktrees/polecat-alpha", "/gocache", "/home/u/go/pkg/mod", "/srv/data"} {
		if !slices.Contains(worker.Write, path) || !slices.Contains(test.Write, path) {
			t.Errorf("%s can't be changed by both", path)
		}
	}
	if path := "/moved/projects"; !slices.Contains(worker.Write, path) || slices.Contains(test.Write, path) {
		t.Errorf("%s must be changed by workers alone", path)
	}
	if worker.Objects != "/rig/.git/objects" || test.Objects != "" {
		t.Errorf("objects are made in %q by a worker, and in %q by a test", worker.Objects, test.Objects)
	}
	for _, path := range []string{"/rig/.git/refs/heads/polecat", "/rig/.git/worktrees/polecat-alpha"} {
		if !slices.Contains(worker.Plain, path) || slices.Contains(worker.Write, path) || slices.Contains(append(test.Plain, test.Write...), path) {
			t.Errorf("%s must be changed by workers alone, without links", path)
		}
	}
	for _, path := range slices.Concat(worker.Write, worker.Plain, test.Write, test.Plain) {
		for _, kept := range []string{"/rig/.chipset/state", "/rig/.chipset/run", "/rig/.chipset/chipset.yaml", "/rig/.git/config", "/rig/.git/hooks", "/rig/.git/objects/pack", "/rig/.git/objects/info",
			"/rig/.git/refs/heads/main", "/rig/.git/HEAD", "/rig/main.go", "/home/u/.profile", "/moved/settings.json", "/tmp"} {
			if path == kept || strings.HasPrefix(kept, strings.TrimSuffix(path, "/")+"/") || strings.HasPrefix(path, kept+"/") {
				t.Errorf("%s can be changed by %s", kept, path)
			}
		}
	}
	for _, path := range []string{"/home/u/.ssh", "/home/u/.codex", "/moved", "/rig/.chipset", "/rig/.env", "/var/tmp/chipset-1"} {
		if !slices.Contains(worker.Hide, path) || !slices.Contains(test.Hide, path) {
			t.Errorf("%s is not hidden", path)
		}
	}
	for _, path := range []string{"/moved", "/rig/.chipset/run/prompts/ses-1.txt", "/opt/chipset"} {
		if !slices.Contains(worker.Show, path) || slices.Contains(test.Show, path) {
			t.Errorf("%s must be shown to the worker alone", path)
		}
	}
	if test.Network != nil || worker.Network != nil {
		t.Error("the network is restricted although nobody wants that")
	}
	c.network = definition.Network{Restricted: true, Allow: []string{"registry.example.org"}}
	worker = c.profile()
	c.client = nil
	test = c.profile()
	for host, want := range map[string][2]bool{"registry.example.org": {true, true}, "api.anthropic.com": {true, false}, "api.openai.com": {false, false}} {
		if got := [2]bool{slices.Contains(worker.Network.Allow, host), slices.Contains(test.Network.Allow, host)}; got != want {
			t.Errorf("%s: a worker and a test may reach it: %v", host, got)
		}
	}
	if !slices.Contains(test.Show, "/home/u/.aws") || worker.Temp != "/var/tmp/chipset-1/ses-1" {
		t.Errorf("show %q, temporary folder %s", test.Show, worker.Temp)
	}
}

// TestWorkerInItsBox: a worker commits and reports in the narrowest box, and can do nothing to its rig with files.
func TestWorkerInItsBox(t *testing.T) {
	if kind, missing := sandbox.Kind(); missing != "" {
		t.Skipf("this machine has only %q: %s", kind, missing)
	}
	k := newKennel(t, "sandbox: require\n")
	k.rig.Def.Allow.Write = nil
	rec := k.sling(`root=$(dirname "$(git rev-parse --path-format=absolute --git-common-dir)")
for path in $(cd "$root" && find . -path ./.git/objects -prune -o -path ./.git/worktrees/polecat-alpha -prune -o \
  -path ./.chipset/worktrees/polecat-alpha -prune -o -path './.git/*/polecat' -prune -o -path './.git/logs/refs/heads/polecat' -prune -o \( -type f -o -type d \) -print); do
  if [ -d "$root/$path" ]; then (: > "$root/$path/new") 2> /dev/null && echo "new in $path"; else
    (: >> "$root/$path") 2> /dev/null && echo "$path"; fi
done > changed.txt
cat "$root/.chipset/chipset.yaml" "$root"/.chipset/state/hooks/* > read.txt 2> /dev/null || true
git -C "$TMPDIR" rev-parse --git-dir > outside.txt 2> /dev/null || true
git add -A && git commit -qm report && git log -1 --format=%s > committed.txt`)
	k.until("it is through", k.retired(rec.AssignmentID))
	if got := k.record(rec.AssignmentID); got.Outcome != retire.Done {
		t.Fatalf("%s: %s", got.Outcome, got.Reason)
	}
	branch := k.bead(rec.BeadID).Branch
	for name, want := range map[string]string{"changed.txt": "", "read.txt": "", "outside.txt": "", "committed.txt": "report"} {
		got := k.git("show", branch+":"+name)
		if name == "changed.txt" { // it writes to its own transcript anyway
			got = strings.TrimSpace(regexp.MustCompile(`(?m)^\./\.chipset/logs/ses-.*$`).ReplaceAllString(got, ""))
		}
		if got != want {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
	}
}

// The person is asked about each host that a command was refused, and told whose command it was.
func TestHostsAreAskedFor(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	k.dead()
	visits := []proxy.Visit{{Host: "a.example", Refused: 2}, {Host: "b.example", Refused: 1}, {Host: "c.example"}}
	w := &worker{assignment: "as-1", bead: "tt-abc12", session: deadSession, talk: newTalk(clients.Of(agentcli.Preset{Command: []string{"sh"}}))}
	k.p.describeExit(t.Context(), w, process.Exit{PID: 1, Done: true, Hosts: visits})
	if told := k.story("warning"); !slices.Equal(told, []string{"network.allow does not name a.example, b.example"}) {
		t.Errorf("told %q", told)
	}
	rules, _, err := k.rig.Permissions.All()
	k.fail(err)
	if len(rules) != 2 || rules[0].Reason != "the worker of tt-abc12" {
		t.Errorf("asked are %+v", rules)
	}
	k.spoilt(permission.Dir, func() {
		refused, err := askForHosts(t.Context(), k.rig, alpha, "a test", process.Exit{Hosts: visits})
		if err == nil || len(refused) != 2 {
			t.Errorf("%v, %v", refused, err)
		}
		k.p.describeExit(t.Context(), w, process.Exit{PID: 1, Done: true, Hosts: visits})
	})
	if last := k.said[len(k.said)-1]; !strings.HasPrefix(last, string(alpha)+": can't record the refused hosts: ") {
		t.Errorf("said %q", last)
	}
	// Who has had a session in hand and left it was not the worker: nothing counts of how it ended.
	w.preset.Prompt = agentcli.PromptScript
	k.p.describeExit(t.Context(), w, process.Exit{PID: 1, Done: true, Code: 3})
	if !w.exit.Script || !w.exit.Fault.IsZero() || len(k.story("warning")) != 1 {
		t.Errorf("%+v; told %q", w.exit, k.story("warning"))
	}
	k.p.describeExit(t.Context(), w, process.Exit{PID: 1, Done: true, Code: 3, Attended: true})
	if !w.exit.Lost || !w.exit.Attended || w.exit.Code != 0 {
		t.Errorf("%+v", w.exit)
	}
}
