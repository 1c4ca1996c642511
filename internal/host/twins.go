package host

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// twins refuses a disk that appears to be the same as another device of the node. Without multipathd, the kernel shows each path to a disk
// as a device of its own, and a use by one path is not visible on the others. Devices that wrongly claim to be the same, as cheap bridges
// do, cannot be distinguished from two paths to one disk.
func (n *Node) twins(disk *Disk) error {
	own, err := n.identity(disk.Kernel, disk.Serial)
	if err != nil || len(own.worldwide) == 0 && own.serial == "" {
		return err
	}
	names, err := n.names("sys/block")
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == disk.Kernel || n.notWhole(name) != "" {
			continue // a device made of disks is found as a holder
		}
		hidden, err := n.text("sys/block", name, "hidden") // one path of an NVMe disk whose paths the kernel itself has joined
		if err != nil {
			return err
		}
		number, err := n.text("sys/class/block", name, "dev")
		if err != nil {
			return err
		}
		if hidden == "1" || number == "" {
			continue
		}
		serial, err := n.recordedSerial(name, number)
		if err != nil {
			return err
		}
		other, err := n.identity(name, serial)
		if err != nil {
			return err
		}
		if claim := own.claims(other); claim != "" {
			disk.find(SameIdentity,
				"%s has the same %s: they may be two paths to one disk, and users of one are not visible on the other. "+
					"Keep only one path to it, or use another disk; if they are different disks, give each its own serial number", name, claim)
		}
	}
	return nil
}

// identity is how a disk identifies itself. It distinguishes two paths to one disk from two disks.
type identity struct {
	// worldwide names belong to one disk in the world: NAA, EUI-64, NGUID, UUID.
	worldwide []string
	// serial is the serial number, with the model if there is one.
	serial string
}

// claims names the identifier that two disks have in common although only one disk can have it. It is empty if there is none.
func (a identity) claims(b identity) string {
	for _, name := range a.worldwide {
		if slices.Contains(b.worldwide, name) {
			return fmt.Sprintf("WWID (%s)", name)
		}
	}
	if a.serial != "" && a.serial == b.serial {
		return serialNumber // which is not shown to everyone, see NoContents
	}
	return ""
}

// identity reads what the kernel learned when the disk appeared. It does not ask the disk.
func (n *Node) identity(kernel, serial string) (identity, error) {
	block := filepath.Join("sys/class/block", kernel)
	var found identity
	for _, source := range []struct{ file, prefix string }{
		{"wwid", ""}, {"device/wwid", ""}, {"eui", "eui."}, {"nguid", "eui."}, {"uuid", "uuid."},
	} {
		name, err := n.text(block, source.file)
		if err != nil {
			return found, err
		}
		if name != "" && (source.prefix == "" || !void(name)) {
			found.add(source.prefix + name)
		}
	}
	page, err := os.ReadFile(n.path(block, "device/vpd_pg83"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EINVAL) { // a disk without the page
		return found, err
	}
	for _, name := range designators(page) {
		found.add(name)
	}
	model, err := n.text(block, "device/model")
	if err != nil {
		return found, err
	}
	if serial != "" {
		found.serial = plainSerial(serial)
		if model != "" {
			found.serial += " of model " + model
		}
	}
	return found, nil
}

// void reports whether a name is meaningless: some disks have zeros instead of a name.
func void(name string) bool { return strings.Trim(name, "0 -\x00") == "" }

// add adds a name in a common spelling: the kernel and the disk spell it differently.
func (a *identity) add(name string) {
	kind, text, _ := strings.Cut(name, ".")
	if kind = strings.ToLower(kind); kind == "eui" || kind == "naa" || kind == "uuid" {
		text = strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(text))
	}
	if name = kind + "." + text; !slices.Contains(a.worldwide, name) {
		a.worldwide = append(a.worldwide, name)
	}
}

// designators are the worldwide names of a logical unit in page 0x83 of the vital product data. Names of its port or target do not count,
// nor does a vendor-specific name, which a whole series often shares.
func designators(page []byte) []string {
	if len(page) < 4 || page[1] != 0x83 {
		return nil
	}
	rest := page[4:min(len(page), 4+int(page[2])<<8+int(page[3]))]
	var names []string
	for len(rest) >= 4 {
		ofUnit, kind, length := rest[1]&0x30 == 0, rest[1]&0xf, int(rest[3])
		if 4+length > len(rest) {
			break
		}
		data := rest[4 : 4+length]
		rest = rest[4+length:]
		switch {
		case !ofUnit || void(hex.EncodeToString(data)):
		case kind == 2:
			names = append(names, "eui."+hex.EncodeToString(data))
		case kind == 3:
			names = append(names, "naa."+hex.EncodeToString(data))
		case kind == 8:
			names = append(names, strings.TrimRight(string(data), "\x00"))
		}
	}
	return names
}
