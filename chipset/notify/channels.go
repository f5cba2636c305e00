package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// terminal rings the bell, and sends a notification with OSC 9, which other terminals ignore.
func terminal(w io.Writer, n Notice) error {
	_, err := io.WriteString(w, "\x1b]9;"+n.Title+": "+n.Text+"\x1b\\\a")
	return err
}

// desktop returns the command that shows a notice on the desktop of an operating system.
func desktop(system string, n Notice) []string {
	if system == "darwin" {
		return []string{"osascript", "-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run", n.Title, n.Text}
	}
	return []string{"notify-send", "--app-name=chipset", "--", n.Title, html.EscapeString(n.Text)} // the text may hold markup
}

// maxAnswer is how much of the answer of a command or a server is kept, in bytes.
const maxAnswer = 200

// execute runs a command with the person's own environment, without a shell. When ctx ends, its whole process group does.
func execute(ctx context.Context, dir string, argv []string, stdin []byte) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	said := &beginning{}
	cmd.Stderr = said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the rig
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a daemon that it started may keep its standard error open
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", argv[0], context.Cause(ctx))
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	}
	return fmt.Errorf("%s: %w %s", argv[0], err, said.text)
}

// beginning keeps the first bytes that are written to it.
type beginning struct{ text []byte }

func (b *beginning) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), maxAnswer-len(b.text))]...)
	return len(p), nil
}

// webhook posts the JSON of a notice. Errors don't name the address, which may be a secret.
func webhook(ctx context.Context, client *http.Client, address string, n Notice) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(n.JSON))
	if err != nil {
		return errors.New("its address is invalid")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "chipset")
	// ntfy takes its message from the JSON.
	req.Header.Set("X-Template", "yes")
	req.Header.Set("X-Title", "{{.title}}")
	req.Header.Set("X-Message", "{{.text}}")
	resp, err := client.Do(req)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // without it the status must do
		return fmt.Errorf("%s %s", resp.Status, strings.TrimSpace(string(answer)))
	}
	return nil
}

var errElsewhere = errors.New("it redirects to another host")

// sameHost lets a client follow only redirects of the same request to the same host.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case req.URL.Host != first.URL.Host || req.URL.Scheme != first.URL.Scheme:
		return errElsewhere
	case req.Method != first.Method || len(via) > 3:
		return http.ErrUseLastResponse
	}
	return nil
}

// desktopOf shows a notice on this system's desktop.
func desktopOf(ctx context.Context, dir string, n Notice) error {
	return execute(ctx, dir, desktop(runtime.GOOS, n), nil)
}
