package build

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"time"
)

const (
	// primed is what the node says when it has imported the image, see node/usr/local/lib/lab/prime.
	primed = "lab-prime: the image is ready"
	// primeTimeout is many times what it takes, for machines that do a lot else.
	primeTimeout = 15 * time.Minute
)

// prime starts a machine from the image itself, which imports the container image and powers off: an import takes an
// emulated machine long, and no node has to do it any more. It also shows that the image works.
func (b *builder) prime(ctx context.Context, image string, log io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, primeTimeout)
	defer cancel()
	args := append(b.tools.QemuData(),
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio", "-monitor", "none",
		"-machine", "pc", "-accel", "tcg,thread=multi", "-cpu", "Nehalem", "-smp", "2", "-m", "2048",
		"-kernel", b.kernel("vmlinuz"), "-initrd", b.kernel("initrd"),
		"-append", "root=LABEL="+rootLabel+" rw console=ttyS0 net.ifnames=0 panic=-1 systemd.unit=lab-prime.target",
		"-blockdev", "driver=file,node-name=root-file,cache.no-flush=on,discard=unmap,filename="+escape(image),
		"-blockdev", "driver=raw,node-name=root,file=root-file,discard=unmap",
		"-device", "virtio-blk-pci,drive=root,serial="+rootLabel,
		"-blockdev", "driver=file,node-name=image-file,read-only=on,filename="+escape(filepath.Join(b.imageDir, imageArchive)),
		"-blockdev", "driver=raw,node-name=image,read-only=on,file=image-file",
		"-device", "virtio-blk-pci,drive=image,serial=lab-image",
	)
	var console bytes.Buffer
	cmd := gently(b.tools.Command(ctx, "qemu-system-x86_64", args...))
	cmd.Stdout = io.MultiWriter(log, &console)
	if err := run(cmd, log); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if !bytes.Contains(console.Bytes(), []byte(primed)) {
		return errors.New("the machine started from the image and ended without having imported the container image")
	}
	return nil
}

// escape doubles commas, which separate options.
func escape(path string) string { return strings.ReplaceAll(path, ",", ",,") }
