package web

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

func TestMain(m *testing.M) { os.Exit(rigtest.Main(m)) }

// browser is a board that serves, and a client of it.
type browser struct {
	*rigtest.Yard
	t      *testing.T
	host   string
	folder string
	client *http.Client

	mu   sync.Mutex
	urls []string
	ran  [][]string
}

// open starts a board and exchanges its token.
func open(t *testing.T, token string) *browser {
	t.Helper()
	b := &browser{Yard: rigtest.NewYard(t), t: t}
	jar, err := cookiejar.New(nil)
	rigtest.Must(t, err)
	b.client = &http.Client{Jar: jar}
	told := make(chan string, 8)
	w, err := state.NewWatcher(b.Rig.Tree)
	rigtest.Must(t, err)
	t.Cleanup(func() { w.Close() })
	s, err := New(Options{Rig: b.Rig, Watcher: w, Token: token, Address: func(u string) { told <- u; b.note(u) },
		Run: func(_ context.Context, args []string) (string, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.ran = append(b.ran, args)
			return "did it", nil
		}})
	rigtest.Must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	rigtest.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); rigtest.Must(t, <-done) })
	b.host = l.Addr().String()
	res, text := b.send("GET", <-told, nil, nil)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("the token's address: %s %s", res.Status, text)
	}
	b.folder = regexp.MustCompile(`href="(/[^/"]+)/"`).FindStringSubmatch(text)[1]
	return b
}

func (b *browser) note(u string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.urls = append(b.urls, u)
}

// send sends a request as a browser would; headers with an empty value are left out.
func (b *browser) send(method, address string, form url.Values, headers map[string]string) (*http.Response, string) {
	b.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = "http://" + b.host + b.folder + address
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, address, strings.NewReader(form.Encode()))
	rigtest.Must(b.t, err)
	if method == "POST" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", "http://"+b.host)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
		if v == "" {
			req.Header.Del(k)
		}
		if k == "Host" {
			req.Host = v
		}
	}
	res, err := b.client.Do(req)
	rigtest.Must(b.t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	rigtest.Must(b.t, err)
	return res, string(data)
}

// page is the content of a page.
func (b *browser) page(path string) string {
	b.t.Helper()
	res, text := b.send("GET", path, nil, nil)
	if res.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %s\n%s", path, res.Status, text)
	}
	return text
}

// form are the fields of the form for an act on a page.
func (b *browser) form(path, name string) url.Values {
	b.t.Helper()
	for _, f := range regexp.MustCompile(`(?s)<form method="post".*?</form>`).FindAllString(b.page(path), -1) {
		fields := url.Values{}
		for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(f, -1) {
			fields.Set(m[1], m[2])
		}
		if fields.Get("act") == name {
			return fields
		}
	}
	b.t.Fatalf("%s offers no %s", path, name)
	return nil
}

// commands are those that were run.
func (b *browser) commands() [][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ran)
}

// TestOnlyThePersonGetsIn: what a stranger's request lacks, one thing at a time.
func TestOnlyThePersonGetsIn(t *testing.T) {
	b := open(t, "")
	b.PutBead("gt-one", bead.Open, nil)
	good := b.form("/bead/gt-one", "cancel")
	for name, c := range map[string]struct {
		method, path string
		form         url.Values
		headers      map[string]string
		stranger     bool
		want         int
	}{
		"its own page":              {"GET", "/", nil, nil, false, 200},
		"no cookie":                 {"GET", "/", nil, nil, true, 401},
		"no cookie for a file":      {"GET", "/static/x/board.js", nil, nil, true, 401},
		"another host":              {"GET", "/", nil, map[string]string{"Host": "board.example:80"}, false, 421},
		"a page of another site":    {"GET", "/", nil, map[string]string{"Sec-Fetch-Site": "cross-site"}, false, 403},
		"a page of another port":    {"GET", "/live", nil, map[string]string{"Sec-Fetch-Site": "same-site"}, false, 403},
		"a script of another site":  {"GET", "/", nil, map[string]string{"Origin": "http://localhost:3000"}, false, 403},
		"a form of another site":    {"POST", "/act", good, map[string]string{"Origin": "http://evil.example"}, false, 403},
		"a form without an origin":  {"POST", "/act", good, map[string]string{"Origin": ""}, false, 403},
		"a form of a null origin":   {"POST", "/act", good, map[string]string{"Origin": "null"}, false, 403},
		"a form without a token":    {"POST", "/act", url.Values{"act": {"cancel"}, "bead": {"gt-one"}}, nil, false, 403},
		"a form with a wrong token": {"POST", "/act", url.Values{"act": {"cancel"}, "bead": {"gt-one"}, "csrf": {"x"}}, nil, false, 403},
		"a change by GET":           {"GET", "/act?" + good.Encode(), nil, nil, false, 405},
		"another method":            {"PUT", "/act", good, nil, false, 405},
		"its own form":              {"POST", "/act", good, nil, false, 200},
	} {
		client := b.client
		if c.stranger {
			b.client = &http.Client{}
		}
		if res, text := b.send(c.method, c.path, c.form, c.headers); res.StatusCode != c.want {
			t.Errorf("%s: %s, not %d\n%s", name, res.Status, c.want, text)
		}
		b.client = client
	}
	if got := b.commands(); len(got) != 1 {
		t.Errorf("ran %q", got)
	}
}

// TestATokenWorksOnce: used again it opens nothing; the next one was told. The cookie is
// kept from scripts, from other sites and, by its path, from other servers of the machine.
func TestATokenWorksOnce(t *testing.T) {
	b := open(t, "")
	b.mu.Lock()
	urls := slices.Clone(b.urls)
	b.mu.Unlock()
	if len(urls) != 2 || urls[0] == urls[1] {
		t.Fatalf("told %q", urls)
	}
	b.client = &http.Client{}
	if res, _ := b.send("GET", urls[0], nil, nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("used again: %s", res.Status)
	}
	res, _ := b.send("GET", urls[1], nil, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
	if len(res.Cookies()) != 1 {
		t.Fatalf("the next one, from a chat: %s, %v", res.Status, res.Cookies())
	}
	c := res.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != b.folder+"/" || len(b.folder) < 16 {
		t.Errorf("cookie %v", c)
	}
	if policy := res.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'self';") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %s", policy)
	}
}

// TestATokenOfAFileStays: it opens the board again and again, and its cookie outlives the server.
func TestATokenOfAFileStays(t *testing.T) {
	first, second := open(t, "a token of a file"), open(t, "a token of a file")
	if first.folder != second.folder {
		t.Errorf("folders %s and %s", first.folder, second.folder)
	}
	for range 2 {
		if res, _ := first.send("GET", "http://"+first.host+"/?token=a+token+of+a+file", nil, nil); res.StatusCode != http.StatusOK {
			t.Errorf("again: %s", res.Status)
		}
	}
}

// TestAKeyLasts: with the key of the person's a tab goes on after a restart. The token does not
// follow from it, nor the secrets of another key.
func TestAKeyLasts(t *testing.T) {
	one, again, other := newGuard("", "a key", nil), newGuard("", "a key", nil), newGuard("", "another", nil)
	if one.folder() != again.folder() || one.csrf() != again.csrf() || one.derived("session") != again.derived("session") {
		t.Error("the same key makes other secrets")
	}
	if one.current() == again.current() || one.csrf() == other.csrf() || one.folder() == other.folder() {
		t.Error("another board has the same secrets")
	}
}

const hostile = "<script>alert(1)</script>\u202eevil \x1b[31m\"'><img src=x onerror=alert(2)>"

// TestHostileTextStaysText: on every page, whatever an agent has written is text, without
// control characters and turned directions.
func TestHostileTextStaysText(t *testing.T) {
	b := open(t, "")
	work := b.PutBead("gt-work", bead.InProgress, func(x *bead.Bead) { x.Title, x.Description, x.CloseReason = hostile, hostile, hostile })
	b.Hang(work, hook.Active)
	me := &actor.Actor{Rig: b.Rig, ID: rigtest.Alpha, Session: "ses-1", Assignment: work.AssignmentID}
	n, _, err := me.RequestPermission(t.Context(), "Bash("+"<script>alert(3)</script>"+")", "<img src=x onerror=alert(4)>")
	rigtest.Must(t, err)
	b.Plant(state.LogDir.Join("ses-1.log"), hostile+"\n</pre></main>\n")
	for _, path := range []string{"/", "/work", "/work?q=" + url.QueryEscape(hostile), "/bead/gt-work", "/bead/gt-work/diff", "/bead/gt-work/transcript",
		"/agent/polecat-alpha", "/agent/polecat-alpha/transcript", "/mail", "/mail/" + string(n), "/graph", "/figures"} {
		text := b.page(path)
		for _, bad := range []string{"<script>", "<img", "\u202e", "\x1b", "</pre></main>\n</"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s holds %q", path, bad)
			}
		}
	}
	for _, kind := range []string{"/bead/", "/mail/"} {
		res, text := b.send("GET", kind+url.PathEscape("<script>"), nil, nil)
		if res.StatusCode == http.StatusNotFound && !strings.Contains(text, "<script>") {
			continue
		}
		t.Errorf("a name that is none: %s\n%s", res.Status, text)
	}
}

// TestActsRunCommands: each act is the command line of the same name; text can't become a flag.
func TestActsRunCommands(t *testing.T) {
	b := open(t, "")
	work := b.PutBead("gt-work", bead.InProgress, nil)
	b.Hang(work, hook.Active)
	me := &actor.Actor{Rig: b.Rig, ID: rigtest.Alpha, Session: "ses-1", Assignment: work.AssignmentID}
	n, _, err := me.RequestPermission(t.Context(), "Bash(npm publish)", "")
	rigtest.Must(t, err)
	b.PutBead("gt-open", bead.Open, nil)
	b.PutBead("gt-stuck", bead.Blocked, func(x *bead.Bead) { x.CloseReason = "which database?" })
	for _, c := range []struct{ path, act, text, want string }{
		{"/", "approve", "", "approve 1"},
		{"/", "deny", "--remember", "deny 1 --reason=--remember"},
		{"/", "answer", "-x", "answer -- 2 -x"},
		{"/bead/gt-stuck", "reopen", "", "reopen gt-stuck"},
		{"/bead/gt-open", "priority", "P1", "work edit gt-open --priority=P1"},
		{"/bead/gt-open", "cancel", "", "work cancel gt-open"},
		{"/bead/gt-work", "stop", "", "unsling gt-work"},
		{"/agent/polecat-alpha", "nudge", "look", "nudge send polecat-alpha --type=sync_request --message=look"},
		{"/agent/polecat-alpha", "mail", "Hello\r\n\r\nbody\r\nmore", "mail send polecat-alpha --subject=Hello --body=body\nmore"},
		{"/mail/" + string(n), "reply", "yes", "mail reply " + string(n) + " --body=yes"},
		{"/mail/" + string(n), "read", "", "mail read " + string(n)},
	} {
		form := b.form(c.path, c.act)
		form.Set("text", c.text)
		res, text := b.send("POST", "/act", form, map[string]string{"Accept": "text/plain"})
		ran := b.commands()
		if res.StatusCode != http.StatusOK || text != "did it" || strings.Join(ran[len(ran)-1], " ") != c.want {
			t.Errorf("%s: %s %s, ran %q, not %s", c.act, res.Status, text, ran[max(0, len(ran)-1):], c.want)
		}
	}
}

// TestNamesHoldWhatIsSeen: the name of a button is its text, for those who say what they see;
// and what waits says for how long.
func TestNamesHoldWhatIsSeen(t *testing.T) {
	b := open(t, "")
	b.PutBead("gt-stuck", bead.Blocked, nil)
	text := b.page("/")
	if !strings.Contains(text, `<button data-key="o">reopen<span class="hidden"> 1</span>`) || regexp.MustCompile(`<button[^>]*aria-label`).MatchString(text) {
		t.Errorf("buttons of\n%s", text)
	}
	if !regexp.MustCompile(`<time datetime="[^"]+" data-lasts>since `).MatchString(text) {
		t.Errorf("times of\n%s", text)
	}
	if strings.Contains(b.page("/static/x/graph.js"), "aria-label") {
		t.Error("the name of a node hides its text")
	}
}

// TestABeadIsReadOnceASecond, however fast the rig changes: its page reads all records.
func TestABeadIsReadOnceASecond(t *testing.T) {
	b := open(t, "")
	b.PutBead("gt-one", bead.Open, nil)
	for path, want := range map[string]string{"/": `data-pace="50"`, "/bead/gt-one": `data-pace="1000"`, "/bead/gt-one/diff": `data-pace="1000"`} {
		if text := b.page(path); !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, path)
		}
	}
}

// TestAnActOnWhatIsGoneDoesNothing: in the other tab the person has answered already.
func TestAnActOnWhatIsGoneDoesNothing(t *testing.T) {
	b := open(t, "")
	b.PutBead("gt-stuck", bead.Blocked, nil)
	form := b.form("/", "answer")
	form.Set("text", "late")
	b.PutBead("gt-stuck", bead.Open, nil)
	if res, text := b.send("POST", "/act", form, nil); res.StatusCode != http.StatusConflict || !strings.Contains(text, "nothing waits for this any more") {
		t.Errorf("%s\n%s", res.Status, text)
	}
	form = b.form("/bead/gt-stuck", "cancel")
	form.Set("bead", "gt-nobody")
	if res, _ := b.send("POST", "/act", form, nil); res.StatusCode != http.StatusConflict {
		t.Errorf("a bead that is not there: %s", res.Status)
	}
	if got := b.commands(); len(got) != 0 {
		t.Errorf("ran %q", got)
	}
}

// TestChangesArePushed: after the first event, which names all parts, one names what changed.
func TestChangesArePushed(t *testing.T) {
	b := open(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+b.host+b.folder+"/live", http.NoBody)
	rigtest.Must(t, err)
	res, err := b.client.Do(req)
	rigtest.Must(t, err)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	next := func() string {
		for lines.Scan() {
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				return data
			}
		}
		t.Fatalf("the stream has ended: %v", lines.Err())
		return ""
	}
	if got := next(); got != "needs agents work queue convoys mail story spend health" {
		t.Errorf("first: %s", got)
	}
	b.page("/") // a first look changes all parts
	for next() != "needs agents work queue convoys mail story spend health" {
	}
	b.PutBead("gt-new", bead.Open, nil)
	for !slices.Contains(strings.Fields(next()), "work") {
	}
}

// TestATranscriptIsReadFromItsEnd: one of any size is a page of bounded size.
func TestATranscriptIsReadFromItsEnd(t *testing.T) {
	b := open(t, "")
	b.Hang(b.PutBead("gt-work", bead.InProgress, nil), hook.Active)
	b.Plant(state.LogDir.Join("ses-1.log"), strings.Repeat("old line\n", 1<<18)+strings.Repeat("x", 1<<16)+"\nlast words\n")
	text := b.page("/bead/gt-work/transcript")
	if !strings.Contains(text, "last words") || !strings.Contains(text, "only a part is shown") || len(text) > 4*view.TranscriptEnd {
		t.Errorf("%d bytes", len(text))
	}
}

// TestATranscriptIsReadable: what a client prints for machines is shown as a person reads it.
func TestATranscriptIsReadable(t *testing.T) {
	b := open(t, "")
	b.Hang(b.PutBead("gt-work", bead.InProgress, nil), hook.Active)
	b.Plant(state.LogDir.Join("ses-1.log"), `{"type":"assistant","session_id":"s","message":{"content":[{"type":"text","text":"the first\nthe second"}]}}`+"\n{\"type\":\"half")
	for _, path := range []string{"/bead/gt-work/transcript", "/agent/polecat-alpha/transcript"} {
		if text := b.page(path); !strings.Contains(text, "<span>  the second\n</span>") || strings.Contains(text, "session_id") || strings.Contains(text, "half") {
			t.Errorf("%s:\n%s", path, text)
		}
	}
}

// TestARunningBeadHasADiff: what is changed by now in its worktree, committed or not.
func TestARunningBeadHasADiff(t *testing.T) {
	b := open(t, "")
	work := b.PutBead("gt-work", bead.InProgress, nil)
	if text := b.page("/bead/gt-work/diff"); !strings.Contains(text, "Nothing has been changed yet.") {
		t.Errorf("before there is a worktree:\n%s", text)
	}
	dir := b.Rig.Worktree(work.Assignee)
	b.RunGit("worktree", "add", "-q", "--detach", dir, "main")
	b.Must(os.WriteFile(filepath.Join(dir, "new.txt"), []byte("by now\n"), 0o644))
	b.RunGit("-C", dir, "add", "new.txt")
	if text := b.page("/bead/gt-work/diff"); !strings.Contains(text, `<span class="add">&#43;by now`) {
		t.Errorf("no change in\n%s", text)
	}
}

// TestManyBeadsAreUsable: the board lists what is near its end, the work comes in
// pages, and the graph is bounded.
func TestManyBeadsAreUsable(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of files")
	}
	b := open(t, "")
	for i := range 1500 {
		b.PutBead(state.BeadID("gt-"+string(rune('a'+i/676%26))+string(rune('a'+i/26%26))+string(rune('a'+i%26))+"x"), bead.Open, nil)
	}
	b.PutBead("gt-near", bead.InProgress, nil)
	board := b.page("/")
	if !strings.Contains(board, "gt-near") || len(board) > 150_000 {
		t.Errorf("the board has %d bytes", len(board))
	}
	if text := b.page("/work?q=gt-near"); !strings.Contains(text, "1 bead") {
		t.Error("it can't be found")
	}
	if text := b.page("/work?page=99"); !strings.Contains(text, "from 1400 to 1501") {
		t.Error("no last page")
	}
	if text := b.page("/graph/graph.json"); !strings.Contains(text, `"hidden":901`) {
		t.Error("the graph is not bounded")
	}
}

// A board at another address of this machine answers there.
func TestHostsOfLoopback(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
		if hosts := hostsOf(&net.TCPAddr{IP: net.ParseIP(ip)}); !slices.Contains(hosts, ip) || !slices.Contains(hosts, "localhost") {
			t.Errorf("%s: %q", ip, hosts)
		}
	}
}

// Who is refused holds no connection open, not even with a body that never comes.
func TestRefusedEndsTheConnection(t *testing.T) {
	b := open(t, "")
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx",
		"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", b.host)
		rigtest.Must(t, err)
		defer conn.Close()
		rigtest.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		_, err = io.WriteString(conn, request)
		rigtest.Must(t, err)
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(answer), "HTTP/1.1 4") {
			t.Errorf("%q: %q, %v", request, answer, err)
		}
	}
}
