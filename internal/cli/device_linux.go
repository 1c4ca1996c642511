package cli

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/host"
)

// freeBytes returns how many bytes an unprivileged user can still write to the file system of a folder.
func freeBytes(folder string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return 0, err
	}
	return int64(stat.Bavail) * stat.Bsize, nil
}

// Disks accepts disks with the same check that the agent makes before it uses one for a pool.
type Disks struct{ Node *host.Node }

// Accept implements DiskCheck. Its errors do not reveal the serial number that it expects: the user has to know it from another source.
func (d Disks) Accept(path, serial string) (int64, func() error, error) {
	stable, err := d.Node.StablePath(path)
	if err != nil {
		return 0, nil, inWords(err, path)
	}
	known, err := d.Node.Identify(stable)
	switch {
	case err != nil:
		return 0, nil, inWords(err, path)
	case known.Serial == "":
		return 0, nil, errors.New("the kernel and udev know no serial number for it, so it cannot be identified: use a folder on it instead")
	case known.Serial != serial:
		return 0, nil, fmt.Errorf("its serial number is not %s: check the device with 'lsblk -o PATH,SERIAL,SIZE,MODEL'", serial)
	}
	disk, err := d.Node.Check(host.Wish{Path: stable})
	if err == nil && disk.Number != known.Number {
		err = fmt.Errorf("%s is another disk now", stable)
	}
	if err != nil {
		return 0, nil, inWords(err, path)
	}
	verify := func() error {
		if now, err := d.Node.StablePath(path); err != nil || now != stable {
			return errors.Join(fmt.Errorf("it is no longer %s", stable), err)
		}
		return inWords(d.Node.Verify(disk), path)
	}
	return disk.SizeBytes, verify, nil
}

// inWords adds possible remedies to a refusal.
func inWords(err error, path string) error {
	var refused *host.RefusedError
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.OnContents():
		return fmt.Errorf("%s: use an empty device; if its data is not needed, 'blkdiscard --zeroout %s' empties it", refused.Reasons(),
			path)
	case refused.Is(host.NotWholeDisk):
		return fmt.Errorf("%s; or use a folder on it", refused.Reasons())
	case refused.Is(host.Unreadable) && os.Geteuid() != 0:
		return fmt.Errorf("%s: only root can see the users of a device: run it as root, or use a folder on it", refused.Reasons())
	}
	return errors.New(refused.Reasons())
}
