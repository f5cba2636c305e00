package git

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// locateWithoutGit is locate without a process, for the plainest of repositories: dir is
// the root of the main worktree, its .git is a folder of this user's, and its
// configuration holds nothing that could say otherwise, or that git could refuse
// to read. Everything else git itself is asked.
func locateWithoutGit(dir string) (gitDir string, ok bool) {
	gitDir = filepath.Join(dir, ".git")
	for _, own := range []string{dir, gitDir} {
		info, err := os.Lstat(own)
		if err != nil || !info.IsDir() || !mine(info) {
			return "", false
		}
	}
	for name, want := range map[string]bool{"HEAD": true, "objects": true, "refs": true, "commondir": false, "config.worktree": false} {
		if _, err := os.Lstat(filepath.Join(gitDir, name)); (err == nil) != want {
			return "", false
		}
	}
	head, err := readPrefix(filepath.Join(gitDir, "HEAD"))
	if err != nil || !plainHead(head) {
		return "", false
	}
	config, err := readPrefix(filepath.Join(gitDir, "config"))
	return gitDir, err == nil && plainConfig(config)
}

// mine reports whether git would trust what belongs to the owner of a folder.
func mine(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// maxQuick bounds a file that is looked at without git, in bytes.
const maxQuick = 64 << 10

// readPrefix is the content of a small regular file; longer ones are cut, and
// so match nothing.
func readPrefix(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxQuick {
		return "", os.ErrInvalid
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxQuick))
	return string(data), err
}

// The characters of names that need no second thought.
const (
	hexDigits   = "0123456789abcdef"
	nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"
)

// plainHead reports whether the content of HEAD names a ref or a commit.
func plainHead(head string) bool {
	line, whole := strings.CutSuffix(head, "\n")
	if ref, symbolic := strings.CutPrefix(line, "ref: refs/"); symbolic {
		odd := func(c rune) bool { return c <= ' ' || c > '~' }
		return whole && ref != "" && !strings.ContainsFunc(ref, odd)
	}
	return whole && (len(line) == 40 || len(line) == 64) && strings.Trim(line, hexDigits) == ""
}

// plainSection is the name of a section whose head stands alone on a line.
func plainSection(line string) (name string, ok bool) {
	inner, ok := strings.CutSuffix(strings.TrimPrefix(line, "["), "]")
	name, sub, divided := strings.Cut(inner, " ")
	if divided {
		quoted := len(sub) >= 2 && sub[0] == '"' && sub[len(sub)-1] == '"'
		ok = ok && quoted && !strings.ContainsAny(sub[1:len(sub)-1], `"\`)
	}
	return strings.ToLower(name), ok && name != "" && strings.Trim(name, nameLetters) == ""
}

// plainConfig reports whether a configuration is one that git reads without
// complaint, and that moves nothing.
func plainConfig(config string) bool {
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' {
			name, ok := plainSection(line)
			if !ok || strings.HasPrefix(name, "include") || name == "extensions" {
				return false
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		if !ok || key == "" || strings.Trim(key, nameLetters) != "" || strings.ContainsAny(value, `"\#;`) {
			return false
		}
		if key == "worktree" || key == "bare" && value != "false" || key == "repositoryformatversion" && value != "0" {
			return false
		}
	}
	return true
}
