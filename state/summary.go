package state

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// Summary holds the fields of an object that an overview needs.
type Summary struct {
	Name string
	// Fields is the result of the function that was passed to WithSummaries.
	Fields []string
}

// WithSummaries makes Summaries possible and returns the store. fields returns the
// Fields of an object. version is part of the name of the cache file and must change
// when the meaning of fields does.
func (s *Store[T]) WithSummaries(version string, fields func(v *T) []string) *Store[T] {
	s.fields, s.cachePath = fields, CacheDir.Join("store", s.dir.Base()+"-"+version)
	return s
}

// cacheFrom is how many objects are needed before Summaries uses a cache file.
const cacheFrom = 256

// Summaries returns a summary of every object, in the order of their names, and an error
// for each file that could not be read. err is for the folder itself. It is for a process
// that looks once: it gets the stamp of every file, and reads only files whose stamps
// differ from those in the cache file.
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
	var known map[string]*summarized
	if len(files) >= cacheFrom {
		known = s.loadSummaries()
	}
	now := time.Now() //nolint:forbidigo // the age of a file, not what time it is
	results := ReadMany(files, func(file string, buf []byte) summarized {
		k := known[file]
		if stamp, err := dir.Stat(file); k != nil && err == nil && k.stamp == stamp {
			return *k
		}
		c, gone := s.readFile(dir, file, buf)
		if gone || c.err != nil {
			return summarized{err: c.err}
		}
		return summarized{stamp: c.stamp, fresh: c.stamp.Settled(now), read: true,
			Summary: Summary{Name: strings.TrimSuffix(file, suffix), Fields: s.fields(&c.value)}}
	})
	summaries, bad := s.collectSummaries(results)
	return summaries, bad, nil
}

// summarized is the result for one file.
type summarized struct {
	Summary
	// stamp is that of the version that was read; err is set if it could not be read.
	stamp Stamp
	err   error
	// fresh is true when no later version can have the same stamp, and read when the
	// summary is not from the cache file.
	fresh, read bool
}

// collectSummaries splits the results into summaries and errors, and writes the cache
// file if many are new.
func (s *Store[T]) collectSummaries(results []summarized) (summaries []Summary, bad []error) {
	var keep []summarized
	read := 0
	for _, r := range results {
		switch {
		case errors.Is(r.err, ErrNotFound): // removed meanwhile
			continue
		case r.err != nil:
			bad = append(bad, r.err)
			continue
		}
		summaries = append(summaries, r.Summary)
		if r.fresh {
			keep = append(keep, r)
			if r.read {
				read++
			}
		}
	}
	if len(keep) >= cacheFrom && read > len(keep)/64 {
		s.storeSummaries(keep)
	}
	return summaries, bad
}

// storeSummaries writes the cache file: for each object the stamp of its file, the name,
// the number of fields, and the fields.
func (s *Store[T]) storeSummaries(all []summarized) {
	w := &CacheWriter{Data: make([]byte, 0, 128*len(all))}
	for _, b := range all {
		w.Stamp(b.stamp)
		w.Text(b.Name)
		w.Number(uint64(len(b.Fields)))
		for _, f := range b.Fields {
			w.Text(f)
		}
	}
	_ = s.tree.WriteCache(s.cachePath, w) // without one the next process reads the files
}

// loadSummaries returns the content of the cache file, by file name.
func (s *Store[T]) loadSummaries() map[string]*summarized {
	r, err := s.tree.ReadCache(s.cachePath)
	if err != nil {
		return nil // the files themselves are read
	}
	known := map[string]*summarized{}
	for len(r.Rest) > 0 {
		b := summarized{stamp: r.Stamp(), Summary: Summary{Name: r.Text()}, fresh: true}
		if n := r.Count(); n > 0 {
			b.Fields = make([]string, n)
			for i := range b.Fields {
				b.Fields[i] = r.Text()
			}
		}
		if !r.Bad {
			known[b.Name+suffix] = &b
		}
	}
	return known
}
