package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/process/proxy"
)

// Mode is how much of a sandbox somebody wants.
type Mode string

const (
	// Off runs commands as the user does.
	Off Mode = "off"
	// Auto takes what the machine has.
	Auto Mode = "auto"
	// Require runs no command that the machine can't restrict.
	Require Mode = "require"
)

// Describe says in a few words which sandbox is in force on this machine for a mode, and why parts of it are missing. restricted is
// true where commands may reach listed hosts only.
func Describe(mode Mode, restricted bool) string {
	if mode == Off {
		return "off: workers and tests can do what you can"
	}
	kind, missing := Kind()
	if restricted {
		if err := NetworkMissing(); err != nil {
			return "network.allow can't be enforced, nothing can run: " + err.Error()
		}
		kind = strings.TrimPrefix(kind+", a network of its own", ", ")
	}
	switch {
	case mode == Require && missing != "":
		return "required, nothing can run: " + missing
	case missing == "":
		return kind
	case kind == "":
		return "none, workers and tests can do what you can: " + missing
	}
	return kind + "; " + missing
}

// InForce reports whether commands are restricted on this machine for a mode.
func InForce(mode Mode) bool {
	kind, _ := Kind()
	return mode != Off && kind != ""
}

// Profile is what a command may do. All paths are absolute. A path that does not exist is ignored; a symbolic link stands for
// its target.
type Profile struct {
	Mode Mode `json:"mode"`
	// Write are the files and folders that may be read and changed, with all below them.
	Write []string `json:"write,omitempty"`
	// Plain are folders like those of Write, in which files and folders are made, and nothing else: no links, no pipes, and
	// no folder is moved there from elsewhere. A program outside that writes there writes nowhere else.
	Plain []string `json:"plain,omitempty"`
	// Objects is a folder of git's objects, "" for none. Its loose objects are made and changed as in the folders of Plain, each in its
	// folder of two hexadecimal digits, which must exist. Packs and the folder's info files can't be changed.
	Objects string `json:"objects,omitempty"`
	// Hide are those that can't be read, with all below them: paths, or patterns of filepath.Glob. Everything else can.
	Hide []string `json:"hide,omitempty"`
	// Show are exceptions below Hide.
	Show []string `json:"show,omitempty"`
	// Temp is a folder for temporary files, writable like those of Write. The supervisor makes it, passes it as TMPDIR, and removes it;
	// its parent exists.
	Temp string `json:"temp,omitempty"`
	// Tasks is how many processes and threads the command is meant to have; 0 is not known.
	Tasks int `json:"tasks,omitempty"`
	// Network says where it may connect to; nil is everywhere.
	Network *proxy.Rules `json:"network,omitempty"`
}

// readable returns the files and folders that can be read with all below them: all but what is hidden, which is
// p.Hide resolved. It names no folder that holds something hidden, but each entry of it. list returns the paths of the
// entries of a folder that are no symbolic links: what a link leads to is allowed, or not, where it is.
func (p *Profile) readable(hidden []string, list func(dir string) []string) []string {
	var all []string
	var add func(path string)
	add = func(path string) {
		if slices.Contains(hidden, path) {
			return
		}
		if !slices.ContainsFunc(hidden, func(h string) bool { return below(h, path) }) {
			all = append(all, path)
			return
		}
		for _, entry := range list(path) {
			add(entry)
		}
	}
	add("/")
	return append(all, resolved(p.Show)...)
}

// writable returns what may be changed. What lies below another entry is left out: who may change a folder could make
// an entry of it lead elsewhere.
func (p *Profile) writable() []string {
	all := resolved(append([]string{p.Temp}, p.Write...))
	return slices.DeleteFunc(slices.Clone(all), func(path string) bool {
		return slices.ContainsFunc(all, func(other string) bool { return below(path, other) })
	})
}

// resolved returns the paths that exist, each once and without symbolic links.
func resolved(paths []string) []string {
	var all []string
	list := rememberNames()
	for _, path := range paths {
		matches := []string{path}
		if _, err := os.Lstat(path); err != nil { // most caches and secrets are not there, and one look is enough for that
			matches = glob(path, list)
		}
		for _, match := range matches {
			target, err := filepath.EvalSymlinks(match)
			if err == nil && filepath.IsAbs(target) && !slices.Contains(all, target) {
				all = append(all, target)
			}
		}
	}
	return all
}

// glob returns the matches of a pattern of filepath.Glob, with the names in a folder from list; nothing for a plain path.
func glob(pattern string, list func(dir string) []string) []string {
	var matches []string
	dir, last := filepath.Split(pattern)
	switch {
	case !strings.ContainsAny(pattern, `*?[`):
	case strings.ContainsAny(dir, `*?[\`):
		matches, _ = filepath.Glob(pattern)
	default:
		for _, name := range list(dir) {
			if match, _ := filepath.Match(last, name); match {
				matches = append(matches, dir+name)
			}
		}
	}
	return matches
}

// rememberNames returns a function that lists the names in a folder, and reads each folder once.
func rememberNames() func(dir string) []string {
	known := map[string][]string{}
	return func(dir string) []string {
		names, found := known[dir]
		if !found {
			if file, err := os.Open(dir); err == nil {
				names, _ = file.Readdirnames(-1)
				_ = file.Close()
				slices.Sort(names)
			}
			known[dir] = names
		}
		return names
	}
}

// below reports whether a clean path lies below a folder.
func below(path, dir string) bool {
	return path != dir && strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// entries lists a folder, without symbolic links. A folder that can't be read has no entries.
func entries(dir string) []string {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var paths []string
	for _, entry := range found {
		if entry.Type()&os.ModeSymlink == 0 {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	return paths
}
