package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/board/web"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// webAddress is where the web board listens unless told otherwise.
const webAddress = "127.0.0.1:7333"

type webOptions struct {
	web, open         bool
	listen, tokenFile string
}

// AddFlags registers the flags of the web board.
func (o *webOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.web, "web", false, "serve the board to a browser on this machine, at ADDRESS (default "+webAddress+")")
	fs.BoolVar(&o.open, "open", false, "open the browser")
	fs.StringVar(&o.listen, "listen", "", "listen on this `address`, which other machines may reach; requires --token-file")
	fs.StringVar(&o.tokenFile, "token-file", "", "open the board with the token in this `file` (mode 0600), not with a one-time token")
}

// check returns the address to listen on. Errors: usage.
func (o *webOptions) check(args []string) (string, error) {
	switch {
	case !o.web && (o.open || o.listen != "" || o.tokenFile != "" || len(args) > 0):
		return "", usagef("ADDRESS, --open, --listen and --token-file belong to --web")
	case o.listen != "" && o.tokenFile == "":
		return "", withHint(usagef("--listen requires --token-file"), "on this machine alone, leave both out; from another, ssh -L 7333:"+webAddress+" is safer")
	case o.listen != "" && len(args) > 0:
		return "", usagef("either ADDRESS or --listen")
	case o.listen != "":
		return o.listen, nil
	}
	address := webAddress
	if len(args) > 0 {
		address = args[0]
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", withHint(usagef("%v", err), "an address is like "+webAddress)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", withHint(usagef("%s can be reached from other machines", address), "--listen "+address+" --token-file FILE is for that")
	}
	return address, nil
}

// runWebBoard serves the board until the context ends. Only the person may start it, because its
// acts are the person's.
func (a *app) runWebBoard(ctx context.Context, r *rig.Rig, o webOptions, address string) error {
	who, err := a.identity(r)
	if err == nil && who != state.Human {
		err = state.Conflictf("board --web", "it is the person's, and this is %s", who)
	}
	if err == nil {
		err = a.checkPerson(r.Dir)
	}
	if err != nil {
		return err
	}
	token, err := a.boardToken(o.tokenFile)
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return withHint(fmt.Errorf("board: %w", err), "chipset board --web 127.0.0.1:0 takes any free port")
	}
	defer l.Close()
	options := web.Options{Rig: r, Token: token, Key: a.boardKey(r.Dir), Run: func(ctx context.Context, args []string) (string, error) { return a.inside(ctx, r, args) }}
	if w, err := state.NewWatcher(r.Tree); err == nil { // without notification it looks every second
		defer w.Close()
		options.Watcher = w
		r.Follow(w)
		defer r.Follow(nil)
	}
	open := o.open
	options.Address = func(url string) {
		if token != "" {
			url, _, _ = strings.Cut(url, "?")
			url += "?token=… (the one of " + o.tokenFile + ")"
		}
		_ = a.did(boardAddress{url}, nil, "%s\n", url) // a lost write is reported when the command ends
		if open && token == "" {
			open = false
			a.openBrowser(ctx, url)
		}
	}
	s, err := web.New(options)
	if err != nil {
		return err
	}
	return s.Serve(ctx, l)
}

// boardAddress is what board --web --json prints.
type boardAddress struct {
	URL string `json:"url"`
}

// boardToken reads the file of --token-file, "" without one.
func (a *app) boardToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	token, err := readSecret(a.abs(file))
	const least = 16
	if err == nil && len(token) < least {
		err = withHint(usagef("the token in %s has less than %d characters", file, least), "openssl rand -hex 32 > "+file)
	}
	return token, err
}

// boardKey returns a secret of the person for the board of a rig. It is generated at the first
// use; "" if that fails, and open pages then end with the server.
func (a *app) boardKey(rigDir string) string {
	path := filepath.Join(filepath.Dir(a.tokenFile()), "board-key")
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		secret := make([]byte, 32)
		rand.Read(secret) // never returns an error
		whole := fmt.Sprintf("%s.%d", path, os.Getpid())
		err := os.MkdirAll(filepath.Dir(path), 0o700) //nolint:forbidigo // the person's own folder, outside of the tree
		if err == nil {
			err = os.WriteFile(whole, []byte(hex.EncodeToString(secret)), 0o600) //nolint:forbidigo // as above
		}
		if err == nil {
			_ = os.Link(whole, path) //nolint:forbidigo // as above; another board may have been faster
			_ = os.Remove(whole)     //nolint:forbidigo // as above
		}
	}
	key, err := a.boardToken(path)
	if err != nil {
		return ""
	}
	return key + "\x00" + rigDir
}

// openBrowser opens an address. The address is passed in a private file, because every process
// can read the arguments of a command.
func (a *app) openBrowser(ctx context.Context, url string) {
	dir := filepath.Dir(a.tokenFile())
	page := `<!doctype html><meta http-equiv="refresh" content="0; url=` + html.EscapeString(url) + `"><title>chipset</title>`
	err := os.MkdirAll(dir, 0o700) //nolint:forbidigo // the person's own folder, outside of the tree
	file := filepath.Join(dir, fmt.Sprintf("board-%d.html", os.Getpid()))
	if err == nil {
		err = os.WriteFile(file, []byte(page), 0o600) //nolint:forbidigo // as above
	}
	if err == nil {
		program := "xdg-open"
		if runtime.GOOS == "darwin" {
			program = "open"
		}
		err = exec.CommandContext(ctx, program, file).Start()
	}
	if err != nil {
		a.warnf("the browser: %v", err)
	}
	const wait = 20 * time.Second            // for the browser to read it
	remove := func() { _ = os.Remove(file) } //nolint:forbidigo // as above
	time.AfterFunc(wait, remove)
	context.AfterFunc(ctx, remove)
}
