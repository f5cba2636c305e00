package chipsettest_test

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
	"github.com/gastown-chipset/chipset/state/bead"
)

// suite is a project of one language with its tests. They use what tests use: temporary files, sockets, a server,
// other processes, the caches of the tool.
type suite struct {
	tool  string
	files map[string]string
	run   string
}

func suites() []suite {
	return []suite{
		{tool: "go", run: "go vet ./... && go build -o /dev/null ./... && go test -count=1 ./...", files: map[string]string{
			"go.mod": "module example.org/work\n\ngo 1.21\n",
			"work_test.go": `package work

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestWork(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if _, err := http.Get(s.URL); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
`}},
		{tool: "npm", run: "npm install --offline --no-audit --no-fund && npm test && rm -rf node_modules", files: map[string]string{
			"package.json":     `{"name": "work", "version": "1.0.0", "scripts": {"test": "node --test"}, "dependencies": {"dep": "file:./dep"}}`,
			"dep/package.json": `{"name": "dep", "version": "1.0.0", "main": "index.js"}`,
			"dep/index.js":     "module.exports = 1\n",
			".gitignore":       "node_modules\n",
			"work.test.js": `const test = require('node:test'), fs = require('node:fs'), os = require('node:os'), path = require('node:path'), http = require('node:http')
const { execFileSync } = require('node:child_process'), { Worker } = require('node:worker_threads')
test('work', async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'x'))
  fs.writeFileSync(path.join(dir, 'file'), String(require('dep')))
  execFileSync(process.execPath, ['-e', ''])
  await new Promise(done => new Worker('', { eval: true }).on('exit', done))
  const server = http.createServer((q, r) => r.end('ok')).listen(0, '127.0.0.1')
  await new Promise(done => server.on('listening', done))
  await fetch('http://127.0.0.1:' + server.address().port)
  server.close()
  await new Promise(done => { const l = require('node:net').createServer().listen(path.join(dir, 's'), () => l.close(done)) })
})
`}},
		{tool: "python3", run: "python3 -m venv .venv && .venv/bin/pip --version && .venv/bin/python -m unittest -v", files: map[string]string{
			".gitignore": ".venv\n__pycache__\n",
			"test_work.py": `import multiprocessing, sqlite3, subprocess, sys, tempfile, unittest

def double(x):
    return 2 * x

class Work(unittest.TestCase):
    def test_work(self):
        with tempfile.TemporaryDirectory() as d:
            sqlite3.connect(d + "/db").execute("create table t (x)")
            subprocess.run([sys.executable, "-c", ""], check=True, cwd=d)
        with multiprocessing.Pool(2) as pool:
            self.assertEqual(pool.map(double, [1, 2]), [2, 4])
`}},
		{tool: "cargo", run: "cargo test --offline --quiet", files: map[string]string{
			"Cargo.toml": "[package]\nname = \"work\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
			".gitignore": "target\n",
			"src/lib.rs": `#[cfg(test)]
mod tests {
    #[test]
    fn work() {
        let file = std::env::temp_dir().join("file");
        std::fs::write(&file, "x").unwrap();
        let socket = std::os::unix::net::UnixListener::bind(std::env::temp_dir().join("s")).unwrap();
        drop(socket);
        assert!(std::process::Command::new("true").status().unwrap().success());
    }
}
`}},
	}
}

// TestRealWork: the test suites of Go, Node, Python and Rust run in the sandbox of a worker, and of the refinery, and
// find nothing missing, also where a tool was never used before.
func TestRealWork(t *testing.T) {
	if kind, missing := sandbox.Kind(); missing != "" {
		t.Skipf("this machine has only %q: %s", kind, missing)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	bin := chipsettest.Build(t)
	for _, s := range suites() {
		t.Run(s.tool, func(t *testing.T) {
			if _, err := exec.LookPath(s.tool); err != nil {
				t.Skipf("no %s on this machine: %v", s.tool, err)
			}
			// The home is empty. What takes minutes to make again is where it is.
			w := chipsettest.New(t, bin, chipsettest.Options{Polecats: 1, Test: "sh test.sh", Env: []string{
				"RUSTUP_HOME=" + filepath.Join(me.HomeDir, ".rustup"), "PYENV_ROOT=" + filepath.Join(me.HomeDir, ".pyenv"),
				"GOCACHE=" + goSetting(t, "GOCACHE"), "GOFLAGS=" + goSetting(t, "GOFLAGS"), "GOTOOLCHAIN=local"}})
			for name, text := range s.files {
				w.Write(name, text)
			}
			w.Write("test.sh", "set -e\n"+s.run+"\n")
			w.Git("add", "-A")
			w.Git("commit", "-q", "-m", "a project")
			id := w.Chipset("work", "add", "Run the tests", "-d", "sh test.sh && echo done > done.txt")
			out, code := w.Try("up", "--until-idle", "--timeout", "300s")
			logs, _ := filepath.Glob(filepath.Join(w.Dir, ".chipset/logs/*.log"))
			for _, name := range logs {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(string(text)) {
					if low := strings.ToLower(line); strings.Contains(low, "denied") || strings.Contains(low, "eacces") || strings.Contains(low, "not permitted") {
						t.Errorf("%s: %s", filepath.Base(name), line)
					}
				}
			}
			for _, b := range w.Beads() {
				if string(b.ID) == id && b.Status != bead.Merged {
					t.Errorf("exit %d, the bead is %s: %s\n%s", code, b.Status, b.CloseReason, out)
				}
			}
		})
	}
}

// goSetting returns a setting of the go command, "" where there is none.
func goSetting(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
