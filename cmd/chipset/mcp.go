package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/mcpserver"
	"github.com/gastown-chipset/chipset/chipset/process/broker"
	"github.com/gastown-chipset/chipset/state"
)

// envToken is the bearer token for HTTP clients of chipset mcp; without it one is generated at each start.
const envToken = "CHIPSET_MCP_TOKEN"

// onSocket is the value of --http without an address.
const onSocket = "socket"

type mcpOptions struct{ http, crew string }

// AddFlags registers the flags of mcp.
func (o *mcpOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.http, "http", "", "serve HTTP on a private Unix socket, or on this `address` of the machine itself, such as 127.0.0.1:7777, instead of standard input and output")
	fs.Lookup("http").NoOptDefVal = onSocket
	fs.StringVar(&o.crew, "crew", "", "speak as the crew agent of this `name`, unless --as or $CHIPSET_AGENT names another; registered if it is new")
}

func newMCPCmd(a *app) *cobra.Command {
	var opts mcpOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "mcp",
		Short: "Serve the rig over the Model Context Protocol",
		Long: `Serve mail, hook, beads, convoys, queue and hand-offs as tools of the Model
Context Protocol, over standard input and output, for the agent that starts it.
The agent is determined at the start, no call can change it, and it is never the
person. Outside of a rig the server starts too, and every call says that there
is no rig.

With --http it serves streamable HTTP at /mcp, only to this machine, and prints
the address: a Unix socket to which no other user can connect, or the address
after --http (port 0 picks a free port). Every client acts as the same agent,
and must send a token: the secret in $` + envToken + `, or one that is
generated and printed.

The client of your own session gets the server with its plugin (chipset plugin
install), or with:
` + strings.Join(clients.AddMCP(), "\n"),
		Example: "  chipset mcp --crew me\n  chipset mcp --crew me --http\n  chipset mcp --as polecat-alpha --http 127.0.0.1:0",
		Args:    nargs(0, 1, "no argument but the address of --http"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 { // a flag that may stand alone does not take the argument behind it
				if opts.http != onSocket {
					return withHint(usagef("takes no arguments, got %q", args[0]), seeHelp(cmd))
				}
				opts.http = args[0]
			}
			return runMCP(cmd.Context(), opts, a)
		},
	})
}

func runMCP(ctx context.Context, opts mcpOptions, a *app) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := mcpserver.New(ctx, mcpserver.Options{Version: currentVersion().Version, Open: func(ctx context.Context) (*actor.Actor, error) {
		me, err := a.openRigActor(ctx)
		if err == nil && opts.crew != "" && a.nobodyNamed(me.ID) {
			me.ID, err = member(ctx, me.Rig, opts.crew)
		}
		if err == nil && me.ID == state.Human {
			return nil, usagef("mcp: nobody speaks as the person over MCP: name an agent with --as or --crew")
		}
		return me, err
	}})
	if opts.http == "" {
		if a.json {
			return usagef("mcp: --json is for --http: standard output belongs to the protocol")
		}
		return server.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(a.stdin), Writer: unclosed{a.stdout}})
	}
	l, at, err := a.listenMCP(ctx, opts)
	if err != nil {
		return err
	}
	text, token := at.URL+"\n", a.env(envToken)
	if at.Socket != "" {
		text += "socket " + at.Socket + "\n"
	}
	if token == "" {
		token = rand.Text()
		text, at.Token = text+"token "+token+"\n", token
	}
	if err := a.did(at, nil, "%s", text); err != nil {
		return errors.Join(err, l.Close())
	}
	return server.Serve(ctx, l, token)
}

// mcpAddress is what mcp --http --json prints; the socket only where there is one, the token only where it was made.
type mcpAddress struct {
	URL    string `json:"url"`
	Socket string `json:"socket,omitempty"`
	Token  string `json:"token,omitempty"`
}

// listenMCP opens what mcp --http names. The socket of a folder and an agent has the same path at every start.
func (a *app) listenMCP(ctx context.Context, opts mcpOptions) (net.Listener, mcpAddress, error) {
	if opts.http != onSocket {
		l, err := mcpserver.Listen(ctx, opts.http)
		if err != nil {
			return nil, mcpAddress{}, err
		}
		return l, mcpAddress{URL: fmt.Sprintf("http://%s%s", l.Addr(), mcpserver.Path)}, nil
	}
	dir, err := filepath.Abs(cmp.Or(a.dir, "."))
	if err != nil {
		return nil, mcpAddress{}, err
	}
	folder, err := broker.Folder()
	if err != nil {
		return nil, mcpAddress{}, err
	}
	of := sha256.Sum256([]byte(strings.Join([]string{dir, cmp.Or(a.as, a.env(envAgent)), opts.crew}, "\x00")))
	path := filepath.Join(folder, fmt.Sprintf("mcp-%x.sock", of[:6])) // as long as the name of a broker's socket
	l, err := mcpserver.ListenSocket(ctx, path)
	return l, mcpAddress{URL: "http://localhost" + mcpserver.Path, Socket: path}, err
}

// unclosed keeps the transport from closing standard output.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
