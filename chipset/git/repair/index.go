package repair

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's own checksum, no secret
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
)

// maxIndex bounds the size of an index that is checked, in bytes; a larger one is taken for whole.
const maxIndex = 64 << 20

// unsummed is tornIndex's answer for an index that git may have written without a checksum (index.skipHash), or that
// ends in zeros because it is torn.
const unsummed = "has no checksum, and git can't read it"

// tornIndex returns why an index can't be as git wrote it, or "".
func tornIndex(path string) string {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "is missing"
	case err != nil || !info.Mode().IsRegular():
		return "is not a file"
	case info.Size() > maxIndex:
		return ""
	}
	data, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(data, []byte("DIRC")) {
		return "is torn"
	}
	for _, size := range []int{sha1.Size, sha256.Size} {
		if len(data) < 12+size {
			continue
		}
		body, sum := data[:len(data)-size], data[len(data)-size:]
		short, long := sha1.Sum(body), sha256.Sum256(body) //nolint:gosec // git's own checksum, no secret
		if bytes.Equal(sum, short[:]) || bytes.Equal(sum, long[:]) {
			return ""
		}
	}
	if bytes.HasSuffix(data, make([]byte, sha1.Size)) {
		return unsummed
	}
	return "is torn"
}
