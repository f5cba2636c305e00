//go:build !linux

package sandbox

import (
	"errors"
	"os"
	"syscall"
)

// NetworkMissing returns why no command can be given a network of its own on this machine, or nil.
func NetworkMissing() error { return errors.New("a network for each command needs Linux") }

// OwnNetwork does nothing here.
func OwnNetwork(*syscall.SysProcAttr) {}

// EnterNetwork returns NetworkMissing.
func EnterNetwork([]string) ([]*os.File, error) { return nil, NetworkMissing() }

// OwnSharedMemory does nothing here.
func OwnSharedMemory(*syscall.SysProcAttr) {}
