package bd

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// source is what is kept in a bead, under bead.MetaSource, of the issue that it was imported from.
type source struct {
	// Hash is that of the issue.
	Hash string `json:"hash"`
	// As is the status that the import gave the bead, and Gen the bead's with it.
	As  bead.Status `json:"as"`
	Gen int64       `json:"gen"`
	// Implied are the beads that it waits for without its issue saying so.
	Implied []state.BeadID `json:"implied,omitempty"`
	// AllowEmpty is what the import made of it.
	AllowEmpty bool `json:"allow_empty,omitempty"`
	// Issue is the issue without what the bead's own fields say.
	Issue Issue `json:"issue"`
}

// sourceOf returns what a bead was imported from. A damaged source counts as none.
func sourceOf(b *bead.Bead) (source, bool) {
	var s source
	text := b.Metadata[bead.MetaSource]
	if text == "" || b.Metadata[bead.MetaImported] == "" || json.Unmarshal([]byte(text), &s) != nil {
		return source{}, false
	}
	return s, true
}

func (s *source) store(b *bead.Bead, issue *Issue) error {
	s.Issue = *issue
	s.Issue.ID, s.Issue.Title, s.Issue.Description, s.Issue.Acceptance, s.Issue.Labels, s.Issue.Type = "", "", "", "", nil, ""
	s.Gen = b.Gen
	line, err := state.EncodeLine(s)
	if err != nil {
		return err
	}
	meta := make(map[string]string, len(b.Metadata)+2) // the store's cache shares the old map
	for k, v := range b.Metadata {
		meta[k] = v
	}
	meta[bead.MetaImported], meta[bead.MetaSource] = issue.ID, strings.TrimSuffix(string(line), "\n")
	b.Metadata = meta
	return nil
}

// ours holds the fields that bd does not have. An export puts them under the key
// chipset of an issue's metadata.
type ours struct {
	Status     bead.Status `json:"status,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Worker     string      `json:"worker,omitempty"`
	AllowEmpty bool        `json:"allow_empty,omitempty"`
}

const oursKey = "chipset"

func (i *Issue) ours() ours {
	var meta map[string]json.RawMessage
	var o ours
	if json.Unmarshal(i.Metadata, &meta) != nil || json.Unmarshal(meta[oursKey], &o) != nil {
		return ours{}
	}
	return o
}

// setOurs replaces our part of the metadata. Metadata that is not an object is left
// alone.
func (i *Issue) setOurs(o ours) error {
	meta := map[string]json.RawMessage{}
	if len(i.Metadata) > 0 && (json.Unmarshal(i.Metadata, &meta) != nil || meta == nil) {
		return nil
	}
	delete(meta, oursKey)
	if o != (ours{}) {
		raw, err := json.Marshal(o)
		if err != nil {
			return err
		}
		meta[oursKey] = raw
	}
	if len(meta) == 0 && len(i.ownMetadata()) == 0 {
		i.Metadata = nil
		return nil
	}
	raw, err := json.Marshal(meta)
	i.Metadata = raw
	return err
}

// ownMetadata returns the metadata without our part.
func (i *Issue) ownMetadata() map[string]json.RawMessage {
	var meta map[string]json.RawMessage
	if json.Unmarshal(i.Metadata, &meta) != nil {
		return nil
	}
	delete(meta, oursKey)
	return meta
}

func (i *Issue) title() string {
	if strings.ContainsAny(i.Title, "\n\r\t\x00") {
		return strings.Join(strings.Fields(strings.ReplaceAll(i.Title, "\x00", " ")), " ")
	}
	return i.Title
}

// description returns the whole text that a worker needs.
func (i *Issue) description() string { return i.Description + i.appendix() }

// appendix returns what a bead's description has after the issue's own.
func (i *Issue) appendix() string {
	var b strings.Builder
	for _, part := range []struct{ heading, text string }{{"Design", i.Design}, {"Notes", i.Notes}} {
		if strings.TrimSpace(part.text) != "" {
			b.WriteString("\n\n## " + part.heading + "\n\n" + part.text)
		}
	}
	return b.String()
}

func priorityOf(p int) bead.Priority {
	switch {
	case p <= 1:
		return bead.P1
	case p == 2:
		return bead.P2
	}
	return bead.P3
}

// standing returns the status that a bead gets from the issue, and the reason. waits says
// whether an issue that it depends on is not closed.
func (i *Issue) standing(waits bool) (bead.Status, string) {
	switch {
	case i.Status == statusTombstone:
		return bead.Cancelled, "deleted in bd"
	case i.Status == statusClosed && i.ours().Status == bead.Cancelled:
		return bead.Cancelled, i.CloseReason
	case i.Status == statusClosed && strings.TrimSpace(i.CloseReason) == "":
		return bead.Closed, "closed in bd"
	case i.Status == statusClosed:
		return bead.Closed, i.CloseReason
	case i.Status == statusPinned || i.Pinned:
		return bead.Blocked, "pinned in bd"
	case slices.Contains([]string{"", statusOpen, statusInProgress, statusHooked}, i.Status):
		return bead.Open, ""
	case i.Status == statusBlocked && i.ours().Status == bead.Blocked:
		return bead.Blocked, i.ours().Reason
	case i.Status == statusBlocked && waits:
		return bead.Open, ""
	case i.Status == statusDeferred && i.DeferUntil != "":
		return bead.Blocked, "deferred in bd until " + i.DeferUntil
	}
	return bead.Blocked, i.Status + " in bd"
}

// fill copies the fields of the issue to a bead, except for the status.
func (i *Issue) fill(b *bead.Bead, workers bool) {
	b.Title, b.Description, b.Acceptance = i.title(), i.description(), i.Acceptance
	b.Priority, b.Type, b.Labels = priorityOf(i.Priority), i.Type, nil
	for _, label := range i.Labels {
		if !slices.Contains(b.Labels, label) {
			b.Labels = append(b.Labels, label)
		}
	}
	b.AllowEmpty = i.ours().AllowEmpty || i.Type == "epic" || i.Type == "milestone"
	if workers {
		b.Worker = i.ours().Worker
	}
}
