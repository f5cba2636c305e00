package proxy

import (
	"net/netip"
	"slices"
	"testing"
)

func TestHosts(t *testing.T) {
	r := Rules{Allow: []string{"registry.example.org", "*.cdn.example.org", "db.example.org:5432", "10.0.0.0/8", "127.0.0.1:4000", "localhost:4001", "[::1]:4002"}}
	for _, c := range []struct {
		host, port string
		allowed    bool
	}{
		{"registry.example.org", "443", true},
		{"registry.example.org", "80", true},
		{"registry.example.org", "22", false},
		{"x.registry.example.org", "443", false},
		{"registry.example.org.evil.example", "443", false},
		{"a.cdn.example.org", "443", true},
		{"a.b.cdn.example.org", "443", true},
		{"cdn.example.org", "443", false},
		{"evilcdn.example.org", "443", false},
		{"db.example.org", "5432", true},
		{"db.example.org", "443", false},
		{"10.1.2.3", "443", true},
		{"10.1.2.3", "22", false},
		{"11.1.2.3", "443", false},
		{"127.0.0.1", "4000", true},
		{"127.0.0.1", "4001", true},
		{"127.0.0.1", "80", false},
		{"localhost", "4000", false},
		{"::1", "4002", true},
		{"2606:4700:4700::1111%.cdn.example.org", "443", false}, // Go connects to the address, and the zone is nobody's
		{"", "443", false},
	} {
		if got := r.host(c.host, c.port); got != c.allowed {
			t.Errorf("%s:%s: %t", c.host, c.port, got)
		}
	}
	if got, want := r.Local(), []string{"127.0.0.1:4000", "127.0.0.1:4001", "[::1]:4002"}; !slices.Equal(got, want) {
		t.Errorf("own ports %q, want %q", got, want)
	}
}

// A name that is allowed may have an address that is not: whoever has the name decides where it leads.
func TestAddresses(t *testing.T) {
	names := Rules{Allow: []string{"registry.example.org", "*.example.org"}}
	for _, text := range []string{"127.0.0.1", "::1", "0.0.0.0", "::", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "fe80::1", "fd00::1", "fec0::1",
		"100.64.0.1", "224.0.0.1", "255.255.255.255", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "0.1.2.3", "198.18.0.1", "::7f00:1"} {
		if names.address(netip.MustParseAddr(text)) {
			t.Errorf("%s can be reached by a name", text)
		}
	}
	for _, text := range []string{"93.184.216.34", "2606:4700:4700::1111"} {
		if !names.address(netip.MustParseAddr(text)) {
			t.Errorf("%s can't be reached", text)
		}
	}
	named := Rules{Allow: []string{"registry.corp", "10.0.0.0/8", "192.168.1.1:5000", "localhost:4000"}}
	for text, want := range map[string]bool{"10.1.2.3": true, "192.168.1.1": true, "127.0.0.1": true, "192.168.1.2": false, "169.254.169.254": false} {
		if named.address(netip.MustParseAddr(text)) != want {
			t.Errorf("%s: not %t", text, want)
		}
	}
}

func TestSplit(t *testing.T) {
	for text, want := range map[string][2]string{"Example.ORG.:443": {"example.org", "443"}, "[::1]:80": {"::1", "80"}, "[::1]": {"::1", ""}, "a.b": {"a.b", ""}} {
		if host, port := split(text); host != want[0] || port != want[1] {
			t.Errorf("%s: %q %q", text, host, port)
		}
	}
}
