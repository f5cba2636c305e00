package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed mutants.txt
var table string

// mutant is one weakening.
type mutant struct {
	name string
	file string   // relative to the module
	test []string // arguments of go test: packages and -run
	env  []string // KEY=value before them
	why  string
	old  string
	new  string
}

// parse reads a table of blocks:
//
//	== NAME
//	FILE
//	[KEY=value...] PACKAGE... [-run=RE]
//	what is weakened
//	<<<<
//	the text before
//	====
//	the text after
//	>>>>
func parse(text string) ([]mutant, error) {
	var all []mutant
	names := map[string]bool{}
	for i, block := range strings.Split("\n"+text, "\n== ") {
		if i == 0 {
			continue // what the table says about itself
		}
		m, err := parseOne(block)
		if err != nil {
			return nil, fmt.Errorf("mutant %d, %.40q: %w", i, block, err)
		}
		if names[m.name] {
			return nil, fmt.Errorf("two mutants are called %s", m.name)
		}
		names[m.name] = true
		all = append(all, m)
	}
	return all, nil
}

func parseOne(block string) (mutant, error) {
	head, edit, found := strings.Cut(block, "\n<<<<\n")
	before, rest, split := strings.Cut(edit, "\n====\n")
	after, _, ends := strings.Cut("\n"+rest, "\n>>>>")
	lines := strings.Split(head, "\n")
	if !found || !split || !ends || len(lines) != 4 {
		return mutant{}, errors.New("it is not: name, file, test, reason, <<<<, old, ====, new, >>>>")
	}
	m := mutant{name: lines[0], file: lines[1], test: strings.Fields(lines[2]), why: lines[3], old: before, new: strings.TrimPrefix(after, "\n")}
	for len(m.test) > 0 && !strings.HasPrefix(m.test[0], "./") {
		m.env, m.test = append(m.env, m.test[0]), m.test[1:]
	}
	if m.old == m.new || m.old == "" || len(m.test) == 0 {
		return mutant{}, errors.New("it changes nothing, or nothing would notice")
	}
	return m, nil
}

// apply returns the file with the edit. The old text must stand there once.
func (m *mutant) apply(module string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(module, filepath.FromSlash(m.file)))
	if err != nil {
		return nil, err
	}
	switch n := strings.Count(string(data), m.old); n {
	case 1:
		return []byte(strings.Replace(string(data), m.old, m.new, 1)), nil
	default:
		return nil, fmt.Errorf("%s: the old text of %s stands there %d times, not once", m.file, m.name, n)
	}
}
