// Package mail stores durable messages between agents: one JSON file per message, written
// once. Only its "read" flag changes, from false to true.
//
//	state/mail/{to}/{timestamp}-{from}.json
//	state/mail/{to}/archive/{timestamp}-{from}.json
//
// The timestamp in a name is RFC 3339 in UTC with nine fractional digits and '-' in
// place of ':', for example 2026-03-01T09-00-00.000000000Z-mayor.json. Other programs may
// write names with any precision and offset. Messages are ordered by time. A file has at
// most MaxSize bytes of UTF-8 and holds one object with at least the fields below.
// docs/state.md describes the other fields; unknown ones are kept.
//
//	{
//	  "body": "main has moved",
//	  "from": "mayor",
//	  "priority": "normal",
//	  "read": false,
//	  "subject": "rebase first",
//	  "timestamp": "2026-03-01T09:00:00.000000000Z",
//	  "to": "polecat-alpha",
//	  "type": "coordination"
//	}
//
// A Sender delivers messages, a Mailbox reads them: see the example. A file that is not
// such an object, or contradicts its name, is reported as damaged and stays in place
// until Mailbox.Quarantine moves it.
package mail
