package vm

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// kernelArguments find the root by its label, whatever the disks are called, and show what happens in console.log. The mitigations against
// other programs on the processor cost an emulated one a third of its time, and there are no such programs in a lab.
const kernelArguments = "root=LABEL=lab-root rw console=ttyS0 net.ifnames=0 quiet mitigations=off init_on_alloc=0 audit=0 nowatchdog"

// Slots of the devices that every machine has. They are fixed, so that adding or removing a disk renames nothing.
const (
	rootSlot = iota + 3
	configSlot
	userSlot
	switchSlot
	randomSlot
)

// reconnectMilliseconds is how soon QEMU looks again for a switch that is not there.
const reconnectMilliseconds = 500

// arguments returns the whole command line. Options that QEMU accepts as JSON are given as JSON, where a comma in a path has no meaning.
func (s Spec) arguments(accelerator []string) []string {
	a := append([]string{}, s.Tools.QemuData()...)
	a = append(a, "-name", s.Name, "-no-user-config", "-nodefaults", "-display", "none", "-machine", "pc")
	a = append(a, accelerator...)
	a = append(a, "-smp", strconv.Itoa(s.CPUs), "-m", strconv.Itoa(s.MemoryMiB),
		"-kernel", s.Kernel, "-initrd", s.Initrd, "-append", kernelArguments,
		"-chardev", "file,id=console,append=on,path="+escape(filepath.Join(s.Folder, consoleFile)), "-serial", "chardev:console",
		"-chardev", "socket,id=qmp,server=on,wait=off,path="+escape(filepath.Join(s.Folder, qmpFile)), "-mon", "chardev=qmp,mode=control",
		"-object", encode(object{Type: "rng-builtin", ID: "random"}),
		"-device", encode(device{Driver: "virtio-rng-pci", ID: "rng", Slot: slot(randomSlot), Random: "random"}))
	a = append(a, s.networkArguments()...)
	a = append(a, s.systemDiskArguments()...)
	for n, disk := range s.Disks {
		a = append(a,
			"-object", encode(object{Type: "throttle-group", ID: limitID(disk.Name), Limits: &limits{disk.IOPS, disk.BytesPerSecond}}),
			"-blockdev", encode(s.dataNode(disk)),
			"-blockdev", encode(throttleNode(throttleID(disk.Name), limitID(disk.Name), fileID(disk.Name))),
			"-device", encode(s.dataDevice(n)))
	}
	return a
}

// networkArguments: eth0 is QEMU's own network, through which the host is reached; eth1 leads to the other machines.
func (s Spec) networkArguments() []string {
	user := map[string]any{"type": "user", "id": "user", "ipv6": false, "hostname": s.Name}
	var forwards []map[string]string
	for _, f := range s.Forwards {
		forwards = append(forwards, map[string]string{"str": fmt.Sprintf("tcp:%s:%d-:%d", f.HostAddress, f.HostPort, f.GuestPort)})
	}
	if len(forwards) > 0 {
		user["hostfwd"] = forwards
	}
	a := []string{"-netdev", encode(user), "-device", encode(s.card("eth0", "user", userSlot))}
	if s.SwitchSocket == "" {
		return a
	}
	return append(a,
		"-netdev", encode(map[string]any{"type": "stream", "id": "switch", "server": false,
			"addr": map[string]string{"type": "unix", "path": s.SwitchSocket}, "reconnect-ms": reconnectMilliseconds}),
		"-device", encode(s.card("eth1", "switch", switchSlot)))
}

// card returns a network card. Without its ROM, the machine does not try to boot from the network.
func (s Spec) card(id, network string, at int) device {
	none := ""
	return device{Driver: "virtio-net-pci", ID: id, Slot: slot(at), Network: network, ROM: &none,
		MAC: fmt.Sprintf("52:54:00:%02x:%02x:%02x", at, s.Index>>8, s.Index&0xff)}
}

// systemDiskArguments: the root disk, which is written as fast as the host can, and the read-only config.
func (s Spec) systemDiskArguments() []string {
	root := map[string]any{"driver": "qcow2", "node-name": "root", "file": "root-file", "discard": "unmap", "cache": noFlush}
	return []string{
		"-blockdev", encode(fileNode("root-file", filepath.Join(s.Folder, overlayFile), false)),
		"-blockdev", encode(root),
		"-device", encode(s.blockDevice("root", "root", "lab-root", rootSlot)),
		"-blockdev", encode(fileNode("config", s.Config, true)),
		"-device", encode(s.blockDevice("config", "config", "lab-config", configSlot)),
	}
}

type object struct {
	Type   string  `json:"qom-type"`
	ID     string  `json:"id"`
	Limits *limits `json:"limits,omitempty"`
}

type device struct {
	Driver  string  `json:"driver"`
	ID      string  `json:"id"`
	Slot    string  `json:"addr"`
	Random  string  `json:"rng,omitempty"`
	Network string  `json:"netdev,omitempty"`
	MAC     string  `json:"mac,omitempty"`
	ROM     *string `json:"romfile,omitempty"`
}

func slot(n int) string { return fmt.Sprintf("0x%x", n) }

// encode returns the JSON of a value. Callers only pass values that can be encoded.
func encode(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("write %#v as JSON: %v", value, err))
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// escape doubles commas, which separate options where QEMU takes no JSON.
func escape(path string) string { return strings.ReplaceAll(path, ",", ",,") }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
