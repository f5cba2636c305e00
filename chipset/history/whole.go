package history

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
)

// contentsAreThere checks that the repository still has the content of every file of every snapshot.
// No other check reads what two snapshots have in common, or the first ones. A violation
// names the commit that added the file.
func (v *verifier) contentsAreThere(ctx context.Context) error {
	brought := map[git.Hash]*pair{} // by content
	paths := map[git.Hash]string{}
	var ids []git.Hash
	bring := func(p *pair, id git.Hash, file string) {
		if _, known := brought[id]; !known && id != "" {
			brought[id], paths[id] = p, file
			ids = append(ids, id)
		}
	}
	for _, c := range v.firsts() {
		p := &pair{commit: c, parent: &commit{}}
		files, err := v.filesOf(ctx, c)
		var failed *git.Error
		switch {
		case errors.As(err, &failed) && failed.Cause == nil:
			v.violation(p, "", "git can't read a folder of it: "+failed.Error())
		case err != nil:
			return err
		}
		for _, f := range files {
			bring(p, f.after, f.path)
		}
	}
	for _, p := range v.pairs {
		for _, c := range p.changes {
			bring(p, c.after, c.path)
		}
	}
	gone, err := v.repo.Unreadable(ctx, ids)
	for _, id := range gone {
		v.violation(brought[id], paths[id], fmt.Sprintf("its content %s is not in the repository any more, or torn", id.Short()))
	}
	return err
}

// firsts returns the snapshots without a predecessor.
func (v *verifier) firsts() []*commit {
	holds := map[git.Hash]bool{}
	var found []*commit
	for _, c := range v.commits {
		holds[c.hash] = c.tree != ""
		before := false
		for _, p := range c.parents {
			before = before || holds[p]
		}
		if c.tree != "" && !before {
			found = append(found, c)
		}
	}
	return found
}

// filesOf lists the files of a snapshot.
func (v *verifier) filesOf(ctx context.Context, c *commit) ([]change, error) {
	out, err := v.git(ctx, git.Command{Args: []string{"ls-tree", "-r", "-z", "--full-tree", string(c.tree)}})
	if err != nil {
		return nil, err
	}
	var files []change
	for record := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		meta, name, _ := strings.Cut(record, "\t")
		if parts := strings.Fields(meta); len(parts) == 3 && parts[1] == "blob" {
			files = append(files, change{path: name, after: git.Hash(parts[2])})
		}
	}
	return files, nil
}
