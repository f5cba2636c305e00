package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// In a folder of plain files a command makes files and folders, and nothing by which a program outside, which writes there later,
// would write elsewhere.
func TestBoxKeepsPlainFoldersPlain(t *testing.T) {
	needLandlock(t)
	tests := []struct {
		name, script string
		held         bool
	}{
		{"files", "echo x > $PLAIN/x && mkdir $PLAIN/d && mv $PLAIN/x $PLAIN/d/y && rm -r $PLAIN/d", false},
		{"a file that is moved in", `echo x > x && perl -e 'rename "x", "$ENV{PLAIN}/x" or die'`, false},
		{"a link", "ln -s / $PLAIN/link", true},
		{"a link that is moved in", `ln -s / link && perl -e 'rename "link", "$ENV{PLAIN}/link" or exit 1'`, true},
		{"a folder with a link", `mkdir d && ln -s / d/link && perl -e 'rename "d", "$ENV{PLAIN}/d" or exit 1'`, true},
		{"a folder for a folder", `mkdir d $PLAIN/d && ln -s / d/link && perl -e 'exit !(syscall(316, -100, "d", -100, "$ENV{PLAIN}/d", 2) == 0)'`, true},
		{"a pipe", "mkfifo $PLAIN/pipe", true},
		{"a hard link to what is hidden", "ln $SECRET/key $PLAIN/key", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			plain, secret := t.TempDir(), t.TempDir()
			if err := os.WriteFile(filepath.Join(secret, "key"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			spec := b.boxed(test.script)
			spec.Sandbox.Plain, spec.Sandbox.Hide = []string{plain}, []string{secret}
			spec.Env = append(spec.Env, "PLAIN="+plain, "SECRET="+secret)
			if exit := b.run(spec); (exit.Code != 0) != test.held {
				t.Errorf("exit %d: %s", exit.Code, b.log())
			}
		})
	}
}

// Of git's objects a command makes and changes loose ones, and no pack.
func TestBoxKeepsPacks(t *testing.T) {
	needLandlock(t)
	for script, held := range map[string]bool{
		"echo x > $OBJECTS/0a/tmp && ln $OBJECTS/0a/tmp $OBJECTS/0a/object && rm $OBJECTS/0a/tmp": false,
		"rm -r $OBJECTS/ff/old":                    false,
		"echo x > $OBJECTS/pack/pack-1.pack":       true,
		"rm $OBJECTS/pack/pack-0.pack":             true,
		"mv $OBJECTS/pack $OBJECTS/ff/":            true,
		"mv $OBJECTS/ff $OBJECTS/fe/":              true,
		"echo / > $OBJECTS/info/alternates":        true,
		"mkdir $OBJECTS/new":                       true,
		"ln $OBJECTS/pack/pack-0.pack $OBJECTS/ff": true,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			objects := t.TempDir()
			for _, dir := range []string{"0a", "fe", "ff/old", "info", "pack"} {
				if err := os.MkdirAll(filepath.Join(objects, dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(objects, "pack/pack-0.pack"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			spec := b.boxed(script)
			spec.Sandbox.Objects = objects
			spec.Env = append(spec.Env, "OBJECTS="+objects)
			if exit := b.run(spec); (exit.Code != 0) != held {
				t.Errorf("exit %d: %s", exit.Code, b.log())
			}
		})
	}
}

// A privileged user's command has System V shared memory of its own: what programs outside hold there it neither reads nor removes.
func TestBoxHasSharedMemoryOfItsOwn(t *testing.T) {
	needLandlock(t)
	if os.Getuid() != 0 {
		t.Skip("another user's command would need a user namespace")
	}
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	b := newBench(t)
	if exit := b.run(b.boxed("tail -n +2 /proc/sysvipc/shm")); exit.Code != 0 || strings.TrimSpace(b.log()) != "" {
		t.Errorf("exit %d: %s", exit.Code, b.log())
	}
}
