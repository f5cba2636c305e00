package chipsettest_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
)

// boxActs are what the system stops in a sandbox, and nothing does without one.
func boxActs() []speechAct {
	var acts []speechAct
	for _, act := range [][2]string{
		{"it writes into the person's checkout", `echo x > "$SIEGE/x"`},
		{"it changes a file of the person's checkout", `echo x >> "$SIEGE/person.txt"`},
		{"it changes git's configuration", "git config alias.x '!x'"},
		{"it leaves a hook of git", `echo x > "$(git rev-parse --git-common-dir)/hooks/post-commit"`},
		{"it excludes files of the person", `echo x >> "$(git rev-parse --git-common-dir)/info/exclude"`},
		{"it moves the target", `git update-ref refs/heads/main "$(git commit-tree -m x "HEAD^{tree}")"`},
		{"it drops the person's stash", "git stash drop"},
		{"it removes the person's stash by its file", `rm "$(git rev-parse --git-common-dir)/refs/stash"`},
		{"it replaces a commit", "git replace HEAD HEAD^{tree}"},
		{"it makes a branch of the person's", "git branch x"},
		{"it writes a bead", `echo x > "$SIEGE/.chipset/state/beads/sg-xxxxx.json"`},
		{"it writes mail", `echo x > "$SIEGE/.chipset/state/mail/mayor/x"`},
		{"it reads the rig's state", `cat "$SIEGE/.chipset/state/rig.json"`},
		{"it lists transcripts", `cat "$SIEGE"/.chipset/logs/*/*`},
		{"it writes into another worktree", `mkdir "$SIEGE/.chipset/worktrees/x"`},
		{"it reads a key", `cat "$HOME/.ssh/id"`},
		{"it reads a key through /proc", `cat "/proc/self/root$HOME/.ssh/id"`},
		{"it reads a key that it links to", `ln -s "$HOME/.ssh/id" id; cat id`},
		{"it reads the person's token", `cat "$HOME/.config/chipset/person-token"`},
		{"it reads the person's variables", "cat .env || cat \"$SIEGE/.env\""},
		{"it writes what a shell of the person runs", `echo x >> "$HOME/.profile"`},
		{"it writes configuration of git's for everybody", `git config --file "$HOME/.gitconfig" alias.x '!x'`},
		{"it writes to the folder of all", `touch /var/tmp/siege-x || touch /tmp/siege-x`},
		{"it reads the environment of its supervisor", `cat "/proc/$SUPERVISOR/environ"`},
		{"it signals its supervisor", `kill -0 "$SUPERVISOR"`},
		{"it makes a namespace", "unshare -U true"},
		{"it reads the environment of a thread of its supervisor", `cat /proc/"$SUPERVISOR"/task/*/environ`},
		{"it looks into the root of its supervisor", `ls "/proc/$SUPERVISOR/root/"`},
		{"it reads a descriptor of its supervisor", `readlink "/proc/$SUPERVISOR/fd/0"`},
		{"it maps the memory of its supervisor", `grep -q . "/proc/$SUPERVISOR/maps"`},
		{"it limits its supervisor to no time at all", `prlimit --pid "$SUPERVISOR" --core=0:0`},
		{"it signals a thread of its supervisor", `kill -0 "$(ls "/proc/$SUPERVISOR/task" | tail -n 1)"`},
		{"it opens a device", `if [ "$(id -u)" = 0 ]; then : < /dev/kmsg; else : < /dev/ptmx; fi`},
		{"it holds up who writes a file of the person", `perl -e 'open F, "<", "$ENV{SIEGE}/README.md"; exit !fcntl(F, 1024, 0)'`},
		{"it links git's notes on its branch to a file of the person", `ln -s "$HOME/.profile" "$(git rev-parse --git-common-dir)/logs/refs/heads/polecat/x"`},
		{"it links git's index to a file of the person", `d="$(git rev-parse --git-dir)"; ln -s "$HOME/.profile" "$d/x" && rm "$d/x"`},
		{"it moves a folder of links into git's", `mkdir d; ln -s "$HOME/.profile" d/x; perl -e 'exit !rename "d", "$ARGV[0]/objects/d"' "$(git rev-parse --git-common-dir)"`},
		{"it puts a pipe where git reads", `d="$(git rev-parse --git-dir)"; mkfifo "$d/x" && rm "$d/x"`},
		{"it writes with git into the person's repository", `GIT_DIR="$SIEGE/.git" git config x.y z`},
		{"it may gain privileges", "grep -q 'NoNewPrivs:.0' /proc/self/status"},
		{"it asks to be spared when memory is short", "echo 0 > /proc/self/oom_score_adj"},
		{"it has its core dumped", "ulimit -c 1"},
		{"it may have any number of processes", `test "$(ulimit -Hu)" = unlimited || ulimit -u 1000000`},
		{"it has its broker run a pager for it", `TERM=xterm script -qec "chipset work list" /dev/null; test -e "$HOME/paged"`},
		{"it has a library loaded into every program", "echo /x > /etc/ld.so.preload"},
		{"it leaves a job to cron", "echo x > /etc/cron.d/siege || echo x | crontab -"},
		{"it reads the kernel's memory", "head -c 1 /proc/kcore | grep -q ."},
		{"it runs a supervisor of its own", `printf '{"run":{"id":"x","argv":["/bin/sh","-c","echo x > \"%s/y\""],"dir":"/","env":[]}}' "$SIEGE" | env -u CHIPSET_BROKER chipset supervise; sleep 1; test -e "$SIEGE/y"`},
	} {
		acts = append(acts, speechAct{name: act[0], script: act[1], fails: true})
	}
	for i := range acts {
		if strings.HasPrefix(acts[i].name, "it signals") {
			acts[i].landlock = 6
		}
	}
	return append(acts, socketActs()...)
}

// socketActs are those of a worker that looks for somebody of the person's to do its work.
func socketActs() []speechAct {
	return []speechAct{
		{name: "it connects to an abstract socket", script: connect("unix:@siege$HOME"), fails: true, landlock: 6},
		{name: "it finds sockets by variables", script: `test -n "$SSH_AUTH_SOCK$DOCKER_HOST$DBUS_SESSION_BUS_ADDRESS"`, fails: true},
		{name: "it connects to docker's socket", script: connect("unix:$HOME/docker.sock"), fails: true},
		{name: "it connects to the session's D-Bus", script: connect("unix:$HOME/bus"), fails: true},
		{name: "it connects to the ssh-agent", script: connect("unix:$HOME/.ssh/agent"), fails: true},
		{name: "it links to docker's socket", script: `ln -s "$HOME/docker.sock" s; ` + connect("unix:s"), fails: true},
		{name: "it finds a socket through /proc", script: connect("unix:/proc/self/root$HOME/docker.sock"), fails: true},
		{name: "it connects to a socket on a thread of its own", script: connect("swap:$HOME/docker.sock"), fails: true},
	}
}

// listenFor opens the sockets of socketActs.
func listenFor(t *testing.T, home string) {
	for _, name := range []string{"@siege" + home, home + "/docker.sock", home + "/bus", home + "/.ssh/agent"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", name)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close() // so a worker that can't connect is refused by the sandbox
	}
}

// layBox has one worker try what only a sandbox stops.
func layBox(t *testing.T, bin string) {
	home := t.TempDir()
	chipsettest.GivePersonToken(t, home)
	s := &siege{T: t, box: "auto"}
	s.World = chipsettest.New(t, bin, chipsettest.Options{Definition: s.definition(), Env: []string{"HOME=" + home,
		"PAGER=touch " + home + "/paged", "TERM=xterm", "SSH_AUTH_SOCK=" + home + "/.ssh/agent", "DOCKER_HOST=unix://" + home + "/docker.sock", "DBUS_SESSION_BUS_ADDRESS=unix:path=" + home + "/bus"}})
	if err := errors.Join(os.Mkdir(filepath.Join(home, ".ssh"), 0o700), os.WriteFile(filepath.Join(home, ".ssh", "id"), []byte("key"), 0o600)); err != nil {
		t.Fatal(err)
	}
	listenFor(t, home)
	s.Write(".env", "SECRET=x\n")
	s.Write("person.txt", "changed\n")
	s.Git("stash", "push", "-q")
	refs := s.Git("for-each-ref", "refs/stash", "refs/replace", "refs/heads/x")
	s.doActs(boxActs())
	if got := s.Git("for-each-ref", "refs/stash", "refs/replace", "refs/heads/x"); got != refs {
		t.Errorf("refs of the person are %q, and were %q", got, refs)
	}
	if got := s.Git("status", "--porcelain", "--untracked-files=no"); got != "" {
		t.Errorf("the checkout was changed: %s", got)
	}
}
