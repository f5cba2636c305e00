package process

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/process/proxy"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
)

// needNetwork skips where no command can have a network of its own.
func needNetwork(t testing.TB) {
	t.Helper()
	needLandlock(t)
	if err := sandbox.NetworkMissing(); err != nil {
		t.Skip(err)
	}
}

// hostServer is a service of the machine, and the name of its port.
func hostServer(t *testing.T) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "the machine's") }))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestBoxHasANetworkOfItsOwn(t *testing.T) {
	needNetwork(t)
	address := hostServer(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	curl := "curl -sS -m 5 -f "
	tests := []struct {
		name, script string
		allow        []string
		reached      bool
	}{
		{"past the proxy", curl + "--noproxy '*' http://" + address, nil, false},
		{"by the proxy", curl + "--noproxy '' http://" + address, nil, false},
		{"by the proxy, a name of the machine", curl + "--noproxy '' http://localhost:" + port, nil, false},
		{"by a tunnel", curl + "--noproxy '' -p http://" + address, nil, false},
		{"named", curl + "http://localhost:" + port, []string{"localhost:" + port}, true},
		{"named, by the proxy", curl + "--noproxy '' http://localhost:" + port, []string{"localhost:" + port}, true},
		{"a range of addresses is no port", curl + "--noproxy '' http://" + address, []string{"127.0.0.0/8"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			spec := b.boxed(test.script)
			spec.Sandbox.Network = &proxy.Rules{Allow: test.allow}
			exit := b.run(spec)
			if got := strings.Contains(b.log(), "the machine's"); got != test.reached || (exit.Code == 0) != test.reached {
				t.Errorf("reached %v, exit %+v: %s", got, exit, b.log())
			}
		})
	}
}

// A command's own servers are where its clients look for them.
func TestBoxKeepsItsOwnLoopback(t *testing.T) {
	needNetwork(t)
	b := newBench(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec := b.boxed("")
	spec.Argv = []string{self, "-test.run=^TestServeYourself$", "-test.v"}
	spec.Env = append(spec.Env, "SERVE_YOURSELF=1")
	spec.Sandbox.Network = &proxy.Rules{}
	if exit := b.run(spec); exit.Code != 0 || !strings.Contains(b.log(), "--- PASS") {
		t.Errorf("exit %+v: %s", exit, b.log())
	}
}

func TestServeYourself(t *testing.T) {
	if os.Getenv("SERVE_YOURSELF") == "" {
		t.Skip("it is run by TestBoxKeepsItsOwnLoopback")
	}
	for _, on := range []string{"127.0.0.1:0", "[::1]:0", "localhost:0", "0.0.0.0:0"} {
		l, err := net.Listen("tcp", on)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.NotFoundHandler()}
		go func() { _ = server.Serve(l) }()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		host, _, _ := net.SplitHostPort(on)
		if host == "0.0.0.0" {
			host = "localhost"
		}
		answer, err := http.Get("http://" + net.JoinHostPort(host, port))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		server.Close()
	}
}

func TestBoxRecordsTheHosts(t *testing.T) {
	needNetwork(t)
	address := hostServer(t)
	_, port, _ := net.SplitHostPort(address)
	b := newBench(t)
	spec := b.boxed("curl -s -m 5 http://localhost:" + port + "; curl -s -m 5 https://registry.example.org; curl -s -m 5 http://user@registry.example.org/x; curl -s http://other.example.org:8443")
	spec.Sandbox.Network = &proxy.Rules{Allow: []string{"localhost:" + port}}
	exit := b.run(spec)
	if len(exit.Hosts) != 3 {
		t.Fatalf("%+v: %s", exit.Hosts, b.log())
	}
	refused := map[string]int{}
	for _, h := range exit.Hosts {
		refused[h.Host] = h.Refused
	}
	if refused["registry.example.org"] != 2 || refused["other.example.org:8443"] != 1 || refused["127.0.0.1:"+port] != 0 {
		t.Errorf("%+v", exit.Hosts)
	}
	if last := exit.Hosts[2]; last.Connections != 1 || last.Received == 0 || last.Sent == 0 {
		t.Errorf("%+v", last)
	}
	if read, _, err := ReadExit(spec.Record); err != nil || len(read.Hosts) != 3 {
		t.Errorf("record %+v: %v", read, err)
	}
}

// Where a machine refuses namespaces, no command runs that could reach more than the rules say.
func TestNothingRunsWithoutNamespaces(t *testing.T) {
	if sandbox.NetworkMissing() == nil {
		if err := exec.Command("unshare", "-r", "true").Run(); err != nil {
			t.Skipf("this user can't make a user namespace: %v", err)
		}
		again := exec.Command("unshare", "-r", "sh", "-c", `echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"`, "sh",
			os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("without namespaces: %v\n%s", err, out)
		}
		return
	}
	b := newBench(t)
	spec := b.boxed("echo it runs")
	spec.Sandbox.Network = &proxy.Rules{}
	if exit := b.run(spec); !strings.Contains(exit.Error, "network.allow can't be enforced") || strings.Contains(b.log(), "it runs") {
		t.Errorf("%+v: %s", exit, b.log())
	}
	if said := sandbox.Describe(sandbox.Auto, true); !strings.Contains(said, "nothing can run") {
		t.Errorf("status says %q", said)
	}
}
