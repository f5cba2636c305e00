package process

import "os"

// SyncTree makes everything on the file system of a folder durable, as far as it was
// written before. It is for work that no supervisor has watched.
func SyncTree(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return syncFileSystem(f)
}
