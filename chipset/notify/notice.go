package notify

import (
	"strings"

	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/state"
)

// Notice is one notification.
type Notice struct {
	// Title and Text are one line each, without control characters. Title begins with "chipset".
	Title, Text string
	// JSON is one line: the need or the digest with its type, the rig, the title and the text.
	JSON []byte
}

// head is what every notice has in JSON, in addition to the fields of a need or a digest.
type head struct {
	Type  string `json:"type"`
	Rig   string `json:"rig"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// OfNeed is the notice of one need.
func OfNeed(rig string, n *view.Need) (Notice, error) {
	text := strings.Join(strings.Fields(n.Line()), " ")
	if len(n.Commands) > 0 {
		text += " (" + n.Commands[0] + ")"
	}
	h := head{Type: "need", Rig: rig, Title: "chipset: " + rig + " needs you", Text: text}
	return h.notice(struct {
		*head
		*view.Need
	}{&h, n})
}

// OfDigest is the notice of a summary.
func OfDigest(rig string, s *view.Summary) (Notice, error) {
	h := head{Type: "digest", Rig: rig, Title: "chipset: " + rig + " is idle", Text: s.String()}
	return h.notice(struct {
		*head
		*view.Summary
	}{&h, s})
}

// notice encodes whole, which holds h.
func (h *head) notice(whole any) (Notice, error) {
	h.Title, h.Text = screen.Clean(h.Title), screen.Clean(h.Text)
	data, err := state.EncodeLine(whole)
	return Notice{Title: h.Title, Text: h.Text, JSON: data}, err
}
