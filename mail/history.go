package mail

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"strings"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/audit"
)

// History returns the audit rules of messages: a message may move to the archive of its
// mailbox under the same name, and nowhere else. Only "read" changes, from false to true.
func History() []audit.Rule {
	return []audit.Rule{
		{Patterns: []string{"mail/*/*.json"}, CheckChange: moved, MovesTo: func(p string) string {
			return path.Join(path.Dir(p), archiveName, path.Base(p))
		}},
		{Patterns: []string{"mail/*/" + archiveName + "/*.json"}, CheckChange: moved},
	}
}

// moved compares all fields, unknown ones too. The layout may only differ if the message
// was marked as read, which another program may have done.
func moved(p string, before, after []byte) error {
	if before == nil {
		_, _, err := content(p, after)
		return err
	}
	old, wasRead, err := content(p, before)
	if err != nil {
		return nil //nolint:nilerr // it never was a message, or its damage was reported earlier
	}
	now, isRead, err := content(p, after)
	if err != nil {
		return fmt.Errorf("the message was damaged: %w", err)
	}
	if wasRead && !isRead {
		return errors.New("read changed from true to false")
	}
	for name := range now {
		if _, there := old[name]; !there {
			return fmt.Errorf("the message was changed: field %q was added", name)
		}
	}
	for name := range old {
		if !reflect.DeepEqual(old[name], now[name]) {
			return fmt.Errorf("the message was changed: field %q differs", name)
		}
	}
	if wasRead == isRead && !bytes.Equal(before, after) {
		return errors.New("the message was changed: its bytes differ, but not its read flag")
	}
	return nil
}

// content returns a message's fields except for "read". Numbers keep all their digits.
func content(p string, data []byte) (fields map[string]any, read bool, err error) {
	owner, _, _ := strings.Cut(strings.TrimPrefix(p, "mail/"), "/")
	m, err := Decode(p, state.AgentID(owner), Name(path.Base(p)), data)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", audit.ErrUnreadable, err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&fields); err != nil {
		return nil, false, fmt.Errorf("%w: %w", audit.ErrUnreadable, err)
	}
	delete(fields, "read")
	return fields, m.Read, nil
}
