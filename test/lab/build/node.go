package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	rootLabel = "lab-root"
	rootImage = "root.raw"
	// rootSize is what nodes see: the image is sparse.
	rootSize = "6G"
)

// nodeTree is the Debian part of the nodes, and of the container image: one tree for both is made in half the time.
var nodeTree = debian{"essential", []string{
	"systemd", "systemd-sysv", "udev", "dbus", "kmod", "mount", "iproute2", "iptables", "nftables", "conntrack", "ethtool",
	"containerd", "runc", "containernetworking-plugins", "openssh-server", "ca-certificates", "curl",
	"zfsutils-linux", "e2fsprogs", "xfsprogs", "fio", "procps", "psmisc", "less",
}}

// enabled are the units that start, by what wants them.
var enabled = map[string][]string{
	"sysinit.target": {"lab-config.service"},
	"multi-user.target": {"containerd.service", "kubelet.service", "kube-proxy.service", "ssh.service", "systemd-networkd.service",
		"zfs-load-module.service"},
}

// masked are units that would take time, need what is not there, or touch pools and disks that are the tests'.
var masked = []string{
	"zfs-import-cache.service", "zfs-import-scan.service", "zfs-mount.service", "zfs-share.service", "zfs-volume-wait.service",
	"zfs-zed.service", "zfs-import.target", "zfs-volumes.target", "systemd-udev-settle.service",
	"apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap.service",
	"fstrim.timer", "xfs_scrub_all.timer", "systemd-tmpfiles-clean.timer", "logrotate.timer",
	"getty@tty1.service", "systemd-logind.service", "systemd-binfmt.service", "systemd-firstboot.service",
	"systemd-hwdb-update.service", "systemd-journal-catalog-update.service", "systemd-journal-flush.service",
	"systemd-update-done.service", "systemd-machine-id-commit.service", "systemd-random-seed.service", "systemd-pstore.service",
	"systemd-pcrmachine.service", "systemd-pcrphase.service", "systemd-pcrphase-sysinit.service", "systemd-pcrextend.socket",
	"systemd-tpm2-setup.service", "systemd-tpm2-setup-early.service", "systemd-networkd-wait-online.service",
	"systemd-networkd-persistent-storage.service", "systemd-network-generator.service", "systemd-timesyncd.service",
	"systemd-repart.service", "systemd-sysext.service", "systemd-confext.service", "ldconfig.service", "sshd-keygen.service",
	"dev-hugepages.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-fs-fuse-connections.mount", "sys-kernel-config.mount",
	"modprobe@configfs.service", "modprobe@drm.service", "modprobe@efi_pstore.service", "modprobe@fuse.service",
	"modprobe@dm_mod.service", "modprobe@loop.service",
}

// buildTree makes a tarball of that.
func (b *builder) buildTree(ctx context.Context) (err error) {
	r := recipe{"tree", nodeTree.options()}
	b.tree, err = b.store.artifact(ctx, r, "make the Debian tree of the nodes", func(dir string, log io.Writer) error {
		return nodeTree.make(ctx, log, filepath.Join(dir, treeTarball))
	})
	return err
}

// buildRoot makes the image that nodes start from, and is its path.
func (b *builder) buildRoot(ctx context.Context) (string, error) {
	parts := append(b.programKeys(onNodes), filepath.Base(b.tree), filepath.Base(b.kernelDir), filepath.Base(b.imageDir),
		filepath.Base(string(b.tools)))
	r := recipe{"root", append(parts, sources("node", "node.go", "prime.go", "tarball.go", "image.go")...)}
	what := "make the disk image of the nodes, and start it once to import the container image"
	dir, err := b.store.artifact(ctx, r, what, func(dir string, log io.Writer) error {
		over, err := b.nodeOverlay()
		if err != nil {
			return err
		}
		tarball := filepath.Join(dir, treeTarball)
		bases := []string{filepath.Join(b.tree, treeTarball), b.kernel("modules.tar")}
		if err := mergeFile(tarball, bases, isUnwanted, over); err != nil {
			return err
		}
		image := filepath.Join(dir, rootImage)
		format := b.tools.Command(ctx, "mke2fs", "-q", "-F", "-t", "ext4", "-L", rootLabel, "-m", "0", "-J", "size=16",
			"-E", "root_owner=0:0,assume_storage_prezeroed=1", "-d", tarball, image, rootSize)
		if err := run(gently(format), log); err != nil {
			return fmt.Errorf("make the file system: %w", err)
		}
		return errors.Join(b.prime(ctx, image, log), os.Remove(tarball))
	})
	return filepath.Join(dir, rootImage), err
}

// nodeOverlay is what makes a node of the lab out of a Debian tree.
func (b *builder) nodeOverlay() (overlay, error) {
	over := overlay{}
	err := over.files(embedded, "node")
	for _, name := range onNodes {
		err = errors.Join(err, over.program("usr/local/bin/"+name, b.programs[name]))
	}
	over.content("etc/machine-id", 0o444, nil) // systemd makes one at every start
	over.link("etc/systemd/system/default.target", "/usr/lib/systemd/system/multi-user.target")
	for _, unit := range masked {
		over.link("etc/systemd/system/"+unit, "/dev/null")
	}
	for target, units := range enabled {
		for _, unit := range units {
			folder := "/usr/lib/systemd/system/"
			if _, ours := over["etc/systemd/system/"+unit]; ours && !strings.HasPrefix(unit, "zfs") {
				folder = "/etc/systemd/system/"
			}
			over.link("etc/systemd/system/"+target+".wants/"+unit, folder+unit)
		}
	}
	return over, err
}
