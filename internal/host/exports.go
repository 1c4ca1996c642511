package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

const configs = "sys/kernel/config"

// exports finds targets through which the kernel exports the disk to other machines: NVMe over fabrics and SCSI (LIO). They open the disk
// without claiming it, and no process has the disk open on their behalf.
func (n *Node) exports(disk *Disk, members map[string]string) error {
	for module, folder := range map[string]string{"nvmet": "nvmet", "target_core_mod": "target"} {
		if !n.there("sys/module", module) || n.there(configs, folder) {
			continue
		}
		return fmt.Errorf("the kernel has %s, but its exports are not visible in /%s: run 'mount -t configfs none /%s' on the node",
			module, configs, configs)
	}
	return errors.Join(n.nvmeExports(disk, members), n.scsiExports(disk, members))
}

func (n *Node) there(parts ...string) bool {
	_, err := os.Stat(n.path(parts...))
	return !errors.Is(err, fs.ErrNotExist) // any other error comes up again when the file is read
}

func (n *Node) nvmeExports(disk *Disk, members map[string]string) error {
	subsystems := filepath.Join(configs, "nvmet/subsystems")
	return n.each(subsystems, func(subsystem string) error {
		namespaces := filepath.Join(subsystems, subsystem, "namespaces")
		err := n.each(namespaces, func(namespace string) error {
			at := filepath.Join(namespaces, namespace)
			return n.export(disk, members, at, "device_path", "as namespace "+namespace+" of "+subsystem)
		})
		return errors.Join(err, n.passthrough(disk, filepath.Join(subsystems, subsystem, "passthru"), subsystem))
	})
}

// export checks one export, if it is enabled.
func (n *Node) export(disk *Disk, members map[string]string, at, attribute, as string) error {
	enabled, err := n.text(at, "enable")
	if err != nil || enabled == "0" || enabled == "" {
		return err
	}
	path, err := n.text(at, attribute)
	if err != nil {
		return err
	}
	kernel, err := n.exported(path, members)
	if err != nil {
		return fmt.Errorf("cannot tell which device is exported %s: %w: end that export with 'echo 0 > /%s/enable', or make the path lead "+
			"to its device again", as, err, at)
	}
	if kernel != "" {
		disk.find(InUse, "%s is exported to other machines %s: end that with 'echo 0 > /%s/enable'", kernel, as, at)
	}
	return nil
}

// exported returns the member that the path of an export leads to. The result is empty if the path leads to something else. If the path
// leads nowhere, exported returns an error.
func (n *Node) exported(path string, members map[string]string) (string, error) {
	if kernel := n.member(path, members); kernel != "" {
		return kernel, nil
	}
	var status unix.Stat_t
	if err := unix.Stat(n.path(path), &status); err != nil {
		if _, unresolved := n.resolve(path); unresolved == nil && strings.HasPrefix(path, "/dev/") {
			return "", nil // the name of another device, which has no device file here
		}
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if status.Mode&unix.S_IFMT != unix.S_IFBLK {
		return "", nil
	}
	return members[fmt.Sprintf("%d:%d", unix.Major(status.Rdev), unix.Minor(status.Rdev))], nil
}

// onePath matches the name of one path to an NVMe namespace, to derive the name of the disk.
var onePath = regexp.MustCompile(`^(nvme\d+)c\d+(n\d+)$`)

// passthrough checks an export of a whole controller, with all of its disks.
func (n *Node) passthrough(disk *Disk, at, subsystem string) error {
	enabled, err := n.text(at, "enable")
	if err != nil || enabled == "0" || enabled == "" {
		return err
	}
	path, err := n.text(at, "device_path")
	if err != nil {
		return err
	}
	return n.each(filepath.Join("sys/class/nvme", filepath.Base(path)), func(name string) error {
		if onePath.ReplaceAllString(name, "$1$2") == disk.Kernel {
			disk.find(InUse, "%s is exported to other machines with its controller %s by %s: end that with 'echo 0 > /%s/enable'", disk.Kernel, path,
				subsystem, at)
		}
		return nil
	})
}

var (
	scsiNumber = regexp.MustCompile(`Major: (\d+) Minor: (\d+)`)
	scsiFile   = regexp.MustCompile(`File: (/\S+)`)
)

func (n *Node) scsiExports(disk *Disk, members map[string]string) error {
	core := filepath.Join(configs, "target/core")
	return n.each(core, func(adapter string) error {
		return n.each(filepath.Join(core, adapter), func(device string) error {
			return n.scsiExport(disk, members, filepath.Join(core, adapter, device), adapter+"/"+device)
		})
	})
}

// scsiExport checks one device of LIO: its numbers, the file that it reports as open, and its configured path.
func (n *Node) scsiExport(disk *Disk, members map[string]string, at, name string) error {
	info, err := n.text(at, "info")
	if errors.Is(err, unix.ENOTDIR) { // an attribute of the adapter
		return nil
	}
	if err != nil || info == "" || strings.Contains(info, "DEACTIVATED") {
		return err // only devices have an "info"; the folder has other entries too
	}
	udev, err := n.text(at, "udev_path")
	if err != nil {
		return err
	}
	kernel := n.member(udev, members)
	if number := scsiNumber.FindStringSubmatch(info); number != nil {
		kernel = members[number[1]+":"+number[2]]
	} else if file := scsiFile.FindStringSubmatch(info); file != nil && kernel == "" {
		if kernel, err = n.exported(file[1], members); err != nil {
			return fmt.Errorf("finding out what LIO exports as %s: %w: delete that backstore with targetcli", name, err)
		}
	}
	if kernel != "" {
		disk.find(InUse, "%s is exported to other machines by LIO as %s: delete that backstore with targetcli", kernel, name)
	}
	return nil
}
