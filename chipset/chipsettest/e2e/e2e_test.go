// Package e2e_test runs whole rigs whose workers are the real clients of coding
// agents, talking to a scripted model on this machine. It needs no account and no
// network, only the clients: `make e2e` installs the pinned versions and says where
// they are in CHIPSET_E2E; without that everything here is skipped.
package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
)

// envBinary names the binary that is tried. Without it TestMain builds one.
const envBinary = "CHIPSET_E2E_BINARY"

func TestMain(m *testing.M) {
	if os.Getenv("CHIPSET_E2E") == "" || os.Getenv(envBinary) != "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "chipset-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary := filepath.Join(dir, "chipset")
	build := exec.Command("go", "build", "-o", binary, "github.com/gastown-chipset/chipset/cmd/chipset")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	code := 1
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
	} else if err := os.Setenv(envBinary, binary); err == nil {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// upTime bounds a rig that hangs. A client starts in seconds even on a busy machine.
const upTime = "300s"

// stage is a rig with one polecat whose worker is a real client, and its model.
type stage struct {
	*chipsettest.World
	t     *testing.T
	model *agentclitest.Model
	home  string
}

// set makes a stage. The definition says the rest of its worker section and more.
func set(t *testing.T, client, permissions, more string, script ...agentclitest.Turn) *stage {
	t.Helper()
	return setWith(t, []string{client}, definition(client, permissions, more), script...)
}

// setWith makes a stage with several clients.
func setWith(t *testing.T, clients []string, definition string, script ...agentclitest.Turn) *stage {
	t.Helper()
	bin := os.Getenv("CHIPSET_E2E")
	if bin == "" {
		t.Skip("CHIPSET_E2E names no folder with the clients: make e2e installs them")
	}
	for _, client := range clients {
		if _, err := os.Stat(filepath.Join(bin, client)); err != nil {
			t.Skipf("%s is not installed: %v", client, err)
		}
	}
	private(t)
	s := &stage{t: t, model: agentclitest.StartModel(t, script...)}
	home := t.TempDir()
	t.Cleanup(func() { awaitEnd(home) })
	s.home = home
	configure(t, home, s.model.URL)
	chipsettest.GivePersonToken(t, home)
	s.World = chipsettest.New(t, os.Getenv(envBinary), chipsettest.Options{Definition: definition, Env: []string{
		"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "IS_SANDBOX=1", "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=", "XDG_STATE_HOME=",
		"ANTHROPIC_BASE_URL=" + s.model.URL, "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_MAX_RETRIES=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
		"GOOGLE_GEMINI_BASE_URL=" + s.model.URL, "GEMINI_API_KEY=none", "GEMINI_MODEL=gemini-2.5-pro", "STAND_IN_KEY=none",
		"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1"}})
	t.Cleanup(func() {
		if t.Failed() {
			s.tell()
		}
	})
	return s
}

// awaitEnd waits until no process has a home, or nearly so: whom a killed rig asked for a version ends by itself.
func awaitEnd(home string) {
	const most = 20 * time.Second
	for deadline := time.Now().Add(most); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		environs, _ := filepath.Glob("/proc/[0-9]*/environ")
		if !slices.ContainsFunc(environs, func(path string) bool {
			environ, err := os.ReadFile(path)
			return err == nil && bytes.Contains(environ, []byte("HOME="+home+"\x00"))
		}) {
			return
		}
	}
}

// private makes the test's folders where only this user can write: Gemini CLI reads
// no settings below a folder that is everybody's, as /tmp is.
func private(t *testing.T) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "chipset-e2e-tmp")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
}

// configure points the clients that read a file to the stand-in.
func configure(t *testing.T, home, url string) {
	t.Helper()
	provider := map[string]any{"npm": "@ai-sdk/openai-compatible", "name": "stand-in", "options": map[string]any{"baseURL": url + "/v1", "apiKey": "none"},
		"models": map[string]any{"m": map[string]any{"name": "m", "limit": map[string]any{"context": 100000, "output": 4000}}}}
	opencode, err := json.Marshal(map[string]any{"model": "stand-in/m", "small_model": "stand-in/m", "autoupdate": false, "share": "disabled",
		"provider": map[string]any{"stand-in": provider}})
	if err != nil {
		t.Fatal(err)
	}
	codex := fmt.Sprintf("model_provider = \"stand-in\"\n[model_providers.stand-in]\nname = \"stand-in\"\nbase_url = \"%s/v1\"\nwire_api = \"responses\"\n"+
		"env_key = \"STAND_IN_KEY\"\nrequest_max_retries = 1\nstream_max_retries = 1\n", url)
	for name, text := range map[string]string{
		".codex/config.toml":             codex,
		".gemini/settings.json":          `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false,"maxAttempts":2}}`,
		".config/opencode/opencode.json": string(opencode),
		// What it would ask npm for at each start, and wait for, is there.
		".config/opencode/package.json":      `{"dependencies":{"@opencode-ai/plugin":"*"}}`,
		".config/opencode/package-lock.json": `{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"*"}}}}`,
		".config/opencode/node_modules/none": "",
	} {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func definition(client, permissions, more string) string {
	return fmt.Sprintf(`agents:
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: polecat-pool, role: polecat, count: 1}
rig: {name: e2e, bead_prefix: ee}
gupp: {limits: {max_attempts_per_bead: 1}}
worker: {default: %s, permissions: %s%s}
merge: {target: main, test: "true"}
allow: {env: [STAND_IN_KEY]}
`, client, permissions, more)
}

// add makes the one bead, and mail that waits for its worker.
func (s *stage) add() string {
	s.t.Helper()
	id := s.Chipset("work", "add", "Write the greeting", "-d", "Put ASSIGNED-TEXT into greeting.txt")
	s.Chipset("mail", "send", "polecat-alpha", "--subject", "before you start", "--body", "MAIL-BEFORE")
	return id
}

// lands lets the rig run until the bead has landed with the greeting.
func (s *stage) lands(id string) {
	s.t.Helper()
	out, code := s.Try("up", "--until-idle", "--timeout", upTime)
	if b := s.bead(id); code != 0 || b.Status != bead.Merged {
		s.t.Fatalf("up: exit %d, %s is %s: %s\n%s", code, id, b.Status, b.CloseReason, out)
	}
	if got := s.Git("show", "main:greeting.txt"); got != "hello" {
		s.t.Errorf("landed with %q", got)
	}
}

// blocks lets the rig run until the bead waits for a person, and returns why.
func (s *stage) blocks(id string) string {
	s.t.Helper()
	out, code := s.Try("up", "--until-idle", "--timeout", upTime)
	b := s.bead(id)
	if code != 7 || b.Status != bead.Blocked {
		s.t.Fatalf("up: exit %d, %s is %s\n%s", code, id, b.Status, out)
	}
	return b.CloseReason + "\n" + strings.Join(b.ReworkNotes, "\n")
}

func (s *stage) bead(id string) bead.Bead {
	s.t.Helper()
	for _, b := range s.Beads() {
		if string(b.ID) == id {
			return b
		}
	}
	s.t.Fatalf("no bead %s", id)
	return bead.Bead{}
}

// events returns those of one type.
func (s *stage) events(kind string) []event.Event {
	s.t.Helper()
	var found []event.Event
	for _, line := range strings.Split(s.Chipset("log", "--json", "--type", kind), "\n") {
		if line == "" {
			continue
		}
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.t.Fatalf("log: %v in %q", err, line)
		}
		found = append(found, e)
	}
	return found
}

// request is the nth request that the script answered.
func (s *stage) request(n int) *agentclitest.Request {
	s.t.Helper()
	all := s.model.Requests()
	if n >= len(all) {
		s.t.Fatalf("the model was asked %d times, want more than %d", len(all), n)
	}
	return &all[n]
}

// tell shows what went on, after a failure.
func (s *stage) tell() {
	for i, r := range s.model.Requests() {
		s.t.Logf("request %d, what is new in it:\n%s", i, r.Last)
	}
	out, _ := s.Try("log")
	s.t.Logf("%s", out)
	log := s.transcripts()
	s.t.Logf("the transcripts end with\n%s", log[max(0, len(log)-8000):])
}

// transcripts are what the clients of all sessions have printed.
func (s *stage) transcripts() string {
	logs, err := filepath.Glob(filepath.Join(s.Dir, ".chipset/logs/ses-*.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range logs {
		data, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}
