package definition

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// legalID is the rule for everything that becomes a file's name in the state tree.
func legalID(id string) bool {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`).MatchString(id)
}

func TestBeadPrefix(t *testing.T) {
	for name, want := range map[string]string{
		"my-rig": "mr", "gastown": "ga", "Gas Town": "gt", "a b c d e f": "abcd", "x": "xx", "web3": "we",
		"": "bd", "日本語": "bd", "42": "bd", "über-app": "ba", "2fa_service": "fs",
	} {
		if got := BeadPrefix(name); got != want {
			t.Errorf("BeadPrefix(%q) = %q, want %q", name, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		prefix := BeadPrefix(rapid.String().Draw(t, "name"))
		if len(prefix) < 2 || len(prefix) > 4 || strings.Trim(prefix, "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Fatalf("prefix %q", prefix)
		}
	})
}

func TestVersions(t *testing.T) {
	for _, good := range []string{"0.0.0", "1.0.0", "10.20.30", "1.0.0-rc.1", "1.0.0-alpha-2+build.007", "1.0.0+x"} {
		mustParse(t, minimal+"header: {version: \""+good+"\"}\n")
	}
	for _, bad := range []string{"", "1", "1.0", "1.0.0.0", "1.0.x", "1.0.0-", "1.0.0+", "1.0.0-01", "1.0.0-a..b", "1.0.0-é", "-1.0.0", "1.00.0", "1.0.0-\x11"} {
		if def, _ := Parse("f", fmt.Appendf(nil, "%sheader: {version: %q}\n", minimal, bad)); def != nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestStatePaths(t *testing.T) {
	for text, want := range map[string]string{
		"state/mail/": "state/mail", "./state/mail": "state/mail", ".chipset/state/mail": "state/mail", "state//hooks": "state/hooks",
	} {
		if got, err := statePath(text); got != want || err != nil {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "state", ".", "state/..", "../state/mail", "/state/mail", "~/state", "statement/x", "state/\n", ".chipset/run", ".chipset/.chipset/state/x"} {
		if got, err := statePath(bad); err == nil {
			t.Errorf("%q is accepted as %q", bad, got)
		}
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"stall_detection", "nudge_interval", "restart_threshold", "tick", "test"}
	for word, want := range map[string]string{
		"stall-detection": "stall_detection", "StallDetection": "stall_detection", "stal_detection": "stall_detection",
		"nugde_interval": "nudge_interval", "tik": "tick", "tset": "test", "zzzz": "", "": "", strings.Repeat("x", 1000): "",
	} {
		got := suggest(word, known)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"1024": 1024, "64KiB": 65536, "64 KiB": 65536, "64K": 65536, "64kB": 65536, "2_048": 2048, "1.5KiB": 1536, "5000B": 5000,
	} {
		if got := mustParse(t, minimal+"mail: {max_size: "+text+"}\n").Mail.MaxSize; got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	for _, bad := range []string{`""`, "KiB", "0", "64TiB", "x", "1 000", "-5", "9999999999999GiB", "99999999999999999999999999"} {
		if def, _ := Parse("f", []byte(minimal+"mail: {max_size: "+bad+"}\n")); def != nil {
			t.Errorf("%s is %d", bad, def.Mail.MaxSize)
		}
	}
}
