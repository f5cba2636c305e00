package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// pending is where the refs of unfinished commits are. The lock is held, so
// any other ref there was left by a process that died.
const pending = rig.SnapshotRefs

// step is the difference from one commit to the next.
type step struct {
	parent        git.Hash // "" for the first
	message       string
	at            time.Time
	files         map[string]version
	changed, gone []string
	// folders are its git trees, moved those of them that the parent does not have, whole that of the state tree.
	folders map[string][]entry
	moved   []string
	whole   git.Hash
}

// store makes the commit with all its content, on a ref of its own. Every object that the commit reaches is then
// whole, even if an earlier try that a power cut ended had stored it, and durable after the next sync. Errors:
// git.ErrTorn if something was torn; then the caller should try again.
func (c *Recorder) store(ctx context.Context, s *step) (git.Hash, git.Ref, error) {
	s.folders, s.whole = folders(s.files, c.reader.name)
	s.moved = movedFolders(s.folders, slices.Concat(s.changed, s.gone))
	known := make([]git.Hash, 0, len(s.changed)+len(s.moved))
	for _, p := range s.changed {
		known = append(known, s.files[p].id)
	}
	for _, dir := range s.moved {
		known = append(known, c.reader.name("tree", encoded(s.folders[dir])))
	}
	if _, err := c.rig.Git.RewriteObjects(ctx, known); err != nil {
		return "", "", err
	}
	temp := git.Ref(pending + state.Random(12))
	made, err := c.write(ctx, s, temp)
	if err != nil {
		return "", "", c.unstored(ctx, err)
	}
	// Only git knows the hashes of the commit itself and of the folders above the state tree.
	return made, temp, c.rig.Git.MakeDurable(ctx, made, s.parent)
}

// write makes git write folders, contents and commit.
func (c *Recorder) write(ctx context.Context, s *step, temp git.Ref) (git.Hash, error) {
	who, err := c.rig.Git.Committer(ctx, string(c.rig.Mayor()))
	if err != nil {
		return "", err
	}
	if err := c.writeTrees(ctx, s); err != nil {
		return "", err
	}
	var in bytes.Buffer
	in.WriteString("feature done\n")
	for _, p := range s.changed {
		data := s.files[p].data
		fmt.Fprintf(&in, "blob\ndata %d\n", len(data))
		in.Write(data)
		in.WriteByte('\n')
	}
	text := messageOf(s.message, len(s.changed)+len(s.gone), len(s.files))
	fmt.Fprintf(&in, "commit %s\nmark :1\ncommitter %s %d +0000\ndata %d\n%s\n", temp, who, s.at.Unix(), len(text), text)
	if s.parent != "" {
		fmt.Fprintf(&in, "from %s\n", s.parent)
	}
	fmt.Fprintf(&in, "M 040000 %s %s\n\nget-mark :1\ndone\n", s.whole, quote(c.root))
	out, err := c.rig.Git.Run(ctx, git.Command{Args: []string{"fast-import", "--quiet", "--force", "--done", "--date-format=raw"}, Stdin: in.Bytes()})
	if err != nil {
		return "", err
	}
	return git.ParseHash(strings.TrimSpace(string(out)))
}

// errSamePack is the failure of a fast-import whose pack a killed fast-import had already begun.
var errSamePack = errors.New("a pack of the same name was begun and not finished")

// unstored returns the error of a git that failed, joined with git.ErrTorn or errSamePack if that may be the cause.
func (c *Recorder) unstored(ctx context.Context, err error) error {
	var failed *git.Error
	if !errors.As(err, &failed) || failed.Cause != nil || ctx.Err() != nil {
		return err
	}
	torn, scanErr := c.rig.Git.RemoveTornObjects()
	if len(torn) > 0 {
		err = errors.Join(err, git.ErrTorn)
	}
	if strings.Contains(failed.Stderr, "cannot create keep file") {
		err = errors.Join(err, errSamePack)
	}
	return errors.Join(err, scanErr)
}

// messageOf returns the commit's message: the person's, or a count.
func messageOf(message string, changed, files int) string {
	message = strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(message, "\uFFFD"), "\x00", ""))
	if message == "" {
		message = fmt.Sprintf("Snapshot: %d of %d files changed", changed, files)
	}
	return message + "\n"
}

// quote returns a path as fast-import reads it.
func quote(p string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(p) + `"`
}
