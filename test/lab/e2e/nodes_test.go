package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// getNode reads a node.
func getNode(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := cluster.Get(ctx, client.ObjectKey{Name: name}, node)
	return node, err
}

// bootOf returns the ID of a node's present boot.
func bootOf(t *testing.T, name string) string {
	t.Helper()
	node, err := getNode(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return node.Status.NodeInfo.BootID
}

// act performs an action on a node and prints how long that took. Whatever happens, the node is on at the end of the test.
func act(t *testing.T, node, action string) {
	t.Helper()
	started := time.Now()
	if err := theLab.Node(t.Context(), node, action, io.Discard); err != nil {
		t.Fatalf("%s of node %s: %v", action, node, err)
	}
	fmt.Printf("node %s: %s took %.0f s\n", node, action, time.Since(started).Seconds())
}

// switchOn switches on a node that is off or whose QEMU hangs. hack/e2e searches the log for the message about a hang.
func switchOn(t *testing.T, node string) {
	t.Helper()
	ctx, cancel := afterwards(t)
	defer cancel()
	if err := theLab.Node(ctx, node, "on", os.Stdout); err != nil {
		t.Errorf("node %s stays off: %v", node, err)
	}
}

// switchOnAfterwards switches a node on at the end of a test, in case the test failed halfway.
func switchOnAfterwards(t *testing.T, node string) {
	t.Cleanup(func() { switchOn(t, node) })
}

// containers returns the running containers of a node by the UID of their pod. Pods whose containers are not restarted are left out.
func containers(ctx context.Context, node string) (map[string]string, error) {
	var pods corev1.PodList
	if err := cluster.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, err
	}
	running := map[string]string{}
	for i := range pods.Items {
		if pod := &pods.Items[i]; isReady(pod) && pod.Spec.RestartPolicy == corev1.RestartPolicyAlways && pod.DeletionTimestamp == nil {
			running[string(pod.UID)] = pod.Status.ContainerStatuses[0].ContainerID
		}
	}
	return running, nil
}

// runAgain waits until all pods that a node had run in new containers, so that no state of the last boot is mistaken for a new one.
func runAgain(t *testing.T, node string, before map[string]string) {
	t.Helper()
	started := time.Now()
	eventually(t, "the pods of node "+node+" run again", func(g gomega.Gomega) {
		now, err := containers(t.Context(), node)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		for pod, container := range before {
			g.Expect(now).To(gomega.HaveKey(pod), "not ready")
			g.Expect(now[pod]).NotTo(gomega.Equal(container), "its state is that of the last boot")
		}
	})
	fmt.Printf("node %s: its %d pods run again, %.0f s later\n", node, len(before), time.Since(started).Seconds())
}

// usable checks that a pod runs on the node, and that a name resolves in it.
func (s *space) usable(node string) {
	s.t.Helper()
	pod := s.start("usable-"+node, on(node))
	eventually(s.t, "names resolve on node "+node, func(g gomega.Gomega) {
		output, err := s.try(pod.Name, `getent hosts kubernetes.default`)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(output).To(gomega.HavePrefix("10.96.0.1 "))
	})
}

// TestNodeReset: after the reset button a node is ready in another boot, its pods run again, and a pool that was not exported is
// imported with its data.
func TestNodeReset(t *testing.T) {
	long(t)
	node, name := nodes[len(nodes)-1], poolPrefix+"reset"
	disk := device(node, takeDisks(t, node, 1)[0].Name)
	g, s := gomega.NewWithT(t), newSpace(t, levelPrivileged)
	switchOnAfterwards(t, node)
	pod := s.start("pool", on(node), privileged).Name
	sum := s.must(pod, makePool, name, disk)
	boot := bootOf(t, node)
	before, err := containers(t.Context(), node)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(before).NotTo(gomega.BeEmpty())

	act(t, node, "reset")
	g.Expect(bootOf(t, node)).NotTo(gomega.Equal(boot))
	runAgain(t, node, before)
	s.usable(node)
	g.Expect(s.must(pod, `zpool list -H -o name`)).NotTo(gomega.ContainSubstring(name), "it is not imported yet")
	s.must(pod, `zpool import -o cachefile=none -d /dev/disk/by-id "$1"`, name)
	g.Expect(s.must(pod, `sha256sum "/$1/data/file"`, name)).To(gomega.Equal(sum))
	s.must(pod, `zpool scrub -w "$1"`, name)
	status, err := s.status(pod, name)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(status.State).To(gomega.Equal("ONLINE"))
	g.Expect(status.Scan.Errors+status.Vdevs[name].errors()).To(gomega.BeZero(), "%+v", status)
	s.must(pod, `zpool destroy "$1"`, name)
}

// TestNodePower: a node whose power is cut becomes not ready; switched on again, it is ready and its pods run.
func TestNodePower(t *testing.T) {
	long(t)
	node := nodes[len(nodes)-1]
	g, s := gomega.NewWithT(t), newSpace(t, levelRestricted)
	switchOnAfterwards(t, node)
	s.start("survivor", on(node))
	boot := bootOf(t, node)
	before, err := containers(t.Context(), node)
	g.Expect(err).NotTo(gomega.HaveOccurred())

	act(t, node, "off")
	started := time.Now()
	eventually(t, "node "+node+" is not ready", func(g gomega.Gomega) {
		found, err := getNode(t.Context(), node)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(nodeReady(found)).To(gomega.BeFalse())
	})
	fmt.Printf("node %s: NotReady %.0f s after its power was cut\n", node, time.Since(started).Seconds())
	act(t, node, "on")
	g.Expect(bootOf(t, node)).NotTo(gomega.Equal(boot))
	found, err := getNode(t.Context(), node)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(nodeReady(found)).To(gomega.BeTrue())
	runAgain(t, node, before)
	s.usable(node)
}

// TestNodeHangs: a node whose QEMU does not answer is as good as off, and "on" brings it back in another boot.
func TestNodeHangs(t *testing.T) {
	long(t)
	node := nodes[len(nodes)-1]
	g := gomega.NewWithT(t)
	switchOnAfterwards(t, node)
	boot := bootOf(t, node)
	g.Expect(theLab.Pause(node)).To(gomega.Succeed())
	act(t, node, "on")
	g.Expect(bootOf(t, node)).NotTo(gomega.Equal(boot))
}
