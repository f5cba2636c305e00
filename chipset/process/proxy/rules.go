package proxy

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Rules say where a command may connect to.
type Rules struct {
	// Allow are hosts: a name, "*." and the end of names, an address, or a range of addresses as 10.0.0.0/8. A name or an
	// address with a port (localhost:4000) is allowed with that port, otherwise with 80 and 443.
	Allow []string `json:"allow,omitempty"`
}

// split returns a host in the form that rules have, and its port, "" for none.
func split(text string) (host, port string) {
	host = text
	if h, p, err := net.SplitHostPort(text); err == nil {
		host, port = h, p
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), "."), port
}

// host reports whether a connection to a host is allowed. It says nothing of the addresses that the host has.
func (r *Rules) host(host, port string) bool {
	if strings.Contains(host, "%") {
		return false // an address with a zone, such as 2001:db8::1%.example.org, ends like a name
	}
	return slices.ContainsFunc(r.Allow, func(rule string) bool {
		if prefix, err := netip.ParsePrefix(rule); err == nil {
			addr, err := netip.ParseAddr(host)
			return err == nil && prefix.Contains(addr.Unmap()) && (port == "80" || port == "443")
		}
		name, only := split(rule)
		if only != "" && only != port || only == "" && port != "80" && port != "443" {
			return false
		}
		end, isEnd := strings.CutPrefix(name, "*.")
		addr, err := netip.ParseAddr(host)
		return name == host || name == "localhost" && err == nil && addr.IsLoopback() || isEnd && strings.HasSuffix(host, "."+end)
	})
}

// address reports whether a connection to an address is allowed, whether a name resolved to it or it was given. An address that only
// this machine or its network can reach must be listed itself, because the owner of a name decides where it leads.
func (r *Rules) address(addr netip.Addr) bool {
	addr = addr.Unmap()
	if public(addr) {
		return true
	}
	return slices.ContainsFunc(r.Allow, func(rule string) bool {
		if prefix, err := netip.ParsePrefix(rule); err == nil {
			return prefix.Contains(addr)
		}
		name, _ := split(rule)
		named, err := netip.ParseAddr(name)
		return err == nil && named == addr || name == "localhost" && addr.IsLoopback()
	})
}

// public reports whether an address is one of the internet's.
func public(addr netip.Addr) bool {
	if !addr.IsGlobalUnicast() || addr.IsPrivate() {
		return false
	}
	for _, special := range []string{"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "fec0::/10"} {
		if netip.MustParsePrefix(special).Contains(addr) {
			return false
		}
	}
	return true
}

// Local returns the rules about ports of this very machine, as addresses to listen on: 127.0.0.1:4000 for localhost:4000.
func (r *Rules) Local() []string {
	var all []string
	for _, rule := range r.Allow {
		host, port := split(rule)
		if host == "localhost" {
			host = "127.0.0.1"
		}
		if addr, err := netip.ParseAddr(host); err == nil && addr.IsLoopback() && port != "" {
			all = append(all, net.JoinHostPort(host, port))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
