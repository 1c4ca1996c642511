package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// kernelTree is the kernel, the source of OpenZFS, and the tools to build OpenZFS for this kernel.
var kernelTree = debian{"extract", []string{
	"linux-image-cloud-amd64", "linux-headers-cloud-amd64", "zfs-dkms",
	"base-files", "bash", "busybox-static", "coreutils", "cpio", "dash", "diffutils", "findutils", "gcc", "grep", "gzip",
	"kmod", "libc6-dev", "make", "mawk", "sed", "tar", "xz-utils",
}}

// buildKernel makes the kernel, its modules with those of OpenZFS, and the initial RAM disk.
func (b *builder) buildKernel(ctx context.Context) (err error) {
	r := recipe{"kernel", append(kernelTree.options(), sources("kernel")...)}
	what := "build OpenZFS for the kernel of the nodes (takes minutes)"
	b.kernelDir, err = b.store.artifact(ctx, r, what, func(dir string, log io.Writer) error {
		hooks := []string{"--format=null", `--extract-hook=mkdir "$1/lab"`}
		for _, name := range []string{"build.sh", "init"} {
			content, err := embedded.ReadFile("kernel/" + name)
			if err != nil {
				return err
			}
			file := filepath.Join(dir, name)
			if err := os.WriteFile(file, content, 0o644); err != nil {
				return err
			}
			hooks = append(hooks, fmt.Sprintf("--extract-hook=upload '%s' /lab/%s", file, name))
		}
		hooks = append(hooks, `--extract-hook=chroot "$1" sh /lab/build.sh`)
		for _, name := range []string{"vmlinuz", "initrd", "modules.tar"} {
			hooks = append(hooks, fmt.Sprintf("--extract-hook=download /out/%s '%s'", name, filepath.Join(dir, name)))
		}
		if err := kernelTree.make(ctx, log, "/dev/null", hooks...); err != nil {
			return err
		}
		_, err := os.Stat(filepath.Join(dir, "modules.tar"))
		return err
	})
	return err
}

// kernel is the path of a file that buildKernel made.
func (b *builder) kernel(name string) string { return filepath.Join(b.kernelDir, name) }
