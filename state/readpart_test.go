package state

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestReadPart(t *testing.T) {
	tree, err := Create(filepath.Join(t.TempDir(), ".chipset"))
	if err != nil {
		t.Fatal(err)
	}
	p := LogDir.Join("a.log")
	if err := tree.Append(p, []byte("0123456789")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		offset, limit int64
		want          string
		from          int64
	}{
		{0, 4, "0123", 0}, {8, 4, "89", 8}, {10, 4, "", 10}, {99, 4, "", 10}, {-3, 9, "789", 7}, {-3, 2, "78", 7}, {-99, 2, "01", 0},
	} {
		data, from, err := tree.ReadPart(p, row.offset, row.limit)
		if err != nil || string(data) != row.want || from != row.from {
			t.Errorf("%d bytes from %d: %q from %d, %v; want %q from %d", row.limit, row.offset, data, from, err, row.want, row.from)
		}
	}
	if _, _, err := tree.ReadPart(LogDir.Join("none"), 0, 1); !errors.Is(err, ErrNotFound) {
		t.Errorf("no file: %v", err)
	}
	if err := tree.Symlink(RunDir.Join("link"), tree.Abs(p)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tree.ReadPart(RunDir.Join("link"), 0, 1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a link: %v", err)
	}
}
