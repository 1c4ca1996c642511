package device

// twins refuses a disk that another device of the node passes for. Without multipathd the kernel shows one disk as many devices as there
// are paths to it, and what uses it by one path, or takes it next, does not show on another. Devices that only claim to be the same, as
// cheap bridges do, cannot be told from that.
func (n *Node) twins(disk *Disk) error {
	own, err := n.identities(disk.Kernel, disk.Serial)
	if err != nil || len(own) == 0 {
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
		other, err := n.identities(name, serial)
		if err != nil {
			return err
		}
		for kind, identity := range own {
			if other[kind] == identity {
				disk.find(SameIdentity,
					"%s has the same %s (%s): they may be two paths to one disk, and users of one are not visible on the other. "+
						"Keep only one path to it, or use another disk; if they are different disks, give each its own serial number", name, kind,
					identity)
				break
			}
		}
	}
	return nil
}

// identities are the names that a disk has for itself, by their kind. What is empty is none.
func (n *Node) identities(kernel, serial string) (map[string]string, error) {
	found := map[string]string{}
	for _, file := range []string{"wwid", "device/wwid"} {
		wwid, err := n.text("sys/class/block", kernel, file)
		if err != nil {
			return nil, err
		}
		if wwid != "" {
			found["WWID"] = wwid
		}
	}
	model, err := n.text("sys/class/block", kernel, "device/model")
	if err != nil {
		return nil, err
	}
	if serial != "" {
		found["serial number"] = plainSerial(serial)
		if model != "" {
			found["serial number"] += " of model " + model
		}
	}
	return found, nil
}
