package state

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
)

// CacheDir holds cache files, which save a new process most of the work of reading a
// large folder. Each belongs to one folder and holds extracts of its files, with the
// stamps of the files. An entry is only used while its file has the same stamp. A cache
// file may be removed at any time. There are two kinds: summaries of the objects of a
// Store (Summaries), and the index of a mailbox (package mail). Both have this format:
//
//	"chipset cache 3\n"
//	the ID of the rig, "\n"
//	numbers, texts and stamps, as CacheWriter writes them
//	4 bytes: the CRC-32C of these, little-endian
//
// Caches in memory are part of Store and mail.Mailbox.
const CacheDir = RunDir + "/cache"

// cacheForm is the first line of a cache file. A file with another one is ignored.
const cacheForm = "chipset cache 3\n"

// maxCache bounds a cache file, in bytes.
const maxCache = 256 << 20

// ReadCache reads the cache file at p. It returns an error if the file is missing,
// damaged, or of another rig or version; the caller then reads the files themselves.
func (t *Tree) ReadCache(p Path) (*CacheReader, error) {
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
	return &CacheReader{Rest: body}, nil
}

func (t *Tree) cacheHead() string { return fmt.Sprintf("%s%s\n", cacheForm, t.RigID()) }

func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// WriteCache replaces the cache file at p. It is not durable.
func (t *Tree) WriteCache(p Path, w *CacheWriter) error {
	if err := t.MkdirAll(p.Dir()); err != nil {
		return err
	}
	temp := t.Abs(p.Dir().Join(fmt.Sprintf("%s%d-%s", tempPrefix, os.Getpid(), Random(12))))
	f, err := t.disk.Create(temp)
	if err != nil {
		return wrapPath(p, err)
	}
	data := append([]byte(t.cacheHead()), w.Data...)
	_, err = f.Write(binary.LittleEndian.AppendUint32(data, checksum(w.Data)))
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

// CacheWriter collects the content of a cache file.
type CacheWriter struct {
	// Data is the content so far.
	Data []byte
}

// Number appends n as a varint.
func (w *CacheWriter) Number(n uint64) { w.Data = binary.AppendUvarint(w.Data, n) }

// Text appends the length of s as a number, then s.
func (w *CacheWriter) Text(s string) {
	w.Number(uint64(len(s)))
	w.Data = append(w.Data, s...)
}

// Stamp appends the fields of s, 8 bytes each, little-endian.
func (w *CacheWriter) Stamp(s Stamp) {
	for _, v := range []uint64{s.Inode, uint64(s.Size), uint64(s.Modified), uint64(s.Changed), uint64(s.Mode), uint64(s.Links), uint64(s.Born)} {
		w.Data = binary.LittleEndian.AppendUint64(w.Data, v)
	}
}

// CacheReader reads the content of a cache file.
type CacheReader struct {
	// Rest is the content that was not read yet.
	Rest []byte
	// Bad is set by a method that did not find its value in Rest. It returned zero then.
	Bad bool
}

func (r *CacheReader) take(n uint64) []byte {
	if r.Bad || n > uint64(len(r.Rest)) {
		r.Bad, r.Rest = true, nil
		return nil
	}
	head := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return head
}

// Number reads a number.
func (r *CacheReader) Number() uint64 {
	n, size := binary.Uvarint(r.Rest)
	if r.take(uint64(max(size, 0))); size <= 0 {
		r.Bad, r.Rest = true, nil
	}
	return n
}

// Count reads the number of items that follow, each of which has at least one byte.
func (r *CacheReader) Count() int {
	n := r.Number()
	if n > uint64(len(r.Rest)) {
		r.Bad, r.Rest = true, nil
		return 0
	}
	return int(n)
}

// Text reads a text.
func (r *CacheReader) Text() string { return string(r.take(r.Number())) }

// Stamp reads a stamp.
func (r *CacheReader) Stamp() Stamp {
	raw := r.take(7 * 8)
	if len(raw) == 0 {
		return Stamp{}
	}
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(raw[8*i:]) }
	return Stamp{Inode: field(0), Size: int64(field(1)), Modified: int64(field(2)), Changed: int64(field(3)),
		Mode: uint32(field(4)), Links: uint32(field(5)), Born: int64(field(6))}
}
