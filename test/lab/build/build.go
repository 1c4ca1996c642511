// Package build makes everything that the lab is made of: the programs of the control plane, a QEMU to run the nodes
// with, the kernel with OpenZFS, and the disk that the nodes start from. What was made is kept, and is made again only
// if its inputs have changed.
//
// # The node image
//
// It is Debian 13 with OpenZFS, containerd, kubelet and kube-proxy, on an ext4 file system labelled lab-root. It is never
// written to: nodes run on overlays of it. This is what a node gets from outside, and what it does with that:
//
//   - Kernel command line: root=LABEL=lab-root rw console=ttyS0 net.ifnames=0
//   - A virtio disk with the serial number lab-config holds an uncompressed tar archive, padded to whole sectors. At every
//     boot lab-config.service unpacks it to /, before the network, sshd, containerd and kubelet start. If it brought
//     /etc/lab/setup, that is then run. Files that it no longer holds are not removed.
//   - The archive brings what makes one node different from another: /etc/hostname (setup says hostname -F), /etc/hosts,
//     /etc/resolv.conf, /etc/systemd/network/*.network (systemd-networkd configures the network), packet filter rules
//     (setup loads them), /etc/cni/net.d, /etc/kubernetes, /root/.ssh/authorized_keys and /etc/ssh/ssh_host_ed25519_key,
//     and /etc/hostid, without which lab-config.service makes a random one.
//   - kubelet.service runs kubelet $KUBELET_ARGS, from /etc/lab/kubelet.env; kube-proxy.service runs kube-proxy
//     $KUBE_PROXY_ARGS, from /etc/lab/kube-proxy.env. Without its file a service does not start.
//   - containerd has the image localhost/storagebench-lab:lab, and no other. It is the sandbox of all pods and has
//     coredns, local-path-provisioner and pause in /, and a shell with fio, the OpenZFS and file system tools, and curl.
//   - sshd lets root in with a key only.
package build

import (
	"context"
	"embed"
	"io/fs"

	"golang.org/x/sync/errgroup"

	"github.com/storagebench/storagebench/test/lab/progress"
	"github.com/storagebench/storagebench/test/lab/toolroot"
)

// Artifacts says where everything is.
type Artifacts struct {
	// Programs are etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl, by name.
	Programs map[string]string
	// Tools has qemu-system-x86_64, qemu-img, mke2fs, e2fsck, debugfs and ssh.
	Tools toolroot.Root
	// Kernel and Initrd are what QEMU starts.
	Kernel, Initrd string
	// RootImage is the raw image of the file system labelled lab-root, to be used as the base of overlays only.
	RootImage string
}

//go:embed kernel node pause/main.go image.go archive.go node.go prime.go tarball.go
var embedded embed.FS

// All builds what does not exist yet.
func All(ctx context.Context, report *progress.Reporter) (Artifacts, error) {
	store, err := openStore(report)
	if err != nil {
		return Artifacts{}, err
	}
	b := &builder{store: store}
	if b.checkout, err = findCheckout(); err != nil {
		return Artifacts{}, err
	}
	if err := b.prepare(ctx); err != nil {
		return Artifacts{}, err
	}
	if err := b.buildImage(ctx); err != nil {
		return Artifacts{}, err
	}
	root, err := b.buildRoot(ctx)
	if err != nil {
		return Artifacts{}, err
	}
	programs := map[string]string{}
	for _, name := range controlPlane {
		programs[name] = b.programs[name]
	}
	return Artifacts{Programs: programs, Tools: b.tools, Kernel: b.kernel("vmlinuz"), Initrd: b.kernel("initrd"), RootImage: root}, nil
}

// builder knows where everything is that was built so far.
type builder struct {
	store    *store
	checkout string
	programs map[string]string
	tools    toolroot.Root
	// The folders of artifacts.
	kernelDir, tree, imageDir string
}

// prepare builds what does not depend on anything else.
func (b *builder) prepare(ctx context.Context) error {
	steps, ctx := errgroup.WithContext(ctx)
	steps.Go(func() error { return b.buildPrograms(ctx) })
	steps.Go(func() error { return b.buildKernel(ctx) })
	steps.Go(func() error { // one after another: they wait for the same mirror
		if err := b.buildTools(ctx); err != nil {
			return err
		}
		return b.buildTree(ctx)
	})
	return steps.Wait()
}

// sources is the content of embedded files and folders, as parts of a recipe.
func sources(names ...string) []string {
	var parts []string
	for _, name := range names {
		// It cannot fail: all of it is in memory, and a name that is not there is found by the first test.
		err := fs.WalkDir(embedded, name, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := embedded.ReadFile(path)
			parts = append(parts, path, string(content))
			return err
		})
		if err != nil {
			panic(err)
		}
	}
	return parts
}
