package history

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// Newest returns the newest snapshot on the audit branch of a repository, for a rig whose
// tree is gone. Errors: *state.Unknown if there is no branch, *state.Corruption for a
// snapshot without rig.json.
func Newest(ctx context.Context, repo *git.Repo, branch git.Branch) (Entry, rig.Snapshot, error) {
	tip, found, err := repo.ResolveCommit(ctx, string(branch.Ref()))
	if err == nil && !found {
		err = &state.Unknown{Kind: "history", Name: string(branch)}
	}
	if err != nil {
		return Entry{}, rig.Snapshot{}, err
	}
	commits, err := repo.Log(ctx, "", tip, 1)
	if err != nil || len(commits) == 0 {
		return Entry{}, rig.Snapshot{}, err
	}
	s, err := contents(ctx, repo, tip)
	return entryOf(commits[0]), s, err
}

// contents reads the files of a snapshot.
func contents(ctx context.Context, repo *git.Repo, commit git.Hash) (rig.Snapshot, error) {
	var s rig.Snapshot
	const root = rig.DirName + "/"
	packed, err := repo.Run(ctx, git.Command{Read: true, Config: []string{"core.autocrlf=false", "core.eol=lf"},
		Args: []string{"archive", "--format=tar", string(commit), "--", root + string(state.StateDir)}})
	if err != nil {
		return s, err
	}
	files := tar.NewReader(bytes.NewReader(packed))
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s, fmt.Errorf("snapshot %s: %w", commit, err)
		}
		name, below := strings.CutPrefix(h.Name, root)
		if h.Typeflag != tar.TypeReg || !below {
			continue
		}
		data, err := io.ReadAll(files)
		if err != nil {
			return s, fmt.Errorf("snapshot %s: %s: %w", commit, h.Name, err)
		}
		if name != rig.IdentityFile {
			s.Files = append(s.Files, state.NewFile{Path: state.Path(name), Data: data})
			continue
		}
		var id state.Identity
		if err := json.Unmarshal(data, &id); err != nil {
			return s, &state.Corruption{Path: h.Name, Reason: err.Error()}
		}
		s.Rig = id.RigID
	}
	if s.Rig == "" {
		return s, &state.Corruption{Path: root + rig.IdentityFile, Reason: "it is not in the snapshot " + string(commit)}
	}
	return s, nil
}
