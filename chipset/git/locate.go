package git

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// locateWithoutGit is locate without a process, for a plain repository: dir is the root of the
// main worktree, this user owns its folder .git, and its configuration neither moves
// anything nor could be refused by git. In all other cases ok is false.
func locateWithoutGit(dir string) (gitDir string, ok bool) {
	gitDir = filepath.Join(dir, ".git")
	for _, own := range []string{dir, gitDir} {
		info, err := os.Lstat(own)
		if err != nil || !info.IsDir() || !trusted(info) {
			return "", false
		}
	}
	for name, want := range map[string]bool{"objects": true, "refs": true, "commondir": false, "config.worktree": false} {
		if _, err := os.Lstat(filepath.Join(gitDir, name)); (err == nil) != want {
			return "", false
		}
	}
	if _, _, known := readHead(gitDir); !known {
		return "", false
	}
	config, err := os.ReadFile(filepath.Join(gitDir, "config"))
	return gitDir, err == nil && plainConfig(string(config))
}

// trusted reports whether git would trust a folder because of its owner.
func trusted(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// plainConfig reports whether each line of a configuration is a comment, a section or a simple
// value, and none moves the repository or its worktree.
func plainConfig(config string) bool {
	plain := regexp.MustCompile(`(?i)^(|[#;].*|\[[a-z0-9.-]+( "[^"\\]*")?\]|[a-z0-9.-]+\s*=[^"\\#;]*)$`)
	moves := regexp.MustCompile(`(?i)^(\[(include|extensions)|(worktree|bare|repositoryformatversion)\b)`)
	usual := regexp.MustCompile(`(?i)^(bare\s*=\s*false|repositoryformatversion\s*=\s*0)$`)
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		if !plain.MatchString(line) || moves.MatchString(line) && !usual.MatchString(line) {
			return false
		}
	}
	return true
}
