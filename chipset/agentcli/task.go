package agentcli

import (
	"regexp"
	"strings"
	"sync"
)

// beadTag ties a task of a client's own list to a bead.
var beadTag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bchipset:bead:([a-z0-9][a-z0-9._-]{0,63})`)
})

// TaggedBead returns the ID of the bead that the text of a task is tied to.
func TaggedBead(text string) (id string, is bool) {
	tag := beadTag().FindStringSubmatch(text)
	if tag == nil {
		return "", false
	}
	return tag[1], true
}

// TagBead returns the text of a task with a tie to a bead.
func TagBead(text, id string) string {
	return strings.TrimLeft(text+"\n\nchipset:bead:"+id, "\n")
}
