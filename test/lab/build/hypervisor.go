package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/storagebench/storagebench/test/lab/toolroot"
)

// tools are ssh, QEMU and what makes file systems. QEMU only recommends its firmware for network cards, but does not start
// without it. mke2fs loads libarchive only when it is given a tarball, so no dependency installs it.
var tools = debian{"extract", []string{"qemu-system-x86", "qemu-utils", "ipxe-qemu", "e2fsprogs", "libarchive13t64", "openssh-client"}}

// toolFiles are the files that are kept of this tree: most of the rest is for other processors.
var toolFiles = []string{
	"usr/bin/qemu-system-x86_64", "usr/bin/qemu-img", "usr/sbin/mke2fs", "usr/sbin/e2fsck", "usr/sbin/debugfs", "usr/bin/ssh",
	"usr/lib64/*", "usr/lib/x86_64-linux-gnu/*", "usr/lib/x86_64-linux-gnu/qemu/*", "etc/mke2fs.conf",
	"usr/lib/ipxe/qemu/*", "usr/share/seabios/*",
	"usr/share/qemu/*.rom", "usr/share/qemu/kvmvapic.bin", "usr/share/qemu/linuxboot*.bin", "usr/share/qemu/multiboot*.bin",
}

// buildTools makes the folder of programs that the lab runs on this machine.
func (b *builder) buildTools(ctx context.Context) error {
	r := recipe{"tools", append(tools.options(), toolFiles...)}
	dir, err := b.store.artifact(ctx, r, "fetch QEMU and the file system tools", func(dir string, log io.Writer) error {
		tarball := filepath.Join(dir, "tree.tar")
		if err := tools.make(ctx, log, tarball); err != nil {
			return err
		}
		if err := extract(tarball, dir, isTool); err != nil {
			return fmt.Errorf("unpack the tools: %w", err)
		}
		root := toolroot.Root(dir)
		for program, argument := range map[string]string{"qemu-system-x86_64": "--version", "qemu-img": "--version", "mke2fs": "-V",
			"ssh": "-V"} {
			if err := run(root.Command(ctx, program, argument), log); err != nil {
				return err
			}
		}
		return os.Remove(tarball)
	})
	b.tools = toolroot.Root(dir)
	return err
}

func isTool(name string) bool {
	for _, pattern := range toolFiles {
		if matches, _ := path.Match(pattern, name); matches {
			return !strings.HasSuffix(name, ".a")
		}
	}
	return false
}
