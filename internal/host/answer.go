package host

import (
	"errors"
	"fmt"
	"os"
)

// Answer reads one block from the disk itself, bypassing the page cache. It blocks as long as a disk is silent, so call it where that does
// no harm. A disk that returns an error counts as responding.
func (n *Node) Answer(path string) error {
	disk, err := n.Identify(path)
	if err != nil {
		return err
	}
	file, err := n.openDirect(disk.Kernel, disk.Number, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", disk.Kernel, err)
	}
	defer file.Close() //nolint:errcheck // opened for reading: nothing is lost
	_, err = readAt(file, 0, directUnit)
	return err
}

// careful writes to a disk as long as the caller waits and the path leads to the disk. A write that hangs and continues hours later has to
// be the last one, because others may use the disk by then.
type careful struct {
	*os.File
	may func() error
}

// WriteAt checks before each write whether it is still allowed.
func (c careful) WriteAt(data []byte, offset int64) (int, error) {
	if err := c.may(); err != nil {
		return 0, err
	}
	return c.File.WriteAt(data, offset)
}

var errAbandoned = errors.New("it took too long and was aborted: nothing more is written")

// given reports whether the caller has given up.
func given(up <-chan struct{}) bool {
	select {
	case <-up:
		return true
	default:
		return false
	}
}
