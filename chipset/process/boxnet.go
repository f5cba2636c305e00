package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/process/proxy"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
)

// proxyAddress is where a command finds its proxy. The port is none that a system gives to who asks for any.
const proxyAddress = "127.0.0.1:61080"

// maxListeners bounds the descriptors of one message.
const maxListeners = 64

// isolate has a box start with a network of its own, where its command may not reach everything. Where the machine has
// none, the command keeps the machine's, unless the profile requires a whole sandbox.
func (s *supervisor) isolate(attr *syscall.ProcAttr) error {
	rules := s.spec.Sandbox.Network
	if rules == nil {
		return nil
	}
	if err := sandbox.NetworkMissing(); err != nil {
		if s.spec.Sandbox.Mode == sandbox.Require {
			return fmt.Errorf("sandbox: network: %w", err)
		}
		return nil
	}
	sandbox.OwnNetwork(attr.Sys)
	attr.Env = append(withoutProxy(attr.Env), proxyVariables()...)
	s.proxy = proxy.New(*rules)
	return nil
}

// withoutProxy returns an environment without the variables that name a proxy of the machine.
func withoutProxy(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY"}, strings.ToUpper(name))
	})
}

// proxyVariables lead the clients of HTTP to the proxy, and not to it for what listens on the command's own loopback.
func proxyVariables() []string {
	var all []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		all = append(all, name+"=http://"+proxyAddress, strings.ToLower(name)+"=http://"+proxyAddress)
	}
	const own = "localhost,127.0.0.1,::1"
	return append(all, "NO_PROXY="+own, "no_proxy="+own, "NODE_USE_ENV_PROXY=1")
}

// listens returns the addresses that a box shall listen on: the proxy's, and those of the machine's own services that
// the command may use.
func (s *supervisor) listens() []string {
	if s.proxy == nil {
		return nil
	}
	all := append([]string{proxyAddress}, s.spec.Sandbox.Network.Local()...)
	return all[:min(len(all), maxListeners)]
}

// handOver brings up the network of a box and hands listeners on its addresses over to the supervisor.
func handOver(addresses []string) error {
	if len(addresses) == 0 {
		return nil
	}
	files, err := sandbox.EnterNetwork(addresses)
	if err != nil {
		return err
	}
	var descriptors []int
	for _, file := range files {
		descriptors = append(descriptors, int(file.Fd()))
	}
	err = unix.Sendmsg(boxLink, []byte("\n"), unix.UnixRights(descriptors...), nil, 0)
	for _, file := range files {
		_ = file.Close()
	}
	return err
}

// takeListeners takes what handOver sends, and serves there. A box that has failed sends an answer instead.
func (s *supervisor) takeListeners(link *os.File) error {
	addresses := s.listens()
	if len(addresses) == 0 {
		return nil
	}
	text, ancillary := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*maxListeners))
	n, an, _, _, err := unix.Recvmsg(int(link.Fd()), text, ancillary, 0) // nothing else is forked meanwhile
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(ancillary[:an])
	if err != nil || len(messages) != 1 {
		var a boxAnswer
		if json.Unmarshal(text[:n], &a) == nil && a.Error != "" {
			return errors.New(a.Error)
		}
		return errors.Join(errors.New("it ended before the command began"), err)
	}
	descriptors, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(descriptors) != len(addresses) {
		return errors.Join(errors.New("it has no network"), err)
	}
	for i, fd := range descriptors {
		unix.CloseOnExec(fd)
		file := os.NewFile(uintptr(fd), "listener")
		l, err := net.FileListener(file)
		_ = file.Close()
		if err != nil {
			return err
		}
		if i == 0 {
			go s.proxy.Serve(l)
		} else {
			go s.proxy.Relay(l, addresses[i])
		}
	}
	return nil
}

// closeNetwork ends the proxy and records what went through it.
func (s *supervisor) closeNetwork() {
	if s.proxy != nil {
		s.proxy.Close()
		s.exit.Hosts = s.proxy.Visits()
	}
}
