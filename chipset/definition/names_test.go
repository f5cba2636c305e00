package definition

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

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
		if len(prefix) < 2 || len(prefix) > 4 || checkPrefix(prefix) != nil {
			t.Fatalf("prefix %q", prefix)
		}
	})
}

func TestVersions(t *testing.T) {
	for _, good := range []string{"0.0.0", "1.0.0", "10.20.30", "1.0.0-rc.1", "1.0.0-alpha-2+build.007", "1.0.0+x"} {
		if err := checkVersion(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "1", "1.0", "1.0.0.0", "1.0.x", "1.0.0-", "1.0.0+", "1.0.0-01", "1.0.0-a..b", "1.0.0-é", "-1.0.0", "1.00.0", "1.0.0-\x11"} {
		if checkVersion(bad) == nil {
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
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringN(0, 20, 40).Draw(t, "a"), rapid.StringN(0, 20, 40).Draw(t, "b")
		if there, back := distance(a, b), distance(b, a); there != back || there > max(len(a), len(b)) || (there == 0) != (a == b) {
			t.Fatalf("distance %d there, %d back", there, back)
		}
	})
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1024": 1024, "64KiB": 65536, "64 KiB": 65536, "64K": 65536, "64KB": 64000, "1MiB": 1 << 20, "5B": 5, "9999999999999GiB": 1<<63 - 1,
	} {
		if got, err := parseSize(text); got != want || err != nil {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "KiB", "1.5KiB", "64kib", "64TiB", "x"} {
		if got, err := parseSize(bad); err == nil {
			t.Errorf("%q is %d", bad, got)
		}
	}
}
