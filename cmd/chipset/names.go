package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// nameKind is what an argument or the value of a flag names, by its placeholder in the usage of a
// command.
type nameKind string

const (
	namesBead    nameKind = "BEAD"
	namesAgent   nameKind = "AGENT"
	namesTo      nameKind = "TO" // an agent, or a group of them
	namesConvoy  nameKind = "CONVOY"
	namesRequest nameKind = "MR"
	namesMessage nameKind = "MESSAGE"
	namesNeed    nameKind = "NUMBER"
)

// argKinds returns what the argument at a position may name, by the usage of its command.
func argKinds(cmd *cobra.Command, place int) []nameKind {
	var kinds []nameKind
	for i, word := range strings.Fields(cmd.Use)[1:] {
		word = strings.Trim(word, "[]")
		if strings.HasPrefix(word, "-") {
			break
		}
		plain, repeats := strings.CutSuffix(word, "…")
		if kinds = nil; i == place || repeats && i < place {
			for kind := range strings.SplitSeq(plain, "|") {
				kinds = append(kinds, nameKind(kind))
			}
			return kinds
		}
	}
	return nil
}

// flagKind returns what the value of a flag names.
func flagKind(f *pflag.Flag) nameKind {
	name, _ := pflag.UnquoteUsage(f)
	return nameKind(strings.ToUpper(name))
}

// expandNames completes abbreviated IDs and names on a command line. An ambiguous one is an error
// that lists the candidates. In an agent's session nothing is completed.
func (a *app) expandNames(cmd *cobra.Command, args []string) error {
	if a.inSession() {
		return nil
	}
	err := a.checkSpeaker(cmd)
	for i := range args {
		if err == nil {
			args[i], err = a.expand(cmd, args[i], argKinds(cmd, i))
		}
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		kinds := []nameKind{flagKind(f)}
		list, several := f.Value.(pflag.SliceValue)
		switch {
		case err != nil:
		case several:
			values := list.GetSlice()
			for i := range values {
				if err == nil {
					values[i], err = a.expand(cmd, values[i], kinds)
				}
			}
			if err == nil {
				err = list.Replace(values)
			}
		default:
			var full string
			if full, err = a.expand(cmd, f.Value.String(), kinds); err == nil && full != f.Value.String() {
				err = f.Value.Set(full)
			}
		}
	})
	return err
}

// checkSpeaker returns an ErrNotFound if --as does not name an agent of the rig.
func (a *app) checkSpeaker(cmd *cobra.Command) error {
	if a.as == "" {
		return nil
	}
	r, err := a.openState(cmd.Context())
	if err != nil {
		return nil //nolint:nilerr // the command itself fails with it, where it needs a rig
	}
	if _, err = actor.Lookup(r, a.as); errors.Is(err, state.ErrBadID) {
		return usagef("--as: %v", err)
	}
	return err
}

// expand returns the only name that a text abbreviates, or the text itself if it is a whole name or
// fits none. If the rig can't be opened, the command itself reports that.
func (a *app) expand(cmd *cobra.Command, text string, kinds []nameKind) (string, error) {
	abbreviable := slices.ContainsFunc(kinds, func(k nameKind) bool {
		return k == namesBead || k == namesConvoy || k == namesRequest || k == namesMessage
	})
	if !abbreviable || text == "" || slices.Contains(kinds, namesNeed) && strings.Trim(text, "0123456789") == "" {
		return text, nil
	}
	r, err := a.openState(cmd.Context())
	if err != nil {
		return text, nil //nolint:nilerr // the command itself fails with it
	}
	if slices.Contains(kinds, namesAgent) {
		if _, err := actor.Lookup(r, text); err == nil {
			return text, nil
		}
	}
	if slices.ContainsFunc(kinds, func(k nameKind) bool { return k.isWhole(r, text) }) {
		return text, nil
	}
	var found []string
	for _, kind := range kinds {
		for _, name := range a.shortFor(cmd, r, kind, text) {
			if name == text || name == text+".json" {
				return text, nil
			}
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return text, nil
	case 1:
		return found[0], nil
	}
	slices.Sort(found)
	const most = 8
	shown := strings.Join(found[:min(len(found), most)], ", ")
	if len(found) > most {
		shown += fmt.Sprintf(" and %d more", len(found)-most)
	}
	return text, usagef("%q is ambiguous: %s", text, shown)
}

// folder returns the folder with the records of a kind, one file each, or "".
func (k nameKind) folder() state.Path {
	switch k {
	case namesBead:
		return bead.Dir
	case namesConvoy:
		return convoy.Dir
	case namesRequest:
		return mergequeue.Dir
	case namesMessage, namesAgent, namesTo, namesNeed:
	}
	return ""
}

// isWhole reports whether a text is the whole name of a record. It looks for the file, because
// listing 10,000 beads for each of 500 names takes seconds.
func (k nameKind) isWhole(r *rig.Rig, text string) bool {
	if k.folder() == "" {
		return false
	}
	found, err := r.Tree.Exists(k.folder().Join(text + ".json"))
	return err == nil && found
}

// shortFor returns the names of a kind that a text abbreviates: those that begin with it, or that
// contain it after a dash. Names of agents and numbers can't be abbreviated.
func (a *app) shortFor(cmd *cobra.Command, r *rig.Rig, kind nameKind, text string) []string {
	if kind == namesMessage {
		return a.messagesFor(cmd, r, text)
	}
	if kind.folder() == "" {
		return nil
	}
	return fitting(filesIn(r, kind.folder()), text)
}

// messagesFor returns the messages that a text abbreviates, by the beginning of their name or of the
// time in it: those in the reader's own mailbox, else, for the person, in any.
func (a *app) messagesFor(cmd *cobra.Command, r *rig.Rig, text string) []string {
	box, name, named := strings.Cut(text, "/")
	var boxes []string
	mailbox := cmd.Flags().Lookup("mailbox")
	switch {
	case named:
		boxes, text = []string{box}, name
	case mailbox != nil && mailbox.Changed:
		boxes = []string{mailbox.Value.String()}
	default:
		me, err := a.identity(r)
		if err != nil {
			return nil
		}
		boxes = []string{string(me)}
		if found := messagesIn(r, boxes[0], text); len(found) > 0 || me != state.Human {
			return found
		}
		boxes = namesIn(r, mail.Dir)
	}
	var found []string
	for _, box := range boxes {
		for _, name := range messagesIn(r, box, text) {
			if named {
				name = box + "/" + name
			}
			found = append(found, name)
		}
	}
	return found
}

func messagesIn(r *rig.Rig, box, text string) []string {
	if _, err := state.ParseAgentID(box); err != nil {
		return nil
	}
	return slices.DeleteFunc(namesIn(r, mail.Dir.Join(box)), func(name string) bool {
		_, clock, _ := strings.Cut(name, "T")
		return !strings.HasSuffix(name, ".json") || !strings.HasPrefix(name, text) && !strings.HasPrefix(clock, text)
	})
}

func fitting(names []string, text string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, text) && !strings.Contains(name, "-"+text)
	})
}

// filesIn returns the names of the records in a folder.
func filesIn(r *rig.Rig, dir state.Path) []string {
	var list []string
	for _, file := range namesIn(r, dir) {
		if name, found := strings.CutSuffix(file, ".json"); found {
			list = append(list, name)
		}
	}
	return list
}

// namesIn returns the names in a folder of the state tree, without hidden ones; none if it can't be read.
func namesIn(r *rig.Rig, dir state.Path) []string {
	entries, err := os.ReadDir(r.Tree.Abs(dir))
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			list = append(list, e.Name())
		}
	}
	return list
}
