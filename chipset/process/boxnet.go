package process

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/process/proxy"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
)

// proxyAddress is where a command finds its proxy. The port lies above Linux's ephemeral ports.
const proxyAddress = "127.0.0.1:61080"

// maxListeners bounds the descriptors of one message.
const maxListeners = 64

// isolate gives the process that attr starts shared memory of its own, where the machine can, and a
// network of its own, where its command may reach listed hosts only. Where the machine can't make
// such a network it returns an error rather than run a command that reaches every host.
func (s *supervisor) isolate(attr *syscall.ProcAttr) error {
	rules := s.spec.Sandbox.Network
	if rules == nil {
		sandbox.OwnSharedMemory(attr.Sys)
		return nil
	}
	if err := sandbox.NetworkMissing(); err != nil {
		return fmt.Errorf("network.allow can't be enforced on this machine: %w (network: open needs none of that)", err)
	}
	sandbox.OwnNetwork(attr.Sys)
	sandbox.OwnSharedMemory(attr.Sys)
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

// proxyVariables make HTTP clients use the proxy, except for servers on the command's own loopback.
func proxyVariables() []string {
	var all []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		all = append(all, name+"=http://"+proxyAddress, strings.ToLower(name)+"=http://"+proxyAddress)
	}
	const own = "localhost,127.0.0.1,::1"
	return append(all, "NO_PROXY="+own, "no_proxy="+own, "NODE_USE_ENV_PROXY=1")
}

// listens returns the addresses on which a box listens: the proxy's, and those of the machine's own services that the
// command may use.
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
	err = sendFiles([]byte("\n"), files...)
	for _, file := range files {
		_ = file.Close()
	}
	return err
}

// sendFiles sends text and files over the link of a box; nil is no file.
func sendFiles(text []byte, files ...*os.File) error {
	var descriptors []int
	for _, file := range files {
		if file != nil {
			descriptors = append(descriptors, int(file.Fd()))
		}
	}
	var rights []byte
	if len(descriptors) > 0 {
		rights = unix.UnixRights(descriptors...)
	}
	err := unix.Sendmsg(boxLink, text, rights, nil, 0)
	runtime.KeepAlive(files)
	return err
}

// handedFiles reads a link, and keeps the files that come with the bytes.
type handedFiles struct {
	link  *os.File
	files []*os.File
}

func (h *handedFiles) Read(b []byte) (int, error) {
	ancillary := make([]byte, unix.CmsgSpace(4*maxListeners))
	n, an, _, _, err := unix.Recvmsg(int(h.link.Fd()), b, ancillary, 0) // nothing else is forked meanwhile
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(ancillary[:an])
	if err != nil {
		return 0, err
	}
	for i := range messages {
		descriptors, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return 0, err
		}
		for _, fd := range descriptors {
			unix.CloseOnExec(fd)
			h.files = append(h.files, os.NewFile(uintptr(fd), "of a box"))
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// take takes the files that a restricted box hands over: listeners in its network, which the proxy serves, and the
// seccomp listener for connect(2).
func (s *supervisor) take(files []*os.File) error {
	addresses := s.listens()
	if len(files) < len(addresses) {
		return errors.New("it has no network")
	}
	for i, address := range addresses {
		l, err := net.FileListener(files[i])
		_ = files[i].Close()
		if err != nil {
			return err
		}
		if i == 0 {
			go s.proxy.Serve(l)
		} else {
			go s.proxy.Relay(l, address)
		}
	}
	for _, file := range files[len(addresses):] {
		go s.guard(file)
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
