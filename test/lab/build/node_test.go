package build

import (
	"io/fs"
	"strings"
	"testing"
)

func TestNodeFiles(t *testing.T) {
	over := overlay{}
	if err := over.files(embedded, "node"); err != nil {
		t.Fatal(err)
	}
	for name, entry := range over {
		isScript := strings.HasPrefix(name, "usr/local/lib/lab/")
		if got := entry.header.Mode == 0o755; got != isScript {
			t.Errorf("%s: mode %o", name, entry.header.Mode)
		}
		if isUnwanted(name) {
			t.Errorf("%s is both added and unwanted", name)
		}
	}
	for target, units := range enabled {
		for _, unit := range units {
			for _, off := range masked {
				if unit == off {
					t.Errorf("%s is wanted by %s and masked", unit, target)
				}
			}
		}
	}
}

func TestSourcesOfRecipesAreThere(t *testing.T) {
	for _, names := range [][]string{{"kernel"}, {"node", "node.go", "prime.go", "tarball.go", "image.go"}, {"archive.go", "pause/main.go"}} {
		if parts := sources(names...); len(parts) < 2*len(names) {
			t.Errorf("%v: only %d parts", names, len(parts))
		}
	}
	if _, err := fs.Stat(embedded, "kernel/build.sh"); err != nil {
		t.Error(err)
	}
	if prime := sources("node/usr/local/lib/lab/prime"); !strings.Contains(prime[1], primed) {
		t.Errorf("the script does not say %q", primed)
	}
}

func TestIsUnwanted(t *testing.T) {
	for name, want := range map[string]bool{
		"dev": false, "dev/null": true, "var/log": false, "var/log/apt/history.log": true, "usr/lib/python3.14/os.py": true,
		"usr/lib/x86_64-linux-gnu/libicudata.so.77": true, "usr/bin/containerd": false, "usr/bin/containerd-shim": true,
		"usr/bin/containerd-shim-runc-v2": false, "usr/lib/cni/bridge": false, "etc/ssh/ssh_host_rsa_key": true, "etc/ssh/sshd_config": false,
	} {
		if isUnwanted(name) && !isUnwantedInImage(name) {
			t.Errorf("%s is unwanted, but not in the image", name)
		}
		if got := isUnwanted(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
