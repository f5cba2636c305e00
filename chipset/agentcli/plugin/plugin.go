// Package plugin writes what ties a coding-agent client to chipset: for Claude
// Code a marketplace with one plugin in it, for Gemini CLI an extension, for
// Codex the files that belong in its home. Everything in them calls one binary.
package plugin

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"mvdan.cc/sh/v3/syntax"

	"github.com/gastown-chipset/chipset/chipset/agentcli/session"
	"github.com/gastown-chipset/chipset/state"
)

//go:embed all:files
var files embed.FS

// marker tells a folder that was written by Write from one that was not.
const marker = ".chipset-plugin"

// ErrForeign is returned by Write for a folder that holds something else.
var ErrForeign = errors.New("the folder holds something else")

// values fill the files.
type values struct {
	// Binary is the absolute path of chipset, Quoted the same for a shell.
	Binary, Quoted, Version string
	// Market is the folder that the files are written to.
	Market string
}

// Write writes the files of a client into dir, which is made when missing, and
// returns their names. They call the binary at the absolute path given. Files
// of an earlier Write are replaced; a folder that holds anything else is an
// ErrForeign. Each file is durable when Write returns nil.
func Write(kind session.Kind, dir, binary, version string) ([]string, error) {
	quoted, err := syntax.Quote(binary, syntax.LangPOSIX)
	if err != nil {
		return nil, fmt.Errorf("plugin: the path %q can't be called by a shell: %w", binary, err)
	}
	if err := ours(dir); err != nil {
		return nil, err
	}
	root := path.Join("files", string(kind))
	v := values{Binary: binary, Quoted: quoted, Version: semver(version), Market: dir}
	var names []string
	err = fs.WalkDir(files, root, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name := strings.TrimPrefix(at, root+"/")
		data, err := render(at, v)
		if err != nil {
			return err
		}
		names = append(names, name)
		return put(filepath.Join(dir, filepath.FromSlash(name)), data)
	})
	if err != nil {
		return nil, fmt.Errorf("plugin for %s: %w", kind, err)
	}
	return names, nil
}

// semver is a version as clients want it; a build from a checkout has none.
func semver(version string) string {
	plain := strings.TrimPrefix(version, "v")
	if plain == "" || plain[0] < '0' || plain[0] > '9' {
		return "0.0.0-devel"
	}
	return plain
}

// ours makes dir, or makes sure that an earlier Write made it.
func ours(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	marked := false
	for _, e := range entries {
		marked = marked || e.Name() == marker
	}
	if len(entries) > 0 && !marked {
		return fmt.Errorf("%s: %w", dir, ErrForeign)
	}
	return put(filepath.Join(dir, marker), []byte("written by chipset plugin install\n"))
}

func put(file string, data []byte) error {
	if err := state.MkdirOutside(filepath.Dir(file)); err != nil {
		return err
	}
	return state.ReplaceOutside(file, data)
}

func render(name string, v values) ([]byte, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	asJSON := func(s string) (string, error) {
		data, err := json.Marshal(s)
		return string(data), err
	}
	t, err := template.New(path.Base(name)).Option("missingkey=error").Funcs(template.FuncMap{
		"json": asJSON,
		// command is a shell's command line of this binary, as a JSON string.
		"command": func(args ...string) (string, error) {
			return asJSON(strings.Join(append([]string{v.Quoted}, args...), " "))
		},
	}).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, v); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
