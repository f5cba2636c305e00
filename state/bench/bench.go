// Package bench measures sends: those of this program, and loops of system calls as
// baselines. A figure means nothing without a baseline of the same run, because machines
// differ and disks have noisy spells.
package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/disk"
)

// prefix begins the names of scratch folders.
const prefix = ".chipset-bench-"

// Scratch makes a folder to measure in, below dir. remove removes it with its content.
func Scratch(dir string) (path string, remove func() error, err error) {
	path, err = os.MkdirTemp(dir, prefix)
	if err != nil {
		return "", nil, err
	}
	return path, func() error { return os.RemoveAll(path) }, nil
}

// Folder makes a folder below a scratch folder. Each series needs a new one, because some
// file systems are slow to make files where many were removed.
func Folder(scratch, name string) (string, error) {
	at := filepath.Join(scratch, name)
	return at, os.MkdirAll(at, disk.FolderPerm)
}

// Send publishes the i-th message of a series durably.
type Send func(i int) error

// Rate returns how many sends per second a number of concurrent senders achieve. Each
// takes the next message when its last one is acknowledged.
func Rate(senders, total int, send Send) (float64, error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, senders)
	runtime.GC()        // so that this series does not pay for earlier ones
	began := time.Now() //nolint:forbidigo // a measurement
	for s := range senders {
		wg.Go(func() {
			for errs[s] == nil {
				i := int(next.Add(1)) - 1
				if i >= total {
					return
				}
				errs[s] = send(i)
			}
		})
	}
	wg.Wait()
	return float64(total) / time.Since(began).Seconds(), errors.Join(errs...)
}

// Plain is the plain protocol: a temp file, write, fsync, rename, fsync of the
// folder. It keeps nothing open between messages.
func Plain(dir string, data []byte) Send { return PlainNamed(dir, "m", data) }

// PlainNamed is Plain with a prefix of the names.
func PlainNamed(dir, prefix string, data []byte) Send {
	return func(i int) error {
		name := filepath.Join(dir, fmt.Sprintf("%s%08d.json", prefix, i))
		f, err := os.OpenFile(name+".tmp", os.O_WRONLY|os.O_CREATE|os.O_EXCL, disk.Perm)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		if err == nil {
			err = f.Sync()
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		if err := os.Rename(name+".tmp", name); err != nil {
			return err
		}
		return disk.OS{}.SyncDir(dir)
	}
}

// Cheapest is a bare loop of the cheapest calls that give the same guarantee on the file
// system of dir, with one file for each message and one sender. The folder stays open,
// and nothing is checked.
func Cheapest(dir string, data []byte) (send Send, closer func() error, err error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	unnamed := disk.OS{}.Features(dir).Unnamed
	return func(i int) error {
		name := filepath.Join(dir, fmt.Sprintf("m%08d.json", i))
		if err := cheapest(dir, name, data, unnamed); err != nil {
			return err
		}
		return folder.Sync()
	}, folder.Close, nil
}

func cheapest(dir, name string, data []byte, unnamed bool) error {
	d := disk.OS{}
	var f disk.File
	var err error
	if unnamed {
		f, err = d.Unnamed(dir)
	} else {
		f, err = d.Create(name + ".tmp")
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err == nil && unnamed {
		err = d.Link(f, name)
	}
	if err := errors.Join(err, f.Close()); err != nil || unnamed {
		return err
	}
	return d.RenameNew(name+".tmp", name)
}

// Own sends each message with WriteNew.
func Own(t *state.Tree, dir state.Path, data []byte) Send { return OwnNamed(t, dir, "m", data) }

// OwnNamed is Own with a prefix of the names.
func OwnNamed(t *state.Tree, dir state.Path, prefix string, data []byte) Send {
	return func(i int) error {
		return t.WriteNew(dir.Join(fmt.Sprintf("%s%08d.json", prefix, i)), data)
	}
}

// OwnBatch sends messages with one WriteAll and returns the messages per second.
func OwnBatch(t *state.Tree, dir state.Path, data []byte, total int) (float64, error) {
	news := make([]state.NewFile, total)
	for i := range news {
		news[i] = state.NewFile{Path: dir.Join(fmt.Sprintf("m%08d.json", i)), Data: data}
	}
	runtime.GC()
	began := time.Now() //nolint:forbidigo // a measurement
	errs := t.WriteAll(news)
	return float64(total) / time.Since(began).Seconds(), errors.Join(errs...)
}
