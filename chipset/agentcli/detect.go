package agentcli

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gastown-chipset/chipset/state/wording"
)

// Found is what a machine has of one client.
type Found struct {
	Name string `json:"name"`
	// Path is where it is installed, "" when it is not.
	Path    string `json:"path,omitempty"`
	Version string `json:"version,omitempty"`
	// Problem is why its version is not known.
	Problem string `json:"problem,omitempty"`
}

// Limits of asking a program for its version.
const (
	// DetectDeadline is how long one may take: some load a whole runtime first.
	DetectDeadline = 15 * time.Second
	maxAnswer      = 256 << 10
)

// Detect looks for every client's program in the PATH and asks those that are there
// for their version, all at once. It returns within the deadline, and what goes
// wrong with one client is its Problem and nobody else's.
func Detect(ctx context.Context, clients []Client, deadline time.Duration) []Found {
	found := make([]Found, len(clients))
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			found[i].Name = c.Preset.Name
			path, err := exec.LookPath(c.Preset.Command[0])
			if err != nil {
				return
			}
			found[i].Path = path
			if c.Preset.Prompt == PromptScript {
				return // a shell has no version that every shell would tell
			}
			version, err := askVersion(ctx, path, deadline)
			found[i].Version = version
			if err != nil {
				found[i].Problem = err.Error()
			}
		})
	}
	wg.Wait()
	return found
}

func askVersion(ctx context.Context, path string, deadline time.Duration) (string, error) {
	out, err := ask(ctx, path, []string{"--version"}, nil, deadline)
	if err != nil {
		return "", err
	}
	return versionIn(out), nil
}

// ask runs a program that shall tell something about itself, in a group of its own that is ended
// whole: a program that hangs leaves nothing behind. A nil environment is that of this process.
func ask(ctx context.Context, path string, args, environ []string, deadline time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	out := wording.Head{Most: maxAnswer}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Dir, cmd.Env = "/", environ
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	// A grandchild that left the group may hold the pipe open.
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", fmt.Errorf("no answer within %s", deadline)
	}
	if err != nil {
		return out.String(), fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return out.String(), nil
}

// versionIn is the first word that looks like a version, else the first line.
func versionIn(out string) string {
	for _, word := range strings.Fields(out) {
		word = strings.Trim(word, "(),;")
		digits := strings.TrimPrefix(word, "v")
		if digits != "" && digits[0] >= '0' && digits[0] <= '9' && strings.Contains(digits, ".") && !strings.ContainsAny(digits, "/:") {
			return Clip(digits)
		}
	}
	return Clip(wording.FirstLine(out))
}
