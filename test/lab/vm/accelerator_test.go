package vm

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAccelerator(t *testing.T) {
	kvm := []string{"-accel", "kvm", "-cpu", "host"}
	emulated := []string{"-accel", "tcg,thread=multi,tb-size=512", "-cpu", "Nehalem"}
	for name, test := range map[string]struct {
		cpuinfo string
		device  bool
		want    []string
	}{
		"Intel":                            {"processor\t: 0\nflags\t\t: fpu vme vmx sse\n", true, kvm},
		"AMD":                              {"processor\t: 0\nflags\t\t: fpu svm\n", true, kvm},
		"a device for paravirtual guests":  {"processor\t: 0\nflags\t\t: fpu hypervisor\n", true, emulated},
		"a flag that only begins alike":    {"flags\t\t: svm_lock vmxoff\n", true, emulated},
		"flags of the hypervisor's own":    {"vmx flags\t: vnmi preemption_timer\nflags\t\t: fpu\n", true, emulated},
		"no device":                        {"flags\t\t: fpu vmx\n", false, emulated},
		"no flags, as on other processors": {"Features\t: fp asimd\n", true, emulated},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			cpuinfo, device := filepath.Join(folder, "cpuinfo"), filepath.Join(folder, "kvm")
			if err := os.WriteFile(cpuinfo, []byte(test.cpuinfo), 0o600); err != nil {
				t.Fatal(err)
			}
			if test.device {
				if err := os.WriteFile(device, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, Accelerator(cpuinfo, device)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if diff := cmp.Diff(emulated, Accelerator("/nowhere/cpuinfo", "/nowhere/kvm")); diff != "" {
		t.Error(diff)
	}
}
