package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

// Configured returns a hash of what controls the person's git in this repository and is not committed: config (without
// upstreams of branches), info/exclude, info/attributes, hooks, and alternates. Any program of the same user can change these files.
func (r *Repo) Configured() (string, error) {
	names := []string{"config", "info/exclude", "info/attributes"}
	hooks, err := os.ReadDir(filepath.Join(r.common, "hooks"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, e := range hooks {
		if !strings.HasSuffix(e.Name(), ".sample") {
			names = append(names, "hooks/"+e.Name())
		}
	}
	const elsewhere = "objects/info/alternates"
	if _, err := os.Lstat(filepath.Join(r.common, filepath.FromSlash(elsewhere))); err == nil {
		names = append(names, elsewhere)
	}
	sum := sha256.New()
	for _, name := range names {
		data, err := readPlain(filepath.Join(r.common, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		if name == "config" {
			data = upstreams().ReplaceAll(data, nil)
		}
		_, _ = fmt.Fprintf(sum, "%s %d\x00%s", name, len(data), data) // a hash takes everything
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// HooksFolder returns the folder of the checkout, with slashes, whose hooks the person's own git runs because core.hooksPath says so;
// "" if that lies elsewhere.
func (r *Repo) HooksFolder(ctx context.Context) (string, error) {
	out, err := r.read(ctx, "config", "--null", "--get-all", "core.hooksPath")
	if err != nil {
		return "", err
	}
	values := strings.Split(string(out), "\x00")
	values = values[:max(0, len(values)-2)] // the last is what settings say
	if len(values) == 0 {
		return "", nil
	}
	folder := values[len(values)-1]
	if below, ok := strings.CutPrefix(folder, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", nil //nolint:nilerr // the person's git finds no hooks there either
		}
		folder = filepath.Join(home, below)
	}
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(r.top, folder)
	} else if real, err := gitfile.RealPath(folder); err == nil {
		folder = real
	}
	inside, err := filepath.Rel(r.top, folder)
	if err != nil || inside == "." || !filepath.IsLocal(inside) {
		return "", nil //nolint:nilerr // it has no way from here to there
	}
	return filepath.ToSlash(inside), nil
}

// upstreams matches the config sections with the upstreams of branches: they change every day, and run nothing.
func upstreams() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\[branch "[^"\\\]\n]*"\]\n(?:[ \t]+(?:remote|merge|rebase|pushRemote|description) = [^\[\\\n]*\n)*`)
}

// readPlain returns the first mebibyte of a regular file, and nothing for anything else.
func readPlain(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const most = 1 << 20
	return io.ReadAll(io.LimitReader(f, most))
}
