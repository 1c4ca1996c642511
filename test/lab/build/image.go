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

// imageTree is what the tests want to find in a pod.
var imageTree = debian{"essential", []string{
	"ca-certificates", "curl", "e2fsprogs", "fio", "procps", "util-linux", "xfsprogs", "zfsutils-linux",
}}

// unwanted is what no container and no node of the lab uses: package lists, hardware databases, Python, which only
// reports of OpenZFS are written in, the tables of ICU, which only xfs_scrub needs, and what is there in two versions.
var unwanted = []string{
	"dev/*", "var/cache/*", "var/lib/apt", "var/lib/dpkg", "var/log/*", "etc/ssh/ssh_host_*",
	"usr/bin/python3*", "usr/lib/python3*", "usr/share/python3", "usr/share/perl*", "usr/share/zoneinfo", "usr/share/i18n",
	"usr/lib/udev/hwdb.*", "usr/lib/x86_64-linux-gnu/gconv", "usr/lib/x86_64-linux-gnu/perl", "usr/lib/x86_64-linux-gnu/libicudata.*",
	"usr/bin/containerd-shim", "usr/bin/containerd-shim-runc-v1",
	"usr/lib/cni/dhcp", "usr/lib/cni/firewall", "usr/lib/cni/ipvlan", "usr/lib/cni/macvlan", "usr/lib/cni/sbr", "usr/lib/cni/vlan",
}

// isUnwanted is whether a path is unwanted, or in a folder that is.
func isUnwanted(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		for _, pattern := range unwanted {
			if matches, _ := path.Match(pattern, name); matches {
				return true
			}
		}
	}
	return false
}

// buildImageTree makes the Debian part of the container image.
func (b *builder) buildImageTree(ctx context.Context) (err error) {
	b.imageTree, err = b.buildTree(ctx, "image-tree", "make the Debian tree of the container image", imageTree)
	return err
}

// buildTree makes a tarball of a Debian tree.
func (b *builder) buildTree(ctx context.Context, name, what string, tree debian) (string, error) {
	return b.store.artifact(ctx, recipe{name, tree.options()}, what, func(dir string, log io.Writer) error {
		return tree.make(ctx, log, filepath.Join(dir, treeTarball))
	})
}

// buildImage makes the only container image that the lab needs for itself.
func (b *builder) buildImage(ctx context.Context) (err error) {
	parts := append(b.programKeys(inImage), filepath.Base(b.imageTree))
	r := recipe{"image", append(parts, sources("image.go", "archive.go", "tarball.go", "pause/main.go")...)}
	b.imageDir, err = b.store.artifact(ctx, r, "make the container image of the lab", func(dir string, log io.Writer) error {
		pause := filepath.Join(dir, "pause")
		compile := command(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", pause, "./test/lab/build/pause")
		compile.Dir = b.checkout
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
		if err := mergeFile(layer, []string{filepath.Join(b.imageTree, treeTarball)}, isUnwanted, over); err != nil {
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
