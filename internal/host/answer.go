package host

import (
	"errors"
	"fmt"
	"os"
)

// Answer reads one block from the disk itself, bypassing the page cache. It blocks for as long as the disk does not respond, so call it
// where that does no harm. It also returns the error of a disk that responds with one: such a disk counts as responding.
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

// careful writes to a disk only while the caller still waits and the path still leads to that disk. A write can hang and continue hours
// later. It must then be the last one, because others may use the disk by then.
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

// givenUp reports whether the caller has given up.
func givenUp(up <-chan struct{}) bool {
	select {
	case <-up:
		return true
	default:
		return false
	}
}
