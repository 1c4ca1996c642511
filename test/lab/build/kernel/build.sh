#!/bin/sh
# Runs in a Debian tree that was unpacked and never configured. Leaves in /out: vmlinuz, initrd, and modules.tar with the
# modules of the kernel and those of OpenZFS.
set -eu
ln -sf mawk /usr/bin/awk # these two come from maintainer scripts
ln -sf gcc /usr/bin/cc
release=$(ls /lib/modules)
modules=/lib/modules/$release
jobs=$(nproc)

# Not dkms: it also makes debug information, strips it again, signs and compresses. Without debug information there
# are no BTF types to be had, and the kernel's makefiles skip that step only if there is no vmlinux.
export KCFLAGS=-g0
rm -f "/usr/src/linux-headers-$release/vmlinux"
cd /usr/src/zfs-*
echo "== configure $PWD for $release"
sh ./configure --disable-dependency-tracking --with-config=kernel \
	"--with-linux=$modules/source" "--with-linux-obj=$modules/build" || { tail -n 100 config.log; exit 1; }
echo "== make"
make -s -j"$jobs"

echo "== modules"
mkdir -p "$modules/extra" /out
cp module/spl.ko module/zfs.ko "$modules/extra/"
# Emulated processors are slow at unpacking.
find "$modules/kernel" -name '*.ko.xz' -print0 | xargs -0 -n 50 -P "$jobs" xz --decompress
rm "$modules/build" "$modules/source"
depmod "$release"
tar --create --file /out/modules.tar --numeric-owner --owner 0 --group 0 --directory / "usr/lib/modules/$release"
cp "/boot/vmlinuz-$release" /out/vmlinuz

# virtio_blk is all that this kernel lacks to mount its root: virtio_pci and ext4 are built in.
echo "== initrd"
mkdir -p /initrd/bin /initrd/dev /initrd/proc /initrd/sys /initrd/root
cp /lab/init /initrd/init
chmod 755 /initrd/init
cp /usr/bin/busybox /initrd/bin/busybox
cp "$modules/kernel/drivers/block/virtio_blk.ko" /initrd/
cd /initrd
find . | cpio --quiet --create --format newc --owner 0:0 > /out/initrd
ls -l /out
