package blockcut

import (
	"errors"
	"io"
	"maps"
	"os"

	"golang.org/x/sys/unix"
)

// blockSize is the unit in which images are shared and copied.
const blockSize = 4096

type block [blockSize]byte

// Image is the content of a disk; what is not in it is zero. Blocks are shared
// between images and never changed in place, see edit.
type Image struct {
	size   int64
	blocks map[int64]*block
}

// readImage loads a sparse file.
func readImage(name string) (*Image, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	img := &Image{size: info.Size(), blocks: map[int64]*block{}}
	for at := int64(0); at < img.size; {
		data, err := f.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // nothing but a hole up to the end
		}
		if err != nil {
			return nil, err
		}
		end, err := f.Seek(data, unix.SEEK_HOLE)
		if err != nil {
			return nil, err
		}
		for n := data / blockSize; n*blockSize < end; n++ {
			var b block
			if _, err := f.ReadAt(b[:], n*blockSize); err != nil && !errors.Is(err, io.EOF) {
				return nil, err
			}
			if b != (block{}) {
				img.blocks[n] = &b
			}
		}
		at = end
	}
	return img, nil
}

// write stores the image as a sparse file.
func (img *Image) write(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	err = f.Truncate(img.size)
	for n, b := range img.blocks {
		if err != nil {
			break
		}
		_, err = f.WriteAt(b[:], n*blockSize)
	}
	return errors.Join(err, f.Close())
}

// edit is an image in the making: it copies a block before its first change.
type edit struct {
	Image
	own map[int64]bool
}

func (img *Image) edit() *edit {
	return &edit{Image: Image{size: img.size, blocks: maps.Clone(img.blocks)}, own: map[int64]bool{}}
}

func (e *edit) put(data []byte, off int64) {
	for len(data) > 0 {
		n, in := off/blockSize, off%blockSize
		if !e.own[n] {
			b := block{}
			if old := e.blocks[n]; old != nil {
				b = *old
			}
			e.blocks[n], e.own[n] = &b, true
		}
		done := copy(e.blocks[n][in:], data)
		data, off = data[done:], off+int64(done)
	}
}
