package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/volume"

	corev1 "k8s.io/api/core/v1"

	storagev1 "k8s.io/api/storage/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/sim"
	"github.com/storagebench/storagebench/test/zfsdriver"
)

// zfsNode plays a node with ZFS: the agent, and the commands that the driver runs there.
type zfsNode struct {
	l *lab
	// mutex guards the fields below.
	mutex sync.Mutex
	// datasets with their properties.
	datasets map[string]map[string]string
	commands []string
	// early are pools that were to be destroyed while the driver still had volumes on them.
	early []string
}

// run plays zpool and zfs.
func (n *zfsNode) run(_ context.Context, words ...string) (string, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	last := words[len(words)-1]
	parent := last[:max(0, strings.LastIndex(last, "/"))]
	switch {
	case words[0] == "zpool":
		return "", nil
	case words[1] == "list" && n.datasets[last] == nil, words[1] == "create" && n.datasets[parent] == nil:
		return "", errors.New("dataset does not exist")
	case words[1] == "destroy":
		delete(n.datasets, last)
	case words[1] == "create":
		made := map[string]string{}
		for _, word := range words {
			if property, value, is := strings.Cut(word, "="); is {
				made[property] = value
			}
		}
		n.datasets[last] = made
		n.commands = append(n.commands, strings.Join(words, " "))
	}
	return "", nil
}

// lookAtAll looks at all BenchmarkPools of the node once.
func (n *zfsNode) lookAtAll(ctx context.Context) (bool, error) {
	var pools v1alpha1.BenchmarkPoolList
	if err := n.l.live.List(ctx, &pools); err != nil {
		return false, err
	}
	for i := range pools.Items {
		if pool := &pools.Items[i]; pool.Spec.NodeName == n.l.node {
			if err := n.look(ctx, pool); client.IgnoreNotFound(err) != nil {
				return false, err
			}
		}
	}
	return false, nil
}

func (n *zfsNode) look(ctx context.Context, pool *v1alpha1.BenchmarkPool) error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if !pool.DeletionTimestamp.IsZero() {
		for name := range n.datasets {
			if strings.HasPrefix(name, pool.Name+"/parent/") {
				n.early = append(n.early, name)
			}
		}
		pool.Finalizers = nil
		return n.l.live.Update(ctx, pool)
	}
	if len(pool.Finalizers) == 0 {
		pool.Finalizers = []string{v1alpha1.FinalizerTeardown}
		return n.l.live.Update(ctx, pool)
	}
	before := pool.Status.DeepCopy()
	parent := pool.Spec.Datasets[0]
	n.datasets[pool.Name+"/"+string(parent.Path)] = map[string]string{}
	pool.Status.GUID, pool.Status.SizeBytes, pool.Status.Properties = "700", 4<<30, nil
	add := func(dataset, name, value string) {
		pool.Status.Properties = append(pool.Status.Properties, v1alpha1.EffectiveProperty{Dataset: dataset, Name: name, Value: value,
			Source: "local"})
	}
	for _, name := range []string{"compression", "sync"} {
		add(pool.Name, name, "standard")
	}
	reported := pool.Name + "/" + pool.Annotations[v1alpha1.AnnotationReport]
	if own, is := n.datasets[reported]; is && strings.Contains(reported, "/parent/") {
		for _, name := range []string{"compression", "sync", "refquota", "recordsize"} {
			value, set := own[name]
			if !set {
				value = string(parent.Properties[name])
			}
			if value == "" {
				value = "standard"
			}
			add(reported, name, value)
		}
	}
	kstatus.SetReady(&pool.Status.Conditions, pool.Generation, v1alpha1.ReasonPoolReady, "ready")
	if kstatus.Same(*before, pool.Status) {
		return nil
	}
	return n.l.live.Status().Update(ctx, pool)
}

// drivenLeft lists the objects outside the lab's namespaces that runs on the driver's volumes have left behind.
func (n *zfsNode) drivenLeft(g gomega.Gomega) (left []string) {
	volumes := &unstructured.UnstructuredList{}
	volumes.SetGroupVersionKind(schema.GroupVersionKind{Group: volume.DriverGroup, Version: volume.DriverVersion, Kind: "ZFSVolumeList"})
	var classes storagev1.StorageClassList
	var pools v1alpha1.BenchmarkPoolList
	for _, list := range []client.ObjectList{volumes, &classes, &pools} {
		g.Expect(n.l.live.List(n.l.t.Context(), list)).To(gomega.Succeed())
	}
	for _, volume := range volumes.Items {
		left = append(left, "ZFSVolume "+volume.GetName())
	}
	for _, class := range classes.Items {
		if class.Provisioner == volume.DriverName {
			left = append(left, "StorageClass "+class.Name)
		}
	}
	for _, pool := range pools.Items {
		if pool.Spec.NodeName == n.l.node {
			left = append(left, "BenchmarkPool "+pool.Name)
		}
	}
	return left
}

const onPools = `
target:
  zfs:
    nodes: {matchLabels: {storagebench.dev/lab: "true"}}
    pool: {vdevs: [{devices: [/dev/disk/by-id/a]}]}
    dataset: {%s size: 64Mi, properties: {recordsize: 8k, sync: always}}
phases:
- {name: fill, fill: {to: 50%%}}
- {name: read, measure: {workload: {oltp: {workers: 2}}}}
repetitions: 1
`

// TestOpenEBS: a benchmark waits for the driver, gets its volumes from it, finds them as requested, and leaves no trace. The manager is
// started before the driver's kinds exist.
func TestOpenEBS(t *testing.T) {
	var sources []string
	var guard sync.Mutex
	l := start(t, func(request workload.Request, _ *corev1.Pod) sim.Script {
		guard.Lock()
		defer guard.Unlock()
		sources = append(sources, request.Source)
		return sim.Script{}
	})
	var host corev1.Node
	l.must(l.live.Get(t.Context(), client.ObjectKey{Name: l.node}, &host))
	host.Labels["storagebench.dev/lab"], host.Labels[zfsdriver.Topology] = "true", "id-of-"+l.node
	l.must(l.live.Update(t.Context(), &host))
	node := &zfsNode{l: l, datasets: map[string]map[string]string{}}
	l.background("the agent", again(node.lookAtAll))
	l.background("the agent's operations", again(sim.Agents{Client: l.live, Nodes: l.nodes}.StepOperations))

	benchmark := l.submit("asked", fmt.Sprintf(onPools, "provisioner: OpenEBS,"))
	l.eventually("the benchmark says that there is no driver", func(g gomega.Gomega) {
		g.Expect(ready(l.get(benchmark).Status.Conditions).Reason).To(gomega.Equal(v1alpha1.ReasonDriverNotInstalled))
		g.Expect(ready(l.get(benchmark).Status.Conditions).Message).To(gomega.And(gomega.ContainSubstring("install OpenEBS ZFS LocalPV"),
			gomega.ContainSubstring("provisioner: Local")))
	})
	l.must(l.live.Create(t.Context(), &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: volume.DriverName}}))
	l.eventually("the benchmark says what is missing", func(g gomega.Gomega) {
		g.Expect(ready(l.get(benchmark).Status.Conditions).Message).To(gomega.ContainSubstring("but not the kind ZFSVolume"))
	})
	l.must(zfsdriver.Install(t.Context(), l.live))
	// Without this change, it would look again after half a minute.
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Annotations = map[string]string{"look": "again"} })
	driver := &zfsdriver.Driver{Client: l.live, NodeID: "id-of-" + l.node, Run: node.run}
	stop := l.background("the driver", driver.Work)
	l.finished(benchmark, v1alpha1.VerdictPassed)
	g := gomega.NewWithT(t)
	run := l.runs()[0]
	guard.Lock()
	g.Expect(sources).To(gomega.HaveLen(2))
	g.Expect(sources[0]).To(gomega.HavePrefix(naming.RunPoolName(&run, "data") + "/parent/pvc-"))
	guard.Unlock()
	g.Expect(node.commands).To(gomega.HaveLen(1))
	g.Expect(node.commands[0]).To(gomega.And(gomega.ContainSubstring("refquota=67108864"), gomega.ContainSubstring("recordsize=8k"),
		gomega.Not(gomega.ContainSubstring("sync"))))
	g.Expect(run.Status.Volumes[0].Properties).To(gomega.ContainElement(gomega.HaveField("Dataset", sources[0])))
	l.eventually("nothing of the driver is left", func(g gomega.Gomega) { g.Expect(node.drivenLeft(g)).To(gomega.BeEmpty()) })
	node.mutex.Lock()
	g.Expect(node.early).To(gomega.BeEmpty(), "a pool went before what the driver has on it")
	node.mutex.Unlock()

	// If the provisioner is left open, the installed driver makes the volume. An older one, which does not know refquota, silently drops
	// it.
	stop()
	driver.Dropped = []string{"quotatype"}
	l.background("an older driver", driver.Work)
	left := l.submit("left-open", fmt.Sprintf(onPools, ""))
	finished := l.finished(left, v1alpha1.VerdictInvalid)
	at := slices.IndexFunc(l.runs(), func(run v1alpha1.BenchmarkRun) bool { return run.Spec.Benchmark == "left-open" })
	second := l.runs()[at]
	g.Expect(second.Spec.Target.ZFS.Dataset.Provisioner).To(gomega.Equal(volume.ProvisionerOpenEBS))
	g.Expect(second.Status.Phases).To(gomega.BeEmpty(), "a phase was begun")
	g.Expect(ready(second.Status.Conditions).Reason).To(gomega.Equal(v1alpha1.ReasonPropertiesDiffer))
	g.Expect(finished.Status.Results).NotTo(gomega.BeNil())
	for _, one := range []*v1alpha1.StorageBenchmark{benchmark, left} {
		l.must(l.live.Delete(t.Context(), one))
	}
	l.eventually("nothing of the driver is left", func(g gomega.Gomega) { g.Expect(node.drivenLeft(g)).To(gomega.BeEmpty()) })
	l.nothingLeft(workloadKinds()...)
}
