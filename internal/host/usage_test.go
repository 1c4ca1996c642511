package host

import (
	"errors"
	"strings"
	"testing"
)

// TestASourceIsAnyText: a tenant can mount file systems without a device in a user namespace of its own, and name anything as their source.
// This must not keep others from their disks, nor hide a real mount.
func TestASourceIsAnyText(t *testing.T) {
	const types = "nodev\tsysfs\nnodev\ttmpfs\n\text4\nnodev\tfuse\n\tfuseblk\nnodev\toverlay\nnodev\tdevtmpfs\n\tbtrfs\n\tbcachefs\n"
	// The limit of the list ends within the name of a type without a device.
	cut := strings.Repeat("\n", typesLimit-len("nodev\tbtrfs")) + "nodev\tbtrfs-none\nnodev\ttmpfs\n"
	for name, test := range map[string]struct {
		types, mount string
		used         bool
	}{
		"tmpfs":                           {types, "0:99 / /x rw - tmpfs /dev/vdb rw", false},
		"tmpfs with a stable path":        {types, "0:99 / /x rw - tmpfs " + freePath + " rw", false},
		"tmpfs with a list":               {types, "0:99 / /x rw - tmpfs /dev/none:/dev/vdb rw", false},
		"overlay":                         {types, "0:99 / /x rw - overlay /dev/vdb rw", false},
		"FUSE":                            {types, "0:99 / /x rw - fuse /dev/vdb rw", false},
		"FUSE with a subtype":             {types, "0:99 / /x rw - fuse.sshfs /dev/vdb rw", false},
		"FUSE in disguise":                {types, "0:99 / /x rw - fuse.btrfs /dev/vdb rw", false},
		"FUSE on a disk":                  {types, "0:99 / /x rw - fuseblk.ntfs /dev/vdb rw", true},
		"the number of the disk":          {types, "254:16 / /x rw - tmpfs none rw", true},
		"the device file":                 {types, "0:5 /vdb /x rw - devtmpfs udev rw", true},
		"btrfs of several disks":          {types, "0:99 / /x rw - btrfs /dev/vdb rw", true},
		"btrfs of others":                 {types, "0:99 / /x rw - btrfs /dev/vda rw", false},
		"bcachefs of several disks":       {types, "254:0 / /x rw - bcachefs /dev/vda:/dev/vdb rw", true},
		"bcachefs, by path":               {types, "254:0 / /x rw - bcachefs /dev/disk/by-path/pci-0:1:" + freePath + " rw", true},
		"bcachefs of others":              {types, "254:0 / /x rw - bcachefs /dev/vda:/dev/vdc rw", false},
		"a type that is not listed":       {types, "0:99 / /x rw - newfs /dev/vdb rw", true},
		"no list":                         {"", "0:99 / /x rw - tmpfs /dev/vdb rw", true},
		"a list that is cut":              {cut, "0:99 / /x rw - btrfs /dev/vdb rw", true},
		"beyond the limit of the list":    {cut, "0:99 / /x rw - tmpfs /dev/vdb rw", true},
		"a name that begins like another": {"nodev\tbtrfs-none\n", "0:99 / /x rw - btrfs /dev/vdb rw", true},
	} {
		n := newFakeNode(t)
		if test.types != "" {
			n.file("/proc/filesystems", test.types)
		}
		n.mountTable(4711, "30 24 "+test.mount+"\n")
		_, err := n.Check(Wish{Path: freePath})
		if test.used && !errors.Is(err, Mounted) || !test.used && err != nil {
			t.Errorf("%s: %v, want a use: %v", name, err, test.used)
		}
	}
	n := newFakeNode(t)
	n.file("/proc/filesystems/unreadable", "")
	n.mountTable(4711, "30 24 0:99 / /x rw - tmpfs /dev/vdb rw\n")
	if _, err := n.Check(Wish{Path: freePath}); !errors.Is(err, Mounted) {
		t.Errorf("an unreadable list: %v", err)
	}
}
