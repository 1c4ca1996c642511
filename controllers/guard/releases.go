package guard

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/host"
)

// releasesKept is the number of released objects that the node remembers. Each is a small file. Only a backup of the cluster that is older
// than the last releasesKept releases on the node could bring back an object that is no longer remembered.
const releasesKept = 256

// Releases remembers on the node which BenchmarkPools went while their pools stayed. A restored backup of the cluster brings such an object
// back, being deleted and without the annotation that has released it: the object would destroy the pool that a person wanted to keep. The
// record is not on the pool, because a pool is released when ZFS does not answer too.
type Releases struct {
	// Root is the path of the node's file system.
	Root string
}

func (r *Releases) path(pool types.UID) string { return filepath.Join(r.Root, pools.ReleasePath(pool)) }

// Record records that an object goes while its pool stays.
func (r *Releases) Record(pool types.UID) error {
	path := r.path(pool)
	if err := host.WriteDurably(path, nil); err != nil {
		return fmt.Errorf("record on the node that the pool was released: %w", err)
	}
	if err := forgetOldest(filepath.Dir(path)); err != nil {
		return fmt.Errorf("remove the oldest records of released pools: %w", err)
	}
	return nil
}

// Recorded reports whether an object of that UID went while its pool stayed.
func (r *Releases) Recorded(pool types.UID) (bool, error) {
	_, err := os.Stat(r.path(pool))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read whether the pool was released: %w", err)
	}
	return true, nil
}

// forgetOldest removes all but the newest releasesKept files of a folder.
func forgetOldest(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) <= releasesKept {
		return err
	}
	var files []fs.FileInfo
	for _, entry := range entries {
		file, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another release has just removed it
		}
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	var problems []error
	for _, file := range files[min(releasesKept, len(files)):] {
		problems = append(problems, host.RemoveDurably(filepath.Join(folder, file.Name())))
	}
	return errors.Join(problems...)
}
