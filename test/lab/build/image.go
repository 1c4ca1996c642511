package build

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
)

const (
	imageReference = "localhost/storagebench-lab:lab"
	imageArchive   = "image.tar"
	treeTarball    = "tree.tar"
)

// unwanted is what no container and no node of the lab uses: package lists, hardware databases, Python, which only
// reports of OpenZFS are written in, the tables of ICU, which only xfs_scrub needs, and what is there in two versions, such
// as the certificates beside the bundle of them: some of their names are not ASCII, and mke2fs refuses those.
var unwanted = []string{
	"usr/share/ca-certificates", "etc/ssl/certs/*.pem", "etc/ssl/certs/*.0",
	"dev/*", "var/cache/*", "var/lib/apt", "var/lib/dpkg", "var/log/*", "etc/hostid", "etc/ssh/ssh_host_*",
	"usr/bin/python3*", "usr/lib/python3*", "usr/share/python3", "usr/share/perl*", "usr/share/zoneinfo", "usr/share/i18n",
	"usr/lib/udev/hwdb.*", "usr/lib/x86_64-linux-gnu/gconv", "usr/lib/x86_64-linux-gnu/perl", "usr/lib/x86_64-linux-gnu/libicudata.*",
	"usr/bin/containerd-shim", "usr/bin/containerd-shim-runc-v1",
	"usr/lib/cni/dhcp", "usr/lib/cni/firewall", "usr/lib/cni/ipvlan", "usr/lib/cni/macvlan", "usr/lib/cni/sbr", "usr/lib/cni/vlan",
}

// unwantedInImage is what makes a machine of the tree, on top of that.
var unwantedInImage = append([]string{
	"etc/systemd", "usr/lib/systemd", "usr/lib/x86_64-linux-gnu/systemd", "var/lib/systemd", "usr/bin/systemd*", "usr/bin/*ctl",
	"etc/udev", "usr/lib/udev", "usr/bin/udevadm", "usr/lib/modules-load.d", "usr/lib/kernel", "usr/lib/initramfs-tools",
	"usr/share/initramfs-tools",
	"etc/containerd", "usr/bin/containerd*", "usr/bin/ctr", "usr/sbin/runc", "usr/lib/cni",
	"etc/ssh", "usr/bin/ssh*", "usr/sbin/sshd", "usr/lib/openssh", "usr/lib/sysusers.d", "usr/lib/tmpfiles.d",
}, unwanted...)

func isUnwanted(name string) bool        { return matchesOrIsIn(name, unwanted) }
func isUnwantedInImage(name string) bool { return matchesOrIsIn(name, unwantedInImage) }

// matchesOrIsIn is whether a path matches one of the patterns, or is in a folder that does.
func matchesOrIsIn(name string, patterns []string) bool {
	for ; name != "."; name = path.Dir(name) {
		for _, pattern := range patterns {
			if matches, _ := path.Match(pattern, name); matches {
				return true
			}
		}
	}
	return false
}

// buildImage makes the only container image that the lab needs for itself, of the tree that the nodes are made of.
func (b *builder) buildImage(ctx context.Context) (err error) {
	parts := append(b.programKeys(inImage), filepath.Base(b.tree))
	r := recipe{"image", append(parts, sources("image.go", "archive.go", "tarball.go", "pause/main.go")...)}
	b.imageDir, err = b.store.artifact(ctx, r, "make the container image of the lab", func(dir string, log io.Writer) error {
		pause := filepath.Join(dir, "pause")
		compile := command(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", pause, "./build/pause")
		compile.Dir = filepath.Join(b.checkout, "test", "lab")
		compile.Env = append(os.Environ(), "CGO_ENABLED=0")
		if err := run(compile, log); err != nil {
			return err
		}
		over := overlay{}
		err := over.program("pause", pause)
		for _, name := range inImage {
			err = errors.Join(err, over.program(name, b.programs[name]))
		}
		if err != nil {
			return err
		}
		layer := filepath.Join(dir, "layer.tar")
		if err := mergeFile(layer, []string{filepath.Join(b.tree, treeTarball)}, isUnwantedInImage, over); err != nil {
			return err
		}
		archive, err := os.Create(filepath.Join(dir, imageArchive))
		if err != nil {
			return err
		}
		err = image{imageReference, []string{"/pause"}, layer}.write(archive)
		return errors.Join(err, archive.Close(), os.Remove(layer), os.Remove(pause))
	})
	return err
}

// mergeFile merges into a new file.
func mergeFile(name string, bases []string, drop func(string) bool, over overlay) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(merge(file, bases, drop, over), file.Close())
}
