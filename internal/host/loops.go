package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// loops finds loop devices on the disk or its partitions. The kernel does not list them as holders of the disk, and no process has the disk
// open for them.
func (n *Node) loops(disk *Disk, members map[string]string) error {
	devices, err := n.names("sys/class/block")
	if err != nil {
		return err
	}
	for _, loop := range devices {
		file, err := n.text("sys/class/block", loop, "loop/backing_file")
		if err != nil {
			return err
		}
		if file == "" {
			continue
		}
		kernel, err := n.belowLoop(loop, file, members)
		if err != nil {
			return err
		}
		if kernel != "" {
			disk.find(InUse, "%s is below %s: 'losetup --detach /dev/%s' on the node removes that, once it is unused", kernel, loop, loop)
		}
	}
	return nil
}

// belowLoop asks a loop device for the device below it, and returns that if it is a member. The file name in /sys may be a path inside a
// container, or that of a deleted file. If the loop device is on a file, the result is the device of its file system, which may not be
// mounted anywhere any more.
func (n *Node) belowLoop(loop, file string, members map[string]string) (string, error) {
	if n.files {
		return n.member(file, members), nil
	}
	number, err := n.text("sys/class/block", loop, "dev")
	if err != nil {
		return "", err
	}
	open, err := n.open(loop, number, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return "",
			fmt.Errorf("the device below %s cannot be read: it has no device file. Create one ('mknod /dev/%s b' with the numbers %s), or detach it",
				loop, loop, number)
	}
	if errors.Is(err, unix.ENXIO) { // detached by now
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("asking what is below %s: %w", loop, err)
	}
	defer open.Close() //nolint:errcheck // opened for reading: nothing is lost
	info, err := unix.IoctlLoopGetStatus64(int(open.Fd()))
	if errors.Is(err, unix.ENXIO) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("asking what is below %s: %w", loop, err)
	}
	return members[fmt.Sprintf("%d:%d", unix.Major(info.Rdevice), unix.Minor(info.Rdevice))], nil
}
