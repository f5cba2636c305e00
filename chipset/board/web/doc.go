// Package web is the board in a browser: pages that net/http serves and html/template
// writes, kept up to date by server-sent events. Scripts, styles and the layout library are
// embedded; nothing is fetched from anywhere.
//
//	state tree ──notification──▶ follow: view.Model ──names of parts──▶ /live ──▶ the page fetches itself again
//	form ──POST──▶ guard ──▶ act.Act ──▶ Options.Run: the command itself
//
// A page is whole without its script. The script swaps what has changed, and keeps what the
// person is typing.
//
// # Who gets in
//
// The printed address holds a token that works once. It is exchanged for a cookie (HttpOnly,
// SameSite=Strict) whose path is a random folder: browsers send cookies to every port of a
// host, so a server that an agent has started on the same machine would get it otherwise.
// Each request must name the board's own host, come from nowhere but the board's own pages,
// and, to change something, be a POST with the session's CSRF token. The content security
// policy allows no inline script and no style of others. All text goes through html/template,
// and is cleaned of control characters and of turned writing directions before.
package web
