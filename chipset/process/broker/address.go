package broker

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/process/private"
)

// EnvAddress is the variable that tells a worker's chipset where its broker listens.
const EnvAddress = "CHIPSET_BROKER"

const (
	// maxPath is the longest path of a socket in bytes that every system takes
	// (macOS: 104 with the final NUL).
	maxPath = 103
	// nameSize is the length of the name of a socket.
	nameSize = 16 + len(".sock")
	// staleAge is how old a socket is at least on which nobody listens any more. A
	// younger one may be about to be listened on.
	staleAge = time.Minute
)

// Address is where a broker listens, and the secret that a caller must know.
type Address struct{ Path, Secret string }

// NewAddress makes an address that nobody has, in a folder that Folder returned.
func NewAddress(folder string) Address {
	name, secret := make([]byte, 8), make([]byte, 16)
	_, _ = rand.Read(name) // never fails
	_, _ = rand.Read(secret)
	return Address{Path: filepath.Join(folder, hex.EncodeToString(name)+".sock"), Secret: hex.EncodeToString(secret)}
}

// String is the value of EnvAddress.
func (a Address) String() string { return a.Secret + "@" + a.Path }

// ParseAddress reads a value of EnvAddress.
func ParseAddress(text string) (Address, error) {
	secret, path, found := strings.Cut(text, "@")
	if !found || secret == "" || !filepath.IsAbs(path) || len(path) > maxPath {
		return Address{}, fmt.Errorf("$%s is not the address of a broker", EnvAddress)
	}
	return Address{Path: path, Secret: secret}, nil
}

// Folder returns the folder for the sockets of this user's workers, and makes it
// where there is none. Nobody else may enter it, and its path is short enough for a
// socket. Sockets that an end with kill -9 has left there are removed.
func Folder() (string, error) {
	candidates := []string{filepath.Join(os.TempDir(), private.Name()), filepath.Join("/tmp", private.Name())}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		candidates = append([]string{filepath.Join(dir, "chipset")}, candidates...)
	}
	var failed []error
	for _, dir := range candidates {
		if len(dir)+1+nameSize > maxPath {
			continue
		}
		err := private.Make(dir)
		if err == nil {
			sweep(dir)
			return dir, nil
		}
		failed = append(failed, err)
	}
	// Somebody else has taken the names.
	dir, err := os.MkdirTemp("/tmp", "chipset-") //nolint:forbidigo // sockets are no state: nothing of them outlives a session
	return dir, errors.Join(append(failed, err)...)
}

// sweep removes the sockets on which nobody listens.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Type() != os.ModeSocket || time.Since(info.ModTime()) < staleAge {
			continue
		}
		path := filepath.Join(dir, e.Name())
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			_ = conn.Close()
		} else if errors.Is(err, unix.ECONNREFUSED) {
			_ = os.Remove(path) //nolint:forbidigo // see Folder
		}
	}
}
