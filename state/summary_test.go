package state

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/state/statetest"
)

func summaryStore(tree *Tree) *Store[sample] {
	return sampleStore(tree).WithSummaries("1", func(v *sample) []string {
		return append([]string{strconv.Itoa(v.Count)}, make([]string, v.Count%3)...)
	})
}

// manySamples are enough objects for a cache, older than the racy window.
func manySamples(t testing.TB, tree *Tree) {
	t.Helper()
	s := summaryStore(tree)
	var news []NewFile
	for i := range cacheFrom + 20 {
		name := "s" + strconv.Itoa(i)
		data, err := Encode(sample{Name: name, Count: i})
		if err != nil {
			t.Fatal(err)
		}
		news = append(news, NewFile{Path: s.Path(name), Data: data})
	}
	for _, err := range tree.WriteAll(news) {
		if err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(racyWindow + 20*time.Millisecond) // the system's stamp of a change can't be set
}

func TestSummariesReadWhatChanged(t *testing.T) {
	tree := newTree(t)
	manySamples(t, tree)
	all := int64(cacheFrom + 20)
	for round, want := range []int64{all, 0, 1, 1, 0} {
		s := summaryStore(tree)
		if round == 2 {
			must(t, s.Put("s7", sample{Name: "s7", Count: 1000}))
		}
		if round == 4 {
			must(t, s.Remove("s7"))
			all--
		}
		summaries, bad, err := s.Summaries()
		if err != nil || len(bad) > 0 || int64(len(summaries)) != all {
			t.Fatalf("round %d: %d summaries, %v, %v", round, len(summaries), bad, err)
		}
		if got := s.reads.Load(); got != want {
			t.Errorf("round %d: %d files were read, want %d", round, got, want)
		}
	}
}

// TestSummariesAreLikeAFreshLook: whatever happens to the files and to the cache,
// who looks at stamps sees what who reads everything sees.
func TestSummariesAreLikeAFreshLook(t *testing.T) {
	statetest.Check(t, 5, func(r *rapid.T) {
		tree := newTree(t)
		manySamples(t, tree)
		name := rapid.SampledFrom([]string{"s1", "s2", "s3", "new"})
		count := 1000
		steps := map[string]func(*rapid.T){
			"put": func(r *rapid.T) {
				n := name.Draw(r, "name")
				count++
				must2(t, summaryStore(tree).Put(n, sample{Name: n, Count: count}))
			},
			"in place, with the old time": func(r *rapid.T) {
				n := name.Draw(r, "name")
				count++
				at := tree.Abs("state/work/" + Path(n) + ".json")
				info, err := os.Stat(at)
				must2(t, os.WriteFile(at, fmt.Appendf(nil, `{"name":%q,"count":%d}`, n, count), 0o644))
				if err == nil {
					must2(t, os.Chtimes(at, info.ModTime(), info.ModTime()))
				}
			},
			"damage": func(r *rapid.T) {
				must2(t, os.WriteFile(tree.Abs("state/work/"+Path(name.Draw(r, "name"))+".json"), []byte("{"), 0o644))
			},
			"remove":           func(r *rapid.T) { must2(t, summaryStore(tree).Remove(name.Draw(r, "name"))) },
			"remove the cache": func(*rapid.T) { must2(t, os.RemoveAll(tree.Abs(CacheDir))) },
			"damage the cache": func(r *rapid.T) {
				at := tree.Abs(summaryStore(tree).cachePath)
				data, err := os.ReadFile(at)
				if err != nil {
					return
				}
				i := rapid.IntRange(0, len(data)-1).Draw(r, "at")
				if rapid.Bool().Draw(r, "cut") {
					data = data[:i]
				} else {
					data[i] ^= 0x40
				}
				must2(t, os.WriteFile(at, data, 0o644))
			},
			"": func(r *rapid.T) {
				got, gotBad, err := summaryStore(tree).Summaries()
				must2(t, err)
				all, wantBad, err := sampleStore(tree).All()
				must2(t, err)
				var want []Summary
				for i := range all {
					want = append(want, Summary{all[i].Name, summaryStore(tree).fields(&all[i])})
				}
				if !reflect.DeepEqual(got, want) || fmt.Sprint(gotBad) != fmt.Sprint(wantBad) {
					r.Fatalf("summaries %v %v\nobjects %v %v", got, gotBad, want, wantBad)
				}
			},
		}
		r.Repeat(steps)
	})
}

// A cache file of which one bit differs is not used.
func TestDamagedCacheIsRefused(t *testing.T) {
	tree := newTree(t)
	p := CacheDir.Join("a")
	w := &CacheWriter{}
	w.Text("a summary")
	w.Number(7)
	must2(t, tree.WriteCache(p, w))
	whole, err := os.ReadFile(tree.Abs(p))
	must2(t, err)
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 1
		must2(t, os.WriteFile(tree.Abs(p), damaged, 0o600))
		if _, err := tree.ReadCache(p); !errors.Is(err, ErrCorrupt) {
			t.Errorf("byte %d of %d: %v", i, len(whole), err)
		}
	}
}

func must2(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzSummaries: whatever is in a cache whose checksum is right, reading it ends.
func FuzzSummaries(f *testing.F) {
	f.Add(make([]byte, 70))
	f.Add(append(make([]byte, 56), 1, 'a', 2, 1, 'b', 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree := newTree(t)
		s := summaryStore(tree)
		must2(t, tree.WriteCache(s.cachePath, &CacheWriter{Data: data}))
		for file, b := range s.loadSummaries() {
			if file != b.Name+suffix || len(b.Name) > len(data) {
				t.Errorf("%q: %+v", file, b)
			}
		}
	})
}
