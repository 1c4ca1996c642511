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

// twins refuses a disk that another device of the node passes for. Without multipathd the kernel shows one disk as many devices as there
// are paths to it, and what uses it by one path, or takes it next, does not show on another. Devices that only claim to be the same, as
// cheap bridges do, cannot be told from that.
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
			continue // what is made of disks has holders, and says so
		}
		hidden, err := n.text("sys/block", name, "hidden") // a path of an NVMe disk, which the kernel itself has joined
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
		serial, err := n.notedSerial(name, number)
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

// identity is what a disk says of itself, by which two paths to it can be told from two disks.
type identity struct {
	// worldwide names belong to one disk in the world: NAA, EUI-64, NGUID, UUID.
	worldwide []string
	// serial is the serial number, with the model if there is one.
	serial string
}

// claims says what two disks have in common that only one can have; empty if nothing.
func (a identity) claims(b identity) string {
	for _, name := range a.worldwide {
		if slices.Contains(b.worldwide, name) {
			return fmt.Sprintf("WWID (%s)", name)
		}
	}
	if a.serial != "" && a.serial == b.serial {
		return fmt.Sprintf("serial number (%s)", a.serial)
	}
	return ""
}

// identity reads what the kernel asked the disk when it appeared: nothing is asked now.
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

// void says that a name is none: some disks give zeros where others have theirs.
func void(name string) bool { return strings.Trim(name, "0 -\x00") == "" }

// add takes a name in, in one spelling: the kernel and the disk write it in several.
func (a *identity) add(name string) {
	kind, text, _ := strings.Cut(name, ".")
	if kind = strings.ToLower(kind); kind == "eui" || kind == "naa" || kind == "uuid" {
		text = strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(text))
	}
	if name = kind + "." + text; !slices.Contains(a.worldwide, name) {
		a.worldwide = append(a.worldwide, name)
	}
}

// designators are the worldwide names of a logical unit in page 0x83 of the vital product data. Those of the port or the target that it is
// seen by do not count, nor those of its maker, which are often the same for a whole series.
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
