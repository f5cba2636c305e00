package git

import (
	"context"
	"regexp"
	"strings"
)

// MatchPaths returns a function that reports whether a path of a tree matches one of the patterns, or is below a match.
// Patterns are those of .gitignore with *, ? and **: a pattern without a slash before its last character matches at any depth, others
// from the root. Case is ignored, and so is what plainName leaves out, because some file systems do. A file in the place of a folder
// of a pattern matches too: it could be a link.
func MatchPaths(patterns ...string) func(path string) bool {
	var all []string
	for _, p := range patterns {
		all = append(all, pathExpression(p))
	}
	if len(all) == 0 {
		return func(string) bool { return false }
	}
	matches := regexp.MustCompile("(?is)^(?:" + strings.Join(all, "|") + ")$").MatchString
	return func(path string) bool {
		parts := strings.Split(path, "/")
		for i := range parts {
			parts[i] = plainName(parts[i])
		}
		return matches(path) || matches(strings.Join(parts, "/"))
	}
}

func pathExpression(pattern string) string {
	pattern = strings.TrimSuffix(pattern, "/")
	expression := ""
	if !strings.Contains(pattern, "/") {
		expression = "(?:.*/)?"
	}
	segments := strings.Split(strings.TrimPrefix(strings.TrimSuffix(pattern, "/**"), "/"), "/")
	var above []string // what stands in the place of a folder
	for i, segment := range segments {
		last := i == len(segments)-1
		switch {
		case segment == "**" && last:
			expression += ".*"
		case segment == "**":
			expression += "(?:.*/)?"
		default:
			expression += strings.NewReplacer(`\*`, "[^/]*", `\?`, "[^/]").Replace(regexp.QuoteMeta(segment))
			if !last {
				above = append(above, expression)
				expression += "/"
			}
		}
	}
	return strings.Join(append(above, expression+"(?:/.*)?"), "|")
}

// DiffStat returns the size of the difference between two commits in some files, as git words it.
func (r *Repo) DiffStat(ctx context.Context, old, new Hash, paths ...string) (string, error) {
	out, err := r.diff(ctx, old, new, paths, "--shortstat")
	return line(out), err
}

// Diff returns the difference between two commits in some files as a patch.
func (r *Repo) Diff(ctx context.Context, old, new Hash, paths ...string) ([]byte, error) {
	return r.diff(ctx, old, new, paths, "--patch")
}

func (r *Repo) diff(ctx context.Context, old, new Hash, paths []string, form string) ([]byte, error) {
	if err := checkCommits(old, new); err != nil {
		return nil, err
	}
	args := []string{"--literal-pathspecs", "diff", form, "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", string(old), string(new), "--"}
	return r.run(ctx, r.plain(), Command{Args: append(args, paths...), Read: true})
}
