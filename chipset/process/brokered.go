package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/process/broker"
)

// BrokeredArg is the hidden argument with which the binary runs a command for a
// worker. Behind it stand the number of the files that were handed over, their names,
// and the command line; the files are the descriptors from 3 on.
const BrokeredArg = "brokered"

// BrokeredArgs splits the arguments after BrokeredArg.
func BrokeredArgs(args []string) (files, command []string, err error) {
	if len(args) > 0 {
		if n, err := strconv.Atoi(args[0]); err == nil && n >= 0 && n < len(args) {
			return args[1 : 1+n], args[1+n:], nil
		}
	}
	return nil, nil, errors.New("only a supervisor starts this")
}

// listen makes the socket of the command's broker before the command could look for it.
func (s *supervisor) listen() error {
	if s.spec.Broker == nil {
		return nil
	}
	address, err := broker.ParseAddress(s.spec.Broker.Address)
	if err == nil {
		s.broker, err = broker.Listen(address, broker.Options{Belongs: descends, Run: s.runBrokered})
	}
	return err
}

func (s *supervisor) serve() {
	if s.broker != nil {
		go s.broker.Serve()
	}
}

func (s *supervisor) unlisten() {
	if s.broker != nil {
		s.broker.Close()
	}
}

// runBrokered runs a command for a caller, as the agent that the job belongs to.
func (s *supervisor) runBrokered(c broker.Command, signals <-chan unix.Signal) broker.Status {
	if most := s.maxCalls(); most > 0 && s.calls.Add(1) > most {
		const conflict = 4
		return broker.Status{Code: conflict, Error: fmt.Sprintf("this session has run %d commands on its rig (limits.commands)", most)}
	}
	self, err := os.Executable()
	if err != nil {
		return broker.Status{Code: 1, Error: err.Error()}
	}
	argv := append([]string{filepath.Base(self), BrokeredArg, strconv.Itoa(len(c.Files))}, c.Files...)
	attr := &syscall.ProcAttr{Dir: s.spec.Broker.Dir, Env: s.brokeredEnv()}
	for _, fd := range c.Descriptors {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	pid, ended, err := s.child.spawn(self, append(argv, c.Args...), attr)
	if err != nil {
		return broker.Status{Code: 1, Error: (&fs.PathError{Op: "exec", Path: self, Err: err}).Error()}
	}
	for {
		select {
		case sig := <-signals:
			s.child.signalSpawned(pid, sig)
		case status := <-ended:
			if status.Signaled() {
				return broker.Status{Code: 128 + int(status.Signal())}
			}
			return broker.Status{Code: status.ExitStatus()}
		}
	}
}

// maxCalls is how many commands are run for the command, 0 for any number.
func (s *supervisor) maxCalls() int64 {
	if s.spec.Broker == nil {
		return 0
	}
	return int64(s.spec.Broker.MaxCalls)
}

// brokeredEnv is the environment of the commands that run for a worker.
func (s *supervisor) brokeredEnv() []string {
	env := s.spec.Broker.Env[:len(s.spec.Broker.Env):len(s.spec.Broker.Env)]
	for _, entry := range s.spec.Env {
		if strings.HasPrefix(entry, envPrefix) && !strings.HasPrefix(entry, broker.EnvAddress+"=") {
			env = append(env, entry)
		}
	}
	return inDirectory(env, s.spec.Broker.Dir)
}
