package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
)

// webBoard is chipset board --web on a rig with nothing running.
type webBoard struct {
	*rigtest.Yard
	testing.TB
	dir, home string
	// listen is the address of the first start, which later ones take again.
	listen string
	server *exec.Cmd
}

// newWebBoard makes a rig and the home of a person. serve starts the board.
func newWebBoard(t testing.TB) *webBoard {
	t.Helper()
	t.Cleanup(gittest.Isolate())
	b := &webBoard{Yard: rigtest.NewYard(t), TB: t, home: t.TempDir()}
	b.Now, b.dir = time.Now(), b.Yard.Dir
	b.makePerson()
	return b
}

// makePerson puts the person's token into the home.
func (b *webBoard) makePerson() {
	b.Helper()
	token := filepath.Join(b.home, ".config", "chipset", "person-token")
	rigtest.Must(b, os.MkdirAll(filepath.Dir(token), 0o700))
	rigtest.Must(b, os.WriteFile(token, []byte("of the tests\n"), 0o600))
}

// command is a chipset command line of the person.
func (b *webBoard) command(args ...string) *exec.Cmd {
	cmd := exec.Command("chipset", append([]string{"--dir", b.dir}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+b.home, "XDG_CONFIG_HOME=", "CHIPSET_PERSON_TOKEN=of the tests", "CLAUDECODE=", "GIT_CONFIG_NOSYSTEM=1")
	return cmd
}

// chipset runs a command line, and returns what it prints.
func (b *webBoard) chipset(args ...string) string {
	b.Helper()
	out, err := b.command(args...).CombinedOutput()
	if err != nil {
		b.Fatalf("chipset %s: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// serve starts the board, at the address of the last start, and returns the address that opens it.
func (b *webBoard) serve() string {
	b.Helper()
	listen := b.listen
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	b.server = b.command("board", "--web", listen)
	out := &printed{found: make(chan string, 1)}
	b.server.Stdout, b.server.Stderr = out, out
	rigtest.Must(b, b.server.Start())
	server := b.server
	b.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	select {
	case url := <-out.found:
		b.listen = regexp.MustCompile(`[0-9.]+:[0-9]+`).FindString(url)
		return url
	case <-time.After(time.Minute):
		b.Fatalf("the board printed no address:\n%s", out)
		return ""
	}
}

// kill ends the board at once.
func (b *webBoard) kill() {
	b.Helper()
	rigtest.Must(b, b.server.Process.Kill())
	_ = b.server.Wait()
}

// printed is the output of the board. found has its first address.
type printed struct {
	mu    sync.Mutex
	text  strings.Builder
	found chan string
	done  bool
}

func (p *printed) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.Write(data)
	if url, _, whole := strings.Cut(p.text.String(), "\n"); whole && !p.done && strings.HasPrefix(url, "http") {
		p.done = true
		p.found <- url
	}
	return len(data), nil
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// tab is a page in a real browser.
type tab struct {
	testing.TB
	ctx  context.Context
	base string // the address of the board's folder
}

// newBrowser starts Chromium and returns its first tab. Without Chromium the test is skipped,
// but not on CI.
func newBrowser(t testing.TB) *tab {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		if os.Getenv("CHIPSET_CI") != "" {
			t.Fatal("Chromium is not installed")
		}
		t.Skip("Chromium is not installed: the web board is not tried in a browser")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(1280, 900), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("force-color-profile", "srgb"))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewContext(ctx)
	t.Cleanup(stop)
	return (&tab{TB: t, ctx: ctx}).begin()
}

// begin starts a tab. It takes itself for the one that the person looks at.
func (p *tab) begin() *tab {
	p.Helper()
	if _, err := chromedp.Call(p.ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		p.Fatal(err)
	}
	return p
}

// another opens a second tab of the same browser.
func (p *tab) another() *tab {
	p.Helper()
	ctx, cancel := chromedp.NewContext(p.ctx)
	p.Cleanup(cancel)
	return (&tab{p.TB, ctx, p.base}).begin()
}

func (p *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

// enter opens the board by the address that it has printed.
func (p *tab) enter(url string) {
	p.Helper()
	p.run(chromedp.Navigate(url))
	p.until(`document.documentElement.dataset.base`)
	p.base = eval[string](p, `location.origin + document.documentElement.dataset.base`)
	p.live()
}

// open opens a page of the board, and waits until it is live.
func (p *tab) open(path string) {
	p.Helper()
	p.run(chromedp.Navigate(p.base + path))
	p.live()
}

// live waits until the page follows the board.
func (p *tab) live() { p.Helper(); p.until(`document.documentElement.dataset.connected === "yes"`) }

// eval is the value of an expression of JavaScript; a promise is waited for.
func eval[T any](p *tab, js string) T {
	p.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T]("("+js+")", chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%s: %v", js, err)
	}
	return v
}

// firstPaint is when the page first drew something, in milliseconds since it was asked for.
func (p *tab) firstPaint() float64 {
	p.Helper()
	const paint = `performance.getEntriesByName("first-contentful-paint")`
	p.until(paint + `.length`)
	return eval[float64](p, paint+`[0].startTime`)
}

// until waits until an expression is true. A page may be left and another come meanwhile.
func (p *tab) until(js string) {
	p.Helper()
	deadline := time.Now().Add(time.Minute)
	look := fmt.Sprintf(`new Promise((ok) => { const end = Date.now() + 5000; const look = () => { let is = false; try { is = !!(%s); } catch {}
		if (is || Date.now() > end) ok(is); else setTimeout(look, 10); }; look(); })`, js)
	for {
		is, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](look, chromedp.EvalAwaitPromise))
		if err == nil && is {
			return
		}
		if time.Now().After(deadline) {
			page, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](`document.body.innerText`))
			p.Fatalf("never true: %s (%v)\n%s", js, err, page)
		}
	}
}

// keys types keys, one after the other, into whatever has the focus.
func (p *tab) keys(text string) {
	p.Helper()
	for _, r := range text {
		events := kb.Encode(r)
		down, up := *events[0], *events[len(events)-1]
		// A page that takes the key for itself also keeps its character from a field.
		if char := events[1]; char.Type == kb.KeyChar {
			down.Text, down.UnmodifiedText = char.Text, char.UnmodifiedText
		}
		for _, e := range []input.DispatchKeyEventParams{down, up} {
			if _, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, e); err != nil {
				p.Fatal(err)
			}
		}
	}
}

// said waits for the word about an act, and returns it.
func (p *tab) said() string {
	p.Helper()
	p.until(`document.querySelector("#toast").textContent`)
	return eval[string](p, `(() => { const t = document.querySelector("#toast"), s = t.className + "|" + t.textContent; t.textContent = ""; return s; })()`)
}
