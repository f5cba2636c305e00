package agentcli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"mvdan.cc/sh/v3/syntax"

	"github.com/gastown-chipset/chipset/state"
)

// Plugin connects a client with the rigs of a machine. Everything in it calls one binary.
type Plugin struct {
	// Name is the client's.
	Name string
	// Files has the plugin's files below plugin/. They are templates of package text/template.
	Files fs.FS
	// Steps are the client's own commands that make it use what was written to dir by this binary.
	Steps func(dir, binary string) []Step
	// Settings are the files that the client reads from the folder of its settings alone.
	Settings []string
	// SettingsIn returns the folder of the client's settings if the environment names one, else ""; nil if it can't.
	SettingsIn func(env func(name string) string) string
}

// Step is a command of a client.
type Step struct {
	Argv []string
	// Unattended are arguments that are added where nobody is there to answer a question.
	Unattended []string
	// Remove takes the step back. It is run, and the step tried again, when the step fails and says Present.
	Present string
	Remove  []string
}

// pluginDir is the folder in Plugin.Files.
const pluginDir = "plugin"

// marker is in every folder that Plugin.Write has written.
const marker = ".chipset-plugin"

// ErrForeign is returned by Plugin.Write for a folder, and by Plugin.Enable for a file, that holds something else.
var ErrForeign = errors.New("it holds something else")

// pluginValues fill the files.
type pluginValues struct {
	// Binary is the absolute path of chipset, Quoted the same for a shell.
	Binary, Quoted, Version string
	// Market is the folder that the files are written to.
	Market string
	// Worker is true for a file that a rig hands to a worker; Flag is --worker then.
	Worker bool
	Flag   string
}

// ForWorker returns one of the files as a rig hands it to a worker.
func (p *Plugin) ForWorker(name, binary string) (string, error) {
	data, err := p.render(pluginDir+"/"+name, pluginValues{Binary: binary, Worker: true, Flag: "--worker"})
	return string(data), err
}

// Write writes the files into dir, which is made when missing, and
// returns their names. They call the binary at the absolute path given. Files
// of an earlier Write are replaced; a folder that holds anything else is an
// ErrForeign. Each file is durable when Write returns nil.
func (p *Plugin) Write(dir, binary, version string) ([]string, error) {
	quoted, err := syntax.Quote(binary, syntax.LangPOSIX)
	if err != nil {
		return nil, fmt.Errorf("plugin: the path %q can't be called by a shell: %w", binary, err)
	}
	if err := ours(dir); err != nil {
		return nil, err
	}
	v := pluginValues{Binary: binary, Quoted: quoted, Version: semver(version), Market: dir}
	var names []string
	err = fs.WalkDir(p.Files, pluginDir, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name := strings.TrimPrefix(at, pluginDir+"/")
		data, err := p.render(at, v)
		if err != nil {
			return err
		}
		names = append(names, name)
		return put(filepath.Join(dir, filepath.FromSlash(name)), data)
	})
	if err != nil {
		return nil, fmt.Errorf("plugin for %s: %w", p.Name, err)
	}
	return names, nil
}

// Remove removes from dir the files that Write writes, and the folders that are empty then, and returns the names of
// the files. Everything else stays. A folder that no Write has made is an ErrForeign, none at all an fs.ErrNotExist.
func (p *Plugin) Remove(dir string) ([]string, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, marker)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrForeign)
	}
	var names, folders []string
	err := fs.WalkDir(p.Files, pluginDir, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(strings.TrimPrefix(at, pluginDir), "/")
		if e.IsDir() {
			folders = append(folders, name)
			return nil
		}
		if err := state.ReleaseOutside(filepath.Join(dir, filepath.FromSlash(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		names = append(names, name)
		return nil
	})
	if err == nil {
		err = state.ReleaseOutside(filepath.Join(dir, marker))
	}
	for _, name := range slices.Backward(folders) {
		_ = state.ReleaseOutside(filepath.Join(dir, filepath.FromSlash(name))) // one that holds something else stays
	}
	return names, err
}

// Enable copies the files that the client reads from its settings there. What stands there under such a name and is
// something else stays, and is an ErrForeign. Each file is durable when Enable returns nil.
func (p *Plugin) Enable(dir, settings string) error {
	for _, name := range p.Settings {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		at := filepath.Join(settings, name)
		switch there, err := os.ReadFile(at); {
		case err == nil && !bytes.Equal(there, data):
			return fmt.Errorf("%s: %w; add %s to it by hand", at, ErrForeign, filepath.Join(dir, name))
		case err == nil:
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		if err := put(at, data); err != nil {
			return err
		}
	}
	return nil
}

// Disable removes what Enable has copied from dir, and reports whether there was any. A file that has changed since stays.
func (p *Plugin) Disable(dir, settings string) (was bool, err error) {
	for _, name := range p.Settings {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			continue // nothing was written there
		}
		at := filepath.Join(settings, name)
		if there, err := os.ReadFile(at); err != nil || !bytes.Equal(there, data) {
			continue
		}
		if err := state.ReleaseOutside(at); err != nil {
			return was, err
		}
		was = true
	}
	return was, nil
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

func (p *Plugin) render(name string, v pluginValues) ([]byte, error) {
	text, err := fs.ReadFile(p.Files, name)
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
