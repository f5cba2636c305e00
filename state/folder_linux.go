package state

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

func stampOf(st *unix.Stat_t) Stamp {
	return Stamp{Inode: st.Ino, Size: st.Size, Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano(), Mode: st.Mode, Links: uint32(st.Nlink)}
}

// born is the time when an open file was created, or 0.
func born(fd int) int64 {
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}

// Offsets in struct linux_dirent64: inode, offset, length of the record, type,
// name that ends with a zero.
const (
	direntLength = 16
	direntName   = 19
)

// Entries returns the entries of the folder, unsorted, without temp files and other
// dot-files.
func (f *Folder) Entries() ([]FolderEntry, error) {
	if _, err := f.file.Seek(0, 0); err != nil {
		return nil, wrapPath(f.dir, err)
	}
	var names []FolderEntry
	buf := make([]byte, 256<<10)
	for {
		n, err := ignoringEINTR(func() (int, error) { return unix.ReadDirent(f.fd, buf) })
		if err != nil {
			return nil, wrapPath(f.dir, err)
		}
		if n <= 0 {
			return names, nil
		}
		text := string(buf[:n]) // one allocation for all names
		for rest := buf[:n]; len(rest) > direntName; {
			size := int(binary.NativeEndian.Uint16(rest[direntLength:]))
			if size <= direntName || size > len(rest) {
				break
			}
			at := n - len(rest) + direntName
			end := bytes.IndexByte(rest[direntName:size], 0)
			if name := text[at : at+max(end, 0)]; name != "" && !IsTemp(name) {
				names = append(names, FolderEntry{Name: name, Inode: binary.NativeEndian.Uint64(rest)})
			}
			rest = rest[size:]
		}
	}
}
