package vm

import (
	"bufio"
	"os"
	"slices"
	"strings"
)

// The files of Linux that Accelerator checks.
const (
	cpuinfoPath = "/proc/cpuinfo"
	kvmPath     = "/dev/kvm"
)

// Accelerator returns the arguments that make QEMU as fast as this machine allows: KVM if the processor has vmx or svm
// and the device is writable, otherwise software emulation. Both are needed: there are machines with a /dev/kvm that runs
// only paravirtual guests. Of the emulated processors, Nehalem is the newest that ran without faults.
func Accelerator(cpuinfo, kvm string) []string {
	if virtualizes(cpuinfo) && writable(kvm) {
		return []string{"-accel", "kvm", "-cpu", "host"}
	}
	return []string{"-accel", "tcg,thread=multi,tb-size=512", "-cpu", "Nehalem"}
}

// Emulated reports whether nodes run on an emulated processor.
func Emulated() bool { return !slices.Contains(Accelerator(cpuinfoPath, kvmPath), "kvm") }

func virtualizes(cpuinfo string) bool {
	file, err := os.Open(cpuinfo)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if strings.TrimSpace(name) != "flags" {
			continue
		}
		flags := strings.Fields(value)
		return slices.Contains(flags, "vmx") || slices.Contains(flags, "svm")
	}
	return false
}

func writable(path string) bool {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	return file.Close() == nil
}
