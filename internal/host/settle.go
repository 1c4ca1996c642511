package host

import (
	"os"
	"time"
)

const (
	// settleTime limits the wait for udev: another disk may keep udev busy all the time.
	settleTime = 30 * time.Second
	settleLook = settleTime / 300
)

// Settle waits until udev has processed all events of disks. Until then, udev removes and recreates the links of partitions, and a program
// that takes a disk may not find them. udevadm settle looks at the same file.
func (n *Node) Settle() {
	looks, end := time.NewTicker(settleLook), time.After(settleTime)
	defer looks.Stop()
	for {
		if _, err := os.Lstat(n.path("run/udev/queue")); err != nil {
			return
		}
		select {
		case <-looks.C:
		case <-end:
			return
		}
	}
}
