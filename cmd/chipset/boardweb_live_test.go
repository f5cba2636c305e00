package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
)

// shows is an expression: the page shows a text.
func shows(text string) string { return fmt.Sprintf("document.body.innerText.includes(%q)", text) }

// TestPagesStayLive: in two tabs, after a reload, and after the server was killed and started
// again. What the person has typed stays.
func TestPagesStayLive(t *testing.T) {
	b, one := newWebBoard(t), newBrowser(t)
	b.PutBead("gt-stuck", bead.Blocked, nil)
	one.enter(b.serve())
	two := one.another()
	two.open("/")
	added := b.chipset("work", "add", "Seen in both")
	for _, p := range []*tab{one, two} {
		p.until(shows("Seen in both"))
	}

	// What is typed stays while the page changes; answered in one tab, it goes in the other.
	one.keys("j")
	one.keys("r")
	one.until(`document.activeElement.tagName === "TEXTAREA"`)
	one.keys("half of an ans")
	b.chipset("work", "edit", added, "--title", "Another title")
	one.until(shows("Another title"))
	one.keys("wer")
	if got := eval[string](one, `document.activeElement.value`); got != "half of an answer" {
		t.Errorf("the answer is %q", got)
	}
	b.chipset("answer", "1", "of the command line")
	two.until(shows("Nothing waits for you."))
	one.keys("\t\r")
	if said := one.said(); !strings.Contains(said, "nothing waits for this any more") {
		t.Errorf("a late answer: %s", said)
	}

	// Loaded again in the middle, it goes on.
	one.run(chromedp.Reload())
	one.live()
	b.chipset("work", "edit", added, "--title", "After the reload")
	one.until(shows("After the reload"))

	// Killed and started again, both go on by themselves, and may act.
	b.kill()
	one.until(`!document.querySelector("#connection").hidden`)
	b.chipset("work", "edit", added, "--title", "While nobody serves")
	b.serve()
	for _, p := range []*tab{one, two} {
		p.until(shows("While nobody serves"))
		p.until(`document.querySelector("#connection").hidden`)
	}
	two.open("/bead/" + added)
	if said := two.press("main", "cancel", ""); strings.HasPrefix(said, "failed") {
		t.Errorf("after the restart: %s", said)
	}
	one.until(shows("Nothing is left to do") + " || !" + shows("While nobody serves"))
}

// stranger is a server of somebody else on this machine, with a page that attacks the board.
type stranger struct {
	address string
	mu      sync.Mutex
	cookies []string
}

func newStranger(t *testing.T, attack string) *stranger {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	rigtest.Must(t, err)
	s := &stranger{address: l.Addr().String()}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.cookies = append(s.cookies, r.Header.Values("Cookie")...)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, "<!doctype html><title>stranger</title><body><script>%s</script>", attack)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return s
}

// TestAHostilePageInTheNextTab tries what a page of another server of this machine can try. It
// knows the board's address and its form, which it could not. Nothing is read, nothing is done.
func TestAHostilePageInTheNextTab(t *testing.T) {
	b, one := newWebBoard(t), newBrowser(t)
	b.PutBead("gt-one", bead.Open, nil)
	one.enter(b.serve())
	one.open("/bead/gt-one")
	form := eval[string](one, `new URLSearchParams(new FormData([...document.querySelectorAll("form")].find((f) => f.elements.act && f.elements.act.value === "cancel"))).toString()`)
	evil := newStranger(t, fmt.Sprintf(`
	const base = %q, form = %q, read = [];
	const post = (mode, credentials) => fetch(base + "/act", {method: "POST", mode, credentials, body: new URLSearchParams(form)}).then((a) => a.text()).then((x) => x && read.push(x), () => {});
	const get = (path, mode) => fetch(base + path, {mode, credentials: "include"}).then((a) => a.text()).then((x) => x && read.push(x), () => {});
	const framed = new Promise((ok) => { const f = document.createElement("iframe"); f.name = "f"; f.onload = () => { try { if (f.contentDocument.body.innerText.includes("gt-one")) read.push("frame"); } catch {} ok(); }; f.src = base + "/"; document.body.append(f); });
	const sent = framed.then(() => new Promise((ok) => {
		const f = document.createElement("form"); f.method = "post"; f.action = base + "/act"; f.target = "f";
		for (const [k, v] of new URLSearchParams(form)) f.append(Object.assign(document.createElement("input"), {name: k, value: v}));
		document.body.append(f); document.querySelector("iframe").onload = ok; f.submit(); }));
	const live = new Promise((ok) => { const s = new EventSource(base + "/live", {withCredentials: true}); s.onmessage = s.onopen = () => { read.push("live"); ok(); }; s.onerror = () => { s.close(); ok(); }; });
	const image = new Promise((ok) => { const i = new Image(); i.onload = i.onerror = ok; i.src = base + "/act?" + form; });
	const script = new Promise((ok) => { const s = document.createElement("script"); s.onload = () => { read.push("script"); ok(); }; s.onerror = ok; s.src = base + "/graph/graph.json"; document.body.append(s); });
	navigator.sendBeacon(base + "/act", new URLSearchParams(form));
	window.tried = Promise.all([post("cors", "include"), post("no-cors", "include"), post("cors", "omit"), get("/", "cors"), get("/", "no-cors"), sent, live, image, script]).then(() => read.join("|"));
	`, one.base, form))
	for _, host := range []string{evil.address, strings.Replace(evil.address, "127.0.0.1", "localhost", 1)} {
		next := one.another()
		next.run(chromedp.Navigate("http://" + host + "/"))
		if got := eval[string](next, `window.tried`); got != "" {
			t.Errorf("from %s it has read %q", host, got)
		}
	}
	if got, err := b.Beads.Get("gt-one"); err != nil || got.Status != bead.Open {
		t.Errorf("the bead is %s, %v", got.Status, err)
	}
	if len(evil.cookies) > 0 {
		t.Errorf("the stranger was sent %q", evil.cookies)
	}

	// A name that was made to lead here is none of the board's.
	next := one.another()
	next.run(chromedp.Navigate(strings.Replace(one.base, "127.0.0.1", "board.localhost", 1) + "/"))
	next.until(shows("The board is not at this address."))
	if said := one.press("main", "cancel", ""); strings.HasPrefix(said, "failed") {
		t.Errorf("its own form: %s", said)
	}
}

// TestLargeRigsInABrowser: a thousand beads come at once and in few bytes, ten thousand stay
// usable, and a convoy of five hundred is a graph in which no two boxes overlap.
func TestLargeRigsInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of files")
	}
	b, page := newWebBoard(t), newBrowser(t)
	b.putMany(0, 1000)
	page.enter(b.serve())
	bytes := eval[int](page, sentBytes)
	t.Logf("1,000 beads: %d bytes, first paint after %.0f ms", bytes, page.firstPaint())
	if bytes > 250_000 {
		t.Errorf("the first page is %d bytes", bytes)
	}

	b.putMany(1000, 10_000)
	ids := make([]state.BeadID, 0, 500)
	for i := range 500 {
		id := state.BeadID(fmt.Sprintf("gt-c%03d", i))
		ids = append(ids, id)
		b.PutBead(id, bead.Open, func(x *bead.Bead) {
			x.ConvoyID = "cv-big"
			if i >= 20 {
				x.BlockedBy = []state.BeadID{ids[i-20], ids[i-20+i%7]}
			}
		})
	}
	b.Must(b.Convoys.Put("cv-big", convoy.Convoy{ID: "cv-big", Name: "five hundred", BeadIDs: ids, CreatedAt: b.At()}))
	for path, boxes := range map[string]int{"/convoy/cv-big": 500, "/graph": 600} {
		page.open(path)
		page.until(fmt.Sprintf(`document.querySelector("#graph").dataset.drawn === "%d"`, boxes))
		if n := eval[int](page, overlaps); n > 0 {
			t.Errorf("%s: %d boxes overlap", path, n)
		}
	}
	page.open("/work?q=b09999")
	page.until(shows("1 bead"))
	page.open("/")
	b.chipset("work", "add", "Seen among ten thousand", "--priority", "P1")
	page.until(shows("Seen among ten thousand"))
}

const (
	sentBytes = `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].reduce((n, e) => n + e.transferSize, 0)`
	// overlaps counts the boxes of a graph that lie over the next one in order of their places.
	overlaps = `(() => { const r = [...document.querySelectorAll("#graph a")].map((a) => a.transform.baseVal.consolidate().matrix).map((m) => [m.e, m.f]);
		let n = 0; r.forEach((a, i) => r.forEach((b, j) => { if (j > i && Math.abs(a[0] - b[0]) < 210 && Math.abs(a[1] - b[1]) < 40) n++; })); return n; })()`
)

// putMany puts beads with these numbers, half of them in chains.
func (b *webBoard) putMany(from, to int) {
	b.Helper()
	id := func(i int) state.BeadID { return state.BeadID(fmt.Sprintf("gt-b%05d", i)) }
	for i := from; i < to; i++ {
		b.PutBead(id(i), bead.Open, func(x *bead.Bead) {
			x.Title = fmt.Sprintf("A title of the usual length, number %d", i)
			if i%4 == 1 {
				x.BlockedBy = []state.BeadID{id(i - 1)}
			}
		})
	}
}
