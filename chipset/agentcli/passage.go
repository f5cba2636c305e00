package agentcli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/state/wording"
)

// PassageKind says what a part of a transcript is.
type PassageKind string

const (
	// Said is text of the agent.
	Said PassageKind = "said"
	// Called is a call of a tool, with its arguments on the same line.
	Called PassageKind = "called"
	// Returned is what a tool returned, cut.
	Returned PassageKind = "returned"
	// Erred is a tool or a client that failed.
	Erred PassageKind = "failed"
	// Removed are lines that a change takes away.
	Removed PassageKind = "removed"
	// Added are lines that a change brings.
	Added PassageKind = "added"
	// Noted is what else a person wants to know: the session begins, or ends.
	Noted PassageKind = "noted"
)

// Passage is a part of a transcript as a person reads it. Its text is that of others, of any
// number of lines.
type Passage struct {
	Kind PassageKind `json:"kind"`
	Text string      `json:"text"`
}

const (
	// maxResult bounds what is kept of a result, in lines.
	maxResult = 6
	// maxArguments bounds the arguments of a call, in bytes.
	maxArguments = 400
	// maxChange bounds the lines of one side of a change.
	maxChange = 12
)

// Call is the passage of a call. The argument that says the most stands for all of them, if
// there is one.
func Call(tool string, arguments json.RawMessage) []Passage {
	var named map[string]any
	_ = json.Unmarshal(arguments, &named) // anything but an object is shown whole
	text := func(keys ...string) string {
		for _, k := range keys {
			switch v := named[k].(type) {
			case string:
				if v != "" {
					return v
				}
			case []any:
				return strings.Trim(fmt.Sprint(v), "[]")
			}
		}
		return ""
	}
	shown := text("command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url", "prompt", "description")
	if shown == "" {
		var flat bytes.Buffer
		if json.Compact(&flat, arguments) == nil && flat.String() != "{}" && flat.String() != "null" {
			shown = flat.String()
		}
	}
	passages := []Passage{{Called, strings.TrimSpace(tool + "  " + wording.Clip(strings.Join(strings.Fields(shown), " "), maxArguments))}}
	passages = append(passages, change(Removed, text("old_string", "oldString"))...)
	return append(passages, change(Added, text("new_string", "newString", "content", "new_str"))...)
}

func change(kind PassageKind, text string) []Passage {
	if text == "" {
		return nil
	}
	return []Passage{{kind, firstLines(text, maxChange)}}
}

// Result is the passage of what a tool returned.
func Result(text string, failed bool) []Passage {
	kind := Returned
	if failed {
		kind = Erred
	}
	if text = strings.TrimSpace(text); text == "" && !failed {
		return nil
	}
	return []Passage{{kind, firstLines(text, maxResult)}}
}

// Text is the passage of a text, none for an empty one.
func Text(kind PassageKind, text string) []Passage {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return []Passage{{kind, text}}
}

// firstLines cuts a text after so many lines, and says how many are left out.
func firstLines(text string, most int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if left := len(lines) - most; left > 1 {
		lines = append(lines[:most:most], fmt.Sprintf("… %d more lines", left))
	}
	for i := range lines {
		lines[i] = Clip(lines[i])
	}
	return strings.Join(lines, "\n")
}

// PlainPassages are those of a line that no client has written in its own format.
func PlainPassages(line []byte) []Passage { return Text(Said, Clip(string(line))) }

// Narrator turns a transcript into passages. It finds out by itself which client wrote it.
type Narrator struct {
	// Formats are those of the clients: each returns false for a line of another format.
	Formats []func(line []byte) ([]Passage, bool)
	// Each takes the passages of a line.
	Each func([]Passage)
}

// Line takes one whole line without its end.
func (n *Narrator) Line(line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	if line[0] == '{' {
		for i, format := range n.Formats {
			if passages, is := format(line); is {
				n.Formats[0], n.Formats[i] = format, n.Formats[0] // the next line is of the same client
				n.Each(passages)
				return
			}
		}
	}
	n.Each(PlainPassages(line))
}
