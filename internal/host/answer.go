package host

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Answer reads one block from the disk itself, not from what the kernel remembers of it. A disk that is silent keeps it waiting for ever:
// run it where that does no harm. A disk that answers with an error has answered.
func (n *Node) Answer(path string) error {
	disk, err := n.Identify(path)
	if err != nil {
		return err
	}
	file, err := n.open(disk.Kernel, disk.Number, os.O_RDONLY|unix.O_DIRECT)
	if n.files && errors.Is(err, unix.EINVAL) { // a file system that cannot read past its cache
		file, err = n.open(disk.Kernel, disk.Number, os.O_RDONLY)
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", disk.Kernel, err)
	}
	defer file.Close() //nolint:errcheck // opened for reading: nothing is lost
	// Memory for reads past the cache begins at the border of a page.
	block, err := unix.Mmap(-1, 0, int(max(disk.LogicalSectorBytes, int64(os.Getpagesize()))), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("memory for a block of %s: %w", disk.Kernel, err)
	}
	defer unix.Munmap(block) //nolint:errcheck // memory of our own
	if _, err := file.ReadAt(block, 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading from %s: %w", disk.Kernel, err)
	}
	return nil
}

// careful writes to a disk as long as the caller waits for it and its path leads to it. A write that hangs and continues hours
// later must be the last one: by then the disk may belong to others.
type careful struct {
	*os.File
	may func() error
}

// WriteAt asks before each write.
func (c careful) WriteAt(data []byte, offset int64) (int, error) {
	if err := c.may(); err != nil {
		return 0, err
	}
	return c.File.WriteAt(data, offset)
}

var errAbandoned = errors.New("it took too long and was aborted: nothing more is written")

// given says whether the caller has given up.
func given(up <-chan struct{}) bool {
	select {
	case <-up:
		return true
	default:
		return false
	}
}
