package state

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
)

// CacheDir holds what was learnt from files and can be learnt again. Nothing
// in it is believed against the files, and it may be removed at any time.
const CacheDir = RunDir + "/cache"

// cacheForm is the first line of a cache. It changes with the meaning of what
// follows: a cache of another version is none.
const cacheForm = "chipset cache 2\n"

// maxCache bounds a cache file, in bytes.
const maxCache = 256 << 20

// ReadCache returns what WriteCache put at p for this rig. What is missing,
// torn, or of another rig or version is an error, and reason enough to look at
// the files themselves.
func (t *Tree) ReadCache(p Path) ([]byte, error) {
	data, err := t.Read(p, maxCache)
	if err != nil {
		return nil, err
	}
	head := t.cacheHead()
	if len(data) < len(head)+4 || string(data[:len(head)]) != head {
		return nil, &Corruption{Path: string(p), Reason: "not a cache of this rig"}
	}
	body, sum := data[len(head):len(data)-4], binary.LittleEndian.Uint32(data[len(data)-4:])
	if checksum(body) != sum {
		return nil, &Corruption{Path: string(p), Reason: "its checksum is wrong"}
	}
	return body, nil
}

func (t *Tree) cacheHead() string { return fmt.Sprintf("%s%s\n", cacheForm, t.RigID()) }

func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// WriteCache puts a cache in place for other processes. It is not durable, and
// an error costs nobody more than another look at the files.
func (t *Tree) WriteCache(p Path, body []byte) error {
	if err := t.MkdirAll(p.Dir()); err != nil {
		return err
	}
	temp := t.Abs(p.Dir().Join(fmt.Sprintf("%s%d-%s", tempPrefix, os.Getpid(), Random(12))))
	f, err := t.disk.Create(temp)
	if err != nil {
		return wrapPath(p, err)
	}
	data := append([]byte(t.cacheHead()), body...)
	_, err = f.Write(binary.LittleEndian.AppendUint32(data, checksum(body)))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = t.disk.Rename(temp, t.Abs(p))
	}
	if err != nil {
		_ = t.disk.Remove(temp) // the first error counts
		return wrapPath(p, err)
	}
	return nil
}
