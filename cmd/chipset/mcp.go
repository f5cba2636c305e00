package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/mcpserver"
	"github.com/gastown-chipset/chipset/state"
)

// envToken is what HTTP clients of chipset mcp must bear; without it a token is made at each start.
const envToken = "CHIPSET_MCP_TOKEN"

type mcpOptions struct{ http, crew string }

// AddFlags registers the flags of mcp.
func (o *mcpOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.http, "http", "", "serve HTTP on this `address` of the machine itself, such as 127.0.0.1:7777, instead of standard input and output")
	fs.StringVar(&o.crew, "crew", "", "speak as the crew agent of this `name`, registered if it is new, unless another flag or variable names the agent")
}

func newMCPCmd(a *app) *cobra.Command {
	var opts mcpOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "mcp",
		Short: "Serve the rig to a client of the Model Context Protocol",
		Long: `Serve mail, hook, beads, convoys, queue and hand-offs as tools of the Model Context
Protocol, over standard input and output, for the agent that started it. The
agent is determined at the start and no call can change it. It is never the person. Outside
of a rig the server starts too, and every call says that there is no rig.

With --http it serves streamable HTTP at /mcp, on this machine alone, and prints the
address; port 0 takes a free one. Whoever connects acts as the same agent and must send a
token: the secret in $` + envToken + `, or one that is
made and printed.

The client of your own session gets the server with its plugin (chipset plugin install), or with:
` + strings.Join(clients.AddMCP(), "\n"),
		Example: "  chipset mcp --crew me\n  chipset mcp --as polecat-alpha --http 127.0.0.1:0",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runMCP(cmd.Context(), opts, a) },
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
			return nil, usagef("over MCP nobody speaks as the person: name an agent with --as, or --crew NAME")
		}
		return me, err
	}})
	if opts.http == "" {
		if a.json {
			return usagef("mcp: --json is for --http: standard output belongs to the protocol")
		}
		return server.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(a.stdin), Writer: unclosed{a.stdout}})
	}
	l, err := mcpserver.Listen(ctx, opts.http)
	if err != nil {
		return err
	}
	address, token := fmt.Sprintf("http://%s%s", l.Addr(), mcpserver.Path), a.env(envToken)
	text, made := address+"\n", ""
	if token == "" {
		token = rand.Text()
		text, made = text+"token "+token+"\n", token
	}
	if err := a.did(mcpAddress{address, made}, nil, "%s", text); err != nil {
		return err
	}
	return server.Serve(ctx, l, token)
}

// mcpAddress is what mcp --http --json prints; the token only where it was made.
type mcpAddress struct {
	URL   string `json:"url"`
	Token string `json:"token,omitempty"`
}

// unclosed is standard output, which is not the transport's to close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
