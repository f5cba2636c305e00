package state

import (
	"errors"
	"strings"
)

// QuarantineDir holds damaged and misplaced files.
const QuarantineDir Path = "state/quarantine"

// Quarantined describes a file in the quarantine. It is stored as {name}.reason.json.
type Quarantined struct {
	// Path is where the file was, relative to .chipset.
	Path string `json:"path"`
	// File is its name in the quarantine.
	File string `json:"file"`
	// Reason is one sentence for a person.
	Reason string `json:"reason"`
	At     Time   `json:"at"`
	// Copied is true when the original was left in place (a hook).
	Copied bool `json:"copied,omitempty"`
}

// Quarantine moves the file or folder at p to the quarantine and writes the reason
// beside it; nothing is deleted. The reason is durable before the move, and the move
// when it returns nil. A move that a crash interrupted is completed.
func (t *Tree) Quarantine(p Path, reason string, now Time) (Quarantined, error) {
	if q, half := t.halfQuarantined(p); half {
		return q, t.finishMove(FileMove{From: p, To: QuarantineDir.Join(q.File)})
	}
	q, err := t.reason(p, reason, now, false)
	if err != nil {
		return q, err
	}
	err = t.Move(p, QuarantineDir.Join(q.File))
	if errors.Is(err, ErrNotFound) { // somebody else moved it first
		return q, t.Remove(QuarantineDir.Join(q.File + ".reason.json"))
	}
	return q, err
}

// QuarantineDamaged calls Quarantine if err, the error of reading the file at p, is a
// *Corruption. It does nothing for nil, ErrNotFound, and a hard link (which may be that
// of a backup), and returns any other error.
func (t *Tree) QuarantineDamaged(p Path, err error, now Time) error {
	var c *Corruption
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrHardLinked):
		return nil
	case errors.As(err, &c):
		_, err = t.Quarantine(p, c.Reason, now)
	}
	return err
}

// halfQuarantined looks for an interrupted move of the file at p: its copy is in the
// quarantine, but the original was not removed.
func (t *Tree) halfQuarantined(p Path) (Quarantined, bool) {
	all, err := t.Quarantined()
	if err != nil {
		return Quarantined{}, false // it is quarantined a second time, which loses nothing
	}
	for _, q := range all {
		if q.Path == string(p) && !q.Copied && q.File == Path(q.File).Base() && t.same(FileMove{From: p, To: QuarantineDir.Join(q.File)}) == nil {
			return q, true
		}
	}
	return Quarantined{}, false
}

// QuarantineCopy puts a copy of the file at p into the quarantine and leaves the
// original. It is for hooks, because a missing hook would mean that there is no work.
func (t *Tree) QuarantineCopy(p Path, reason string, now Time) (Quarantined, error) {
	data, err := t.Read(p, 16*MaxFile)
	if err != nil {
		return Quarantined{}, err
	}
	q, err := t.reason(p, reason, now, true)
	if err != nil {
		return q, err
	}
	return q, t.WriteNew(QuarantineDir.Join(q.File), data)
}

func (t *Tree) reason(p Path, reason string, now Time, copied bool) (Quarantined, error) {
	q := Quarantined{Path: strings.ToValidUTF8(string(p), "\uFFFD"), Reason: reason, At: now, Copied: copied,
		File: now.Stamp() + "-" + Random(5) + "-" + plainName(string(p))}
	data, err := Encode(q)
	if err != nil {
		return q, err
	}
	return q, t.WriteNew(QuarantineDir.Join(q.File+".reason.json"), data)
}

// Explain writes the reason for a file in the quarantine that has none. Durable when it
// returns nil. Errors: ErrExists when there is a reason.
func (t *Tree) Explain(p Path, reason string, now Time) error {
	if p.Dir() != QuarantineDir {
		return &Corruption{Path: string(p), Reason: "the file is not in the quarantine"}
	}
	q := Quarantined{Path: strings.ToValidUTF8(string(p), "\uFFFD"), Reason: reason, At: now, File: p.Base()}
	data, err := Encode(q)
	if err != nil {
		return err
	}
	return t.WriteNew(p+".reason.json", data)
}

// plainName returns a path as one component that is safe to print.
func plainName(p string) string {
	p = strings.TrimPrefix(p, string(StateDir)+"/")
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '_'
	}, p)
	if len(clean) > 120 {
		clean = clean[len(clean)-120:]
	}
	return clean
}

// Quarantined returns the content of the quarantine, oldest first.
func (t *Tree) Quarantined() ([]Quarantined, error) {
	entries, err := t.List(QuarantineDir)
	if err != nil {
		return nil, err
	}
	var all []Quarantined
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".reason.json") {
			continue
		}
		var q Quarantined
		p := QuarantineDir.Join(e.Name())
		data, err := t.Read(p, MaxFile)
		if err == nil {
			err = Decode(string(p), data, &q)
		}
		if err != nil {
			q = Quarantined{Path: string(p), File: e.Name(), Reason: err.Error()}
		}
		all = append(all, q)
	}
	return all, nil
}
