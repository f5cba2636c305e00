package state

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"
)

// Summary is what an overview needs to know of an object.
type Summary struct {
	Name string
	// Fields are what the store's WithSummaries makes of the object.
	Fields []string
}

// briefed is a brief with the version of the file it was made of.
type briefed struct {
	stamp Stamp
	Summary
}

// WithSummaries makes Summaries possible: fields takes out of an object what overviews
// show of it. version is part of the name of the cache, and changes with the
// meaning of fields. It returns the store.
func (s *Store[T]) WithSummaries(version string, fields func(v *T) []string) *Store[T] {
	s.fields, s.cachePath = fields, CacheDir.Join("store", s.dir.Base()+"-"+version)
	return s
}

// manyObjects are worth a cache file.
const manyObjects = 256

// Summaries returns what an overview shows of every object, in the order of their
// names, and beside it what could not be read. It is for a process that looks
// once: of what has not changed since an earlier process looked, only the
// stamps of the files are asked for. Every file's stamp is, each time: the
// cache is never believed against it.
func (s *Store[T]) Summaries() ([]Summary, []error, error) {
	dir, err := s.tree.OpenFolder(s.dir)
	if errors.Is(err, ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	names, err := dir.Entries()
	if err != nil {
		return nil, nil, err
	}
	files := make([]string, len(names))
	for i, n := range names {
		files[i] = n.Name
	}
	slices.Sort(files)
	var known map[string]*briefed
	if len(files) >= manyObjects {
		known = s.loadBriefs()
	}
	now := time.Now() //nolint:forbidigo // the age of a file, not what time it is
	looked := ReadMany(files, func(file string, buf []byte) briefing {
		k := known[file]
		if stamp, err := dir.Stat(file); k != nil && err == nil && k.stamp == stamp {
			return briefing{briefed: *k, fresh: true}
		}
		c, gone := s.readFile(dir, file, buf)
		if gone || c.err != nil {
			return briefing{err: c.err}
		}
		b := Summary{Name: strings.TrimSuffix(file, suffix), Fields: s.fields(&c.value)}
		return briefing{briefed: briefed{c.stamp, b}, fresh: c.stamp.Settled(now), learnt: true}
	})
	briefs, bad := s.sum(looked)
	return briefs, bad, nil
}

// briefing is what became of one file.
type briefing struct {
	briefed
	err error
	// fresh is true when no later version can have the same stamp, learnt when
	// the file had to be read.
	fresh, learnt bool
}

// sum gathers the briefs, and writes the cache when much of it is new.
func (s *Store[T]) sum(looked []briefing) ([]Summary, []error) {
	var briefs []Summary
	var bad []error
	var keep []briefed
	learnt := 0
	for _, l := range looked {
		if l.err != nil {
			if !errors.Is(l.err, ErrNotFound) {
				bad = append(bad, l.err)
			}
			continue
		}
		briefs = append(briefs, l.Summary)
		if l.fresh {
			keep = append(keep, l.briefed)
			if l.learnt {
				learnt++
			}
		}
	}
	if len(keep) >= manyObjects && learnt > len(keep)/64 {
		s.storeBriefs(keep)
	}
	return briefs, bad
}

// storeBriefs writes the cache: for each object 6 × 8 bytes of stamp, then the
// name, the number of fields, and the fields, each text after its length; all
// numbers but those of the stamp are varints.
func (s *Store[T]) storeBriefs(all []briefed) {
	out := make([]byte, 0, 128*len(all))
	text := func(t string) { out = append(binary.AppendUvarint(out, uint64(len(t))), t...) }
	for _, b := range all {
		out = b.stamp.append(out)
		text(b.Name)
		out = binary.AppendUvarint(out, uint64(len(b.Fields)))
		for _, f := range b.Fields {
			text(f)
		}
	}
	_ = s.tree.WriteCache(s.cachePath, out) // without one the next look takes longer
}

// loadBriefs returns what the cache holds, by file name.
func (s *Store[T]) loadBriefs() map[string]*briefed {
	data, err := s.tree.ReadCache(s.cachePath)
	if err != nil {
		return nil // the files themselves know
	}
	known := map[string]*briefed{}
	r := textReader{text: string(data)}
	for r.text != "" && !r.bad {
		b := briefed{stamp: r.stamp(), Summary: Summary{Name: r.next()}}
		if n := r.number(); n > 0 {
			b.Fields = make([]string, 0, min(n, uint64(len(r.text))))
			for range cap(b.Fields) {
				b.Fields = append(b.Fields, r.next())
			}
		}
		if !r.bad {
			known[b.Name+suffix] = &b
		}
	}
	return known
}

func (s Stamp) append(out []byte) []byte {
	for _, v := range []uint64{s.Inode, uint64(s.Size), uint64(s.Modified), uint64(s.Changed), uint64(s.Mode), uint64(s.Links)} {
		out = binary.LittleEndian.AppendUint64(out, v)
	}
	return out
}

// textReader takes what storeBriefs wrote off the front of text, until bad.
type textReader struct {
	text string
	bad  bool
}

func (r *textReader) take(n uint64) string {
	if r.bad || n > uint64(len(r.text)) {
		r.bad, r.text = true, ""
		return ""
	}
	head := r.text[:n]
	r.text = r.text[n:]
	return head
}

func (r *textReader) number() uint64 {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		b := r.take(1)
		if b == "" {
			return 0
		}
		v |= uint64(b[0]&0x7f) << shift
		if b[0] < 0x80 {
			return v
		}
	}
	r.bad = true
	return 0
}

func (r *textReader) next() string { return r.take(r.number()) }

func (r *textReader) stamp() Stamp {
	fixed := func() uint64 {
		b := r.take(8)
		if len(b) < 8 {
			return 0
		}
		return binary.LittleEndian.Uint64([]byte(b))
	}
	return Stamp{Inode: fixed(), Size: int64(fixed()), Modified: int64(fixed()), Changed: int64(fixed()), Mode: uint32(fixed()), Links: uint32(fixed())}
}
