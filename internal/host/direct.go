package host

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// directUnit is a multiple of the sector size of every disk: direct reads begin and end at such a unit.
	directUnit = 4096
	// directBuffer is the maximum size of a direct read.
	directBuffer = 1 << 20
)

// direct reads a disk without the page cache. A disk and its partitions have separate caches: the cache of the disk can still show zeros
// where a file system has been written since, or a label that has been cleared since.
type direct struct {
	file   *os.File
	buffer []byte
}

// openDirect opens a disk for reading, like open. A regular file that stands for a disk may be on a file system without direct reads.
func (n *Node) openDirect(kernel, number string, flags int) (*direct, error) {
	file, err := n.open(kernel, number, os.O_RDONLY|unix.O_DIRECT|flags)
	if n.files && errors.Is(err, unix.EINVAL) {
		file, err = n.open(kernel, number, os.O_RDONLY|flags)
	}
	if err != nil {
		return nil, err
	}
	buffer, err := unix.Mmap(-1, 0, directBuffer, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON) // aligned to a page
	if err != nil {
		return nil, errors.Join(fmt.Errorf("getting memory to read %s: %w", kernel, err), file.Close())
	}
	return &direct{file: file, buffer: buffer}, nil
}

// Close closes the disk, which was opened for reading.
func (d *direct) Close() error { return errors.Join(d.file.Close(), unix.Munmap(d.buffer)) }

// ReadAt reads any range. It reads whole units from the disk.
func (d *direct) ReadAt(data []byte, offset int64) (int, error) {
	done := 0
	for done < len(data) {
		at := offset + int64(done)
		start := at &^ (directUnit - 1)
		end := min((offset+int64(len(data))+directUnit-1)&^(directUnit-1), start+directBuffer)
		count, err := d.pread(d.buffer[:end-start], start)
		if err != nil {
			return done, fmt.Errorf("reading %s at byte %d: %w", d.file.Name(), at, err)
		}
		if int64(count) <= at-start {
			return done, io.EOF
		}
		done += copy(data[done:], d.buffer[at-start:count])
	}
	return done, nil
}

func (d *direct) pread(buffer []byte, offset int64) (int, error) {
	for {
		count, err := unix.Pread(int(d.file.Fd()), buffer, offset)
		if !errors.Is(err, unix.EINTR) {
			return count, err
		}
	}
}

// writeOut writes the page caches of the partitions to the disk.
func (n *Node) writeOut(disk *Disk) error {
	if n.files {
		return nil
	}
	for _, partition := range disk.partitions {
		file, err := n.open(partition.kernel, partition.number, os.O_RDONLY)
		if err != nil {
			return fmt.Errorf("opening %s: %w", partition.kernel, err)
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return fmt.Errorf("writing out what is cached for %s: %w", partition.kernel, err)
		}
	}
	return nil
}
