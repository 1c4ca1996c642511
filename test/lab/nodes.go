package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/lab/proc"
	"github.com/storagebench/storagebench/test/lab/progress"
	"github.com/storagebench/storagebench/test/lab/toolroot"
	"github.com/storagebench/storagebench/test/lab/vm"
)

// machine returns the virtual machine of the nth node.
func (l *Lab) machine(s *state, n int) vm.Spec {
	name := nodeName(n)
	return vm.Spec{
		Name: name, Folder: l.path("nodes", name), Tools: toolroot.Root(s.Tools), Kernel: s.Kernel, Initrd: s.Initrd, RootImage: s.RootImage,
		Config: l.path("nodes", name, "config.tar"), CPUs: s.Options.CPUs, MemoryMiB: s.Options.MemoryMiB,
		Forwards: []vm.Forward{
			{HostAddress: s.address(n), HostPort: KubeletPort, GuestPort: KubeletPort},
			{HostAddress: s.address(n), HostPort: sshPort, GuestPort: 22},
		},
		SwitchSocket: l.switchSocket(), Index: n, Disks: s.Options.all(),
	}
}

// diskFile returns the file behind a disk of the nth node.
func (l *Lab) diskFile(s *state, n int, disk string) string {
	return filepath.Join(l.machine(s, n).Folder, disk+".raw")
}

// DiskFile returns the file behind a disk of a node. It contains what the node has written, once the node has flushed its disk.
func (l *Lab) DiskFile(node, disk string) (string, error) {
	s, n, err := l.loadNode(node)
	if err != nil {
		return "", err
	}
	return l.diskFile(s, n, disk), nil
}

// part returns the name of a node's process.
func part(node string) string { return "node-" + node }

// isPart reports whether a log belongs to a part, and not to a step.
func isPart(name string) bool {
	return slices.Contains([]string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", keeperPart}, name) ||
		strings.HasPrefix(name, "node-")
}

// bootNodes starts the virtual machines that do not run.
func (l *Lab) bootNodes(ctx context.Context, s *state, log io.Writer) error {
	for n := 1; n <= s.Options.Nodes; n++ {
		if err := l.bootNode(ctx, s, n); err != nil {
			return fmt.Errorf("node %s: %w", nodeName(n), err)
		}
		_, _ = fmt.Fprintf(log, "node %s runs\n", nodeName(n))
	}
	return nil
}

func (l *Lab) bootNode(ctx context.Context, s *state, n int) error {
	parts, err := l.running()
	if err != nil || parts[part(nodeName(n))] {
		return err
	}
	machine := l.machine(s, n)
	if err := os.MkdirAll(machine.Folder, 0o700); err != nil {
		return err
	}
	if _, err := os.Stat(machine.Config); errors.Is(err, os.ErrNotExist) {
		config, err := l.nodeConfig(s, n)
		if err != nil {
			return err
		}
		if err := os.WriteFile(machine.Config, config, 0o600); err != nil {
			return err
		}
	}
	if err := machine.Prepare(ctx); err != nil {
		return err
	}
	if err := l.formatFiles(ctx, s, n); err != nil {
		return err
	}
	// The machine lives on when this program ends.
	command := machine.Command(context.WithoutCancel(ctx))
	return proc.Start(command, l.Folder, part(machine.Name), filepath.Join(l.Logs(), part(machine.Name)+".log"))
}

// formatFiles makes a file system on the disk for volumes. It does so on this machine, where that takes no time. A sparse file without data
// has no file system yet.
func (l *Lab) formatFiles(ctx context.Context, s *state, n int) error {
	disk := l.diskFile(s, n, s.Options.Files.Name)
	var status unix.Stat_t
	if err := unix.Stat(disk, &status); err != nil || status.Blocks > 0 {
		return err
	}
	// No initialization is left for later, because it would count against the throttle.
	command := toolroot.Root(s.Tools).Command(ctx, "mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-E",
		"lazy_itable_init=0,lazy_journal_init=0", disk)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("make a file system on %s: %w: %s", disk, err, output)
	}
	return nil
}

// connect makes a client for the cluster.
func (l *Lab) connect(s *state) (client.WithWatch, error) {
	config, err := l.restConfig(s)
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{})
}

func (l *Lab) restConfig(s *state) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.plane(s).Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("lab %s has no usable kubeconfig (%w): 'make lab-down lab-up' recreates it", l.Name, err)
	}
	return config, nil
}

// Config returns a configuration for clients of the lab's cluster.
func (l *Lab) Config() (*rest.Config, error) {
	s, err := l.load()
	if err != nil {
		return nil, err
	}
	return l.restConfig(s)
}

// registerNode creates the Node object, or corrects it: the kubelet keeps the addresses that it finds. Pods reach a node by
// its address among the nodes, the control plane by the loopback address that leads to it.
func registerNode(ctx context.Context, cluster client.Client, s *state, n int) error {
	name := nodeName(n)
	wanted := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelLabNode: "true", corev1.LabelHostname: name}},
		Spec:       corev1.NodeSpec{PodCIDR: podSubnet(n), PodCIDRs: []string{podSubnet(n)}, ProviderID: "storagebench-lab://" + name},
	}
	if err := cluster.Create(ctx, wanted); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the Node object %s: %w", name, err)
	}
	var node corev1.Node
	if err := cluster.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return err
	}
	before := client.MergeFrom(node.DeepCopy())
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == "node.cloudprovider.kubernetes.io/uninitialized"
	})
	node.Spec.PodCIDR, node.Spec.PodCIDRs = wanted.Spec.PodCIDR, wanted.Spec.PodCIDRs
	node.Labels[v1alpha1.LabelLabNode] = "true"
	if err := cluster.Patch(ctx, &node, before); err != nil {
		return fmt.Errorf("correct the Node object %s: %w", name, err)
	}
	before = client.MergeFrom(node.DeepCopy())
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: innerIP(n)},
		{Type: corev1.NodeExternalIP, Address: s.address(n)},
		{Type: corev1.NodeHostName, Address: name},
	}
	if err := cluster.Status().Patch(ctx, &node, before); err != nil {
		return fmt.Errorf("set the addresses of node %s: %w", name, err)
	}
	return nil
}

// waitNodes waits until all nodes are ready. A machine that ends while it boots is started once more: QEMU without KVM sometimes fails an
// assertion of its own.
func (l *Lab) waitNodes(ctx context.Context, cluster client.WithWatch, s *state, report *progress.Reporter, log io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	waiting, restarted := s.nodes(), map[string]bool{}
	return l.poll(ctx, func() (bool, string, error) {
		parts, err := l.running()
		if err != nil {
			return false, "", err
		}
		for _, name := range s.nodes() {
			if parts[part(name)] {
				continue
			}
			if restarted[name] {
				return false, "", fmt.Errorf("the virtual machine of node %s has ended; %s", name, l.console(name))
			}
			report.Say("the virtual machine of node %s has ended: starting it once more. The last lines of its log:\n%s", name,
				progress.Tail(filepath.Join(l.Logs(), part(name)+".log")))
			restarted[name] = true
			if err := l.bootNodes(ctx, s, log); err != nil {
				return false, "", err
			}
		}
		var nodes corev1.NodeList
		if err := cluster.List(ctx, &nodes); err != nil {
			return false, "", err
		}
		waiting = slices.DeleteFunc(s.nodes(), func(name string) bool { return nodeReady(nodes.Items, name) })
		said := "not ready yet: " + strings.Join(waiting, ", ")
		_, _ = fmt.Fprintln(log, said)
		return len(waiting) == 0, said + "; " + l.console(s.nodes()[0]), nil
	})
}

func (l *Lab) console(node string) string {
	return "its console is in " + l.path("nodes", node, "console.log")
}

func nodeReady(nodes []corev1.Node, name string) bool {
	return slices.ContainsFunc(nodes, func(node corev1.Node) bool { return node.Name == name && isReady(&node) })
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

func getNode(ctx context.Context, cluster client.Client, name string) (*corev1.Node, error) {
	var node corev1.Node
	err := cluster.Get(ctx, client.ObjectKey{Name: name}, &node)
	return &node, err
}

// poll calls ask repeatedly until it is done. The lab's own processes have no watch.
func (l *Lab) poll(ctx context.Context, ask func() (done bool, state string, err error)) error {
	for {
		done, state, err := ask()
		if err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", state, ctx.Err())
		case <-time.After(500 * time.Millisecond):
		}
	}
}
