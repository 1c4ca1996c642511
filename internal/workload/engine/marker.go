//go:build linux

package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/storagebench/storagebench/internal/results"
)

const (
	markerVersion = "volume.storagebench.dev/v1alpha1"
	markerName    = "storagebench.marker"
	// markerBytes is the size of the marker, and markerOffset its place on a device.
	markerBytes  = 4096
	markerOffset = mib
)

// marker is stored on the volume and says whose it is and what was written, so that a later phase knows that it has the same volume, and
// not another one at the same path.
type marker struct {
	Version    string              `json:"version"`
	Run        results.RunIdentity `json:"run"`
	FileSystem string              `json:"fileSystem,omitempty"`
	TotalBytes int64               `json:"totalBytes"`
	Data       *data               `json:"data,omitempty"`
}

// data describes what fills have written: a number of files of the same size, or an area of a device.
type data struct {
	Files           int   `json:"files"`
	FileBytes       int64 `json:"fileBytes"`
	CompressPercent int   `json:"compressPercent,omitempty"`
}

// encode pads the marker to its size, so that it can be replaced in place even on a full volume.
func (m marker) encode() ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(text) >= markerBytes {
		return nil, fmt.Errorf("the marker of the volume has %d bytes, but the limit is %d: use shorter names", len(text), markerBytes-1)
	}
	return append(text, bytes.Repeat([]byte("\n"), markerBytes-len(text))...), nil
}

// decodeMarker reads a marker; false means that this is something else.
func decodeMarker(text []byte) (marker, bool) {
	var m marker
	if err := json.Unmarshal(bytes.TrimRight(text, "\n"), &m); err != nil || m.Version != markerVersion {
		return marker{}, false
	}
	if d := m.Data; d != nil && (d.Files < 1 || d.Files > maxDataFiles || d.FileBytes < 1 || d.FileBytes > 1<<60/int64(d.Files)) {
		return marker{}, false
	}
	return m, true
}

// readFolderMarker finds the marker of a file system. Without one, the volume has to be empty.
func readFolderMarker(folder string) (found marker, there bool, err error) {
	file, err := os.OpenFile(filepath.Join(folder, markerName), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return marker{}, false, folderIsEmpty(folder)
	}
	if err != nil {
		return marker{}, false, wrongPlace("the marker of the volume: %w", err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, markerBytes+1))
	if err != nil {
		return marker{}, false, fmt.Errorf("the marker of the volume %s: %w", folder, err)
	}
	found, ours := decodeMarker(text)
	if !ours {
		return marker{}, false, wrongPlace("%s in %s is not a marker of this program: use an empty volume", markerName, folder)
	}
	return found, true, nil
}

// systemNames are entries that file systems and storage create by themselves.
var systemNames = []string{"lost+found", ".zfs", ".snapshot", ".snapshots"}

func folderIsEmpty(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return wrongPlace("the volume cannot be read: %w: give the user of the pod access to it", err)
	}
	for _, entry := range entries {
		if !slices.Contains(systemNames, entry.Name()) {
			return wrongPlace("there is %.80q on the volume %s, which this program did not write: use an empty volume", entry.Name(), folder)
		}
	}
	return nil
}

// writeAt replaces a marker in place and makes it durable.
func (m marker) writeAt(path string, offset int64, create bool) error {
	text, err := m.encode()
	if err != nil {
		return err
	}
	flags := os.O_WRONLY | syscall.O_NOFOLLOW
	if create {
		flags |= os.O_CREATE
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return fmt.Errorf("mark the volume: %w", err)
	}
	_, err = file.WriteAt(text, offset)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("mark the volume: %w", err)
	}
	return nil
}
