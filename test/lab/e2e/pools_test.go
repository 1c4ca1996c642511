package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/lab/vm"
)

const (
	agentNamespace = "storagebench-agent"
	agentImage     = "localhost/storagebench-agent:dev"
	// poolDisks is how many disks of a node are used; the last one is small, so that it can be filled.
	poolDisks = 5
)

// TestPools lets the agent make, change and destroy pools on real disks, refuse what it does not own, and crash in between.
func TestPools(t *testing.T) {
	node := nodes[0]
	p := &pools{t: t, node: node, disks: takeDisks(t, node, poolDisks)}
	installOperator(t, append(p.agentValues(), graceValues...)...)
	p.agentAvailable()
	for _, use := range []struct {
		name string
		test func(p *pools)
		long bool
		// turn of the short tests in which it runs; 0 means every turn.
		turn int
		// nodes that it needs, if more than one.
		nodes int
	}{
		{name: "layouts", test: (*pools).layouts, turn: 3},
		{name: "life of a pool", test: (*pools).life, long: true},
		{name: "idle", test: (*pools).idle, long: true},
		{name: "rivals", test: (*pools).rivals, turn: 4},
		{name: "dangerous disks", test: (*pools).dangers},
		{name: "reuse", test: (*pools).reuse},
		{name: "benchmarks", test: (*pools).benchmarks, turn: 3},
		{name: "plain", test: (*pools).plain, turn: 4},
		{name: "database", test: (*pools).database, long: true},
		{name: "shared pool", test: (*pools).sharesAPool, long: true},
		{name: "whole database", test: (*pools).wholeDatabase, long: true},
		{name: "clone_in_volume", test: (*pools).cloneInVolume, long: true},
		{name: "bare_folder", test: (*pools).bareFolder, long: true},
		{name: "greedy_tenant", test: (*pools).greedy, long: true},
		{name: "resets", test: (*pools).resets, long: true},
		{name: "properties", test: (*pools).properties, long: true},
		{name: "accidents", test: (*pools).accidents, long: true},
		{name: "deletions", test: (*pools).deletions, long: true},
		{name: "openebs", test: (*pools).openebs, turn: 2},
		{name: "scrubbed", test: (*pools).scrubbed, long: true},
		{name: "nodes at once", test: (*pools).nodesAtOnce, long: true, nodes: 2},
		{name: "ageing", test: (*pools).ageing, turn: 1},
		{name: "operations", test: (*pools).operations, long: true},
		{name: "late_operation", test: (*pools).lateOperation, turn: 2},
		{name: "changes", test: (*pools).changes, long: true},
		{name: "many operations", test: (*pools).many, long: true},
		{name: "agent killed in operations", test: (*pools).operationsCrash, long: true},
		{name: "node reset in operations", test: (*pools).operationsReset, long: true},
		{name: "agent killed", test: (*pools).agentKilled, long: true},
		{name: "node reset", test: (*pools).nodeReset, long: true},
		{name: "node stops", test: (*pools).nodeStops, long: true},
		{name: "lost disk", test: (*pools).lostDisk, long: true},
		{name: "silent disk", test: (*pools).silentDisk, long: true},
		{name: "retained", test: (*pools).retained, long: true},
		{name: "restored", test: (*pools).restored, long: true},
		{name: "looked", test: (*pools).looked, long: true},
		{name: "refused property", test: (*pools).refusedProperty, long: true},
	} {
		part(t, use.name, func(t *testing.T) {
			if use.long {
				long(t)
			}
			inTurn(t, use.turn)
			if len(nodes) < use.nodes {
				t.Skipf("this lab has one node: make one with more ('make lab-up LAB=other NODES=%d')", use.nodes)
			}
			once(t)
			if use.long {
				takeDisks(t, node, poolDisks) // leftovers on pulled disks would disturb the next part
			}
			use.test(&pools{t: t, node: p.node, disks: p.disks})
		})
	}
}

// sampleInShort returns the rows of a table to try: all of them, or in short tests one out of every each rows.
func sampleInShort[T any](rows []T, each int) []T {
	if !testing.Short() {
		return rows
	}
	var few []T
	for i := 0; i < len(rows); i += each {
		few = append(few, rows[i])
	}
	return few
}

// pools are the BenchmarkPools of a test, on the disks of one node.
type pools struct {
	t     *testing.T
	node  string
	disks []vm.Disk
}

// agentValues returns values that allow the agent every disk of the node by its name, even the system's: the tests show that this is safe
// anyway. Namespace lab may use only disk 4.
func (p *pools) agentValues() []string {
	grants := []string{}
	for _, pattern := range []string{"disk*", "files", "root", "volume*", "nothing", "other"} {
		grants = append(grants, "/dev/disk/by-id/virtio-"+p.node+"-"+pattern)
	}
	grants = append(grants, "lab=/dev/disk/by-id/virtio-"+p.node+"-disk4",
		teamNamespace+"=/dev/disk/by-id/virtio-"+p.node+"-disk[125]", "/dev/disk/by-path/*")
	for _, other := range nodes[1:] {
		grants = append(grants, teamNamespace+"=/dev/disk/by-id/virtio-"+other+"-disk1")
	}
	return []string{"--set", "agent.enabled=true", "--set", "agent.allowDevices={" + strings.Join(grants, ",") + "}",
		"--set", "agent.allowParameters={zfs_txg_timeout=1..60,zfs_dirty_data_max=1048576..4294967296,zfetch_max_distance=0..67108864}"}
}

// agentAvailable waits until an agent runs on every node of the lab.
func (p *pools) agentAvailable() {
	p.t.Helper()
	started := time.Now()
	agents := &appsv1.DaemonSet{}
	eventually(p.t, "the agents are available", func(g gomega.Gomega) {
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKey{Namespace: agentNamespace, Name: "storagebench-agent"}, agents)).To(gomega.Succeed())
		g.Expect(agents.Status.NumberAvailable).To(gomega.BeEquivalentTo(len(nodes)), "is %s in the lab? 'make lab-load LAB=%s' brings it",
			agentImage, theLab.Name)
		g.Expect(agents.Status.ObservedGeneration).To(gomega.Equal(agents.Generation))
	})
	fmt.Printf("operator: %d agents are available after %.0f s\n", len(nodes), time.Since(started).Seconds())
}

// on returns a disk's stable path.
func (p *pools) on(disk int) string { return device(p.node, p.disks[disk-1].Name) }

// paths replaces $1 to $5 in a text by the disks' paths.
func (p *pools) paths(text string) string {
	for i := range p.disks {
		text = strings.ReplaceAll(text, fmt.Sprintf("$%d", i+1), p.on(i+1))
	}
	return text
}

// make makes a BenchmarkPool. The text is its spec. Its zpool has the name of the object with the tests' prefix.
func (p *pools) make(name, spec string) *v1alpha1.BenchmarkPool {
	p.t.Helper()
	pool := &v1alpha1.BenchmarkPool{}
	if err := yaml.UnmarshalStrict([]byte(p.paths(spec)), &pool.Spec); err != nil {
		p.t.Fatal(err)
	}
	pool.Name, pool.Spec.NodeName = name, p.node
	if pool.Spec.DeletionPolicy == "" {
		pool.Spec.DeletionPolicy = v1alpha1.DeletionDestroy
	}
	if pool.Spec.PoolName == "" {
		pool.Spec.PoolName = v1alpha1.PoolName(poolPrefix + name)
	}
	if err := cluster.Create(p.t.Context(), pool); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { // leftovers of a failed test would disturb the next one
		ctx, cancel := afterwards(p.t)
		defer cancel()
		left := pool.DeepCopy()
		left.Spec.DeletionPolicy = v1alpha1.DeletionDestroy
		_ = cluster.Patch(ctx, left, client.MergeFrom(pool)) // even a pool that a test retains is destroyed at its end
		if err := cluster.Delete(ctx, left); err == nil {
			gone(ctx, p.t, left)
		}
	})
	return pool
}

// says waits until the Ready condition of a pool has a reason, and returns its message.
func (p *pools) says(pool *v1alpha1.BenchmarkPool, reason string) string {
	p.t.Helper()
	var message string
	eventually(p.t, "BenchmarkPool "+pool.Name+" says "+reason, func(g gomega.Gomega) {
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(pool), pool)).To(gomega.Succeed())
		ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready).NotTo(gomega.BeNil())
		g.Expect(ready.Reason).To(gomega.Equal(reason), ready.Message)
		g.Expect(ready.ObservedGeneration).To(gomega.Equal(pool.Generation))
		message = ready.Message
	})
	return message
}

// ready waits until a pool is as requested.
func (p *pools) ready(pool *v1alpha1.BenchmarkPool) {
	p.t.Helper()
	p.says(pool, v1alpha1.ReasonPoolReady)
}

// change changes the spec or the annotations of a pool.
func (p *pools) change(pool *v1alpha1.BenchmarkPool, change func()) {
	p.t.Helper()
	eventually(p.t, "BenchmarkPool "+pool.Name+" is changed", func(g gomega.Gomega) {
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(pool), pool)).To(gomega.Succeed())
		before := pool.DeepCopy()
		change()
		g.Expect(cluster.Patch(p.t.Context(), pool,
			client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))).To(gomega.Succeed())
	})
}

// remove deletes pools and waits until the objects and their zpools are gone.
func (p *pools) remove(all ...*v1alpha1.BenchmarkPool) {
	p.t.Helper()
	for _, pool := range all {
		if err := cluster.Delete(p.t.Context(), pool); client.IgnoreNotFound(err) != nil {
			p.t.Fatal(err)
		}
	}
	for _, pool := range all {
		gone(p.t.Context(), p.t, pool)
		if pool.Status.GUID == "" {
			continue // it was never made
		}
		gomega.NewWithT(p.t).Expect(strings.Fields(p.run("zpool", "list", "-H", "-o", "guid"))).NotTo(gomega.ContainElement(pool.Status.GUID))
	}
}

// run runs a command on the node.
func (p *pools) run(words ...string) string {
	p.t.Helper()
	output, err := theLab.Run(p.t.Context(), p.node, words...)
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(output)
}

// script runs a shell script on the node, with the disks' paths as $1 to $5.
func (p *pools) script(text string) string {
	p.t.Helper()
	words := []string{"sh", "-euc", text, "script"}
	for i := range p.disks {
		words = append(words, p.on(i+1))
	}
	return p.run(words...)
}

// property reads an effective property from the status.
func property(pool *v1alpha1.BenchmarkPool, dataset, name string) string {
	at := slices.IndexFunc(pool.Status.Properties, func(one v1alpha1.EffectiveProperty) bool {
		return one.Dataset == dataset && one.Name == name
	})
	if at < 0 {
		return ""
	}
	return pool.Status.Properties[at].Value
}

// uninstallPools deletes PoolOperations and BenchmarkPools before their agent is removed. Leftovers of a failed test are released.
func uninstallPools(t *testing.T) {
	t.Helper()
	ctx, cancel := afterwards(t)
	defer cancel()
	var operations v1alpha1.PoolOperationList
	if err := cluster.List(ctx, &operations); err == nil { // otherwise there are no pools either
		for i := range operations.Items {
			before := operations.Items[i].DeepCopy()
			operations.Items[i].Finalizers = nil
			_ = cluster.Patch(ctx, &operations.Items[i], client.MergeFrom(before)) // if it matters, deleting the CRD fails below
			_ = cluster.Delete(ctx, &operations.Items[i])
		}
	}
	var left v1alpha1.BenchmarkPoolList
	if err := cluster.List(ctx, &left); err != nil {
		if !meta.IsNoMatchError(err) {
			t.Error(err)
		}
		return
	}
	for i := range left.Items {
		pool := &left.Items[i]
		before := pool.DeepCopy()
		metav1.SetMetaDataAnnotation(&pool.ObjectMeta, v1alpha1.AnnotationReleasePool, pool.Spec.NodeName)
		pool.Finalizers = nil // its disks are wiped at the end of the test
		if err := cluster.Patch(ctx, pool, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
		if err := cluster.Delete(ctx, pool); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	}
}

// agentPod returns the pod of the agent on the node.
func (p *pools) agentPod() *corev1.Pod {
	p.t.Helper()
	var pods corev1.PodList
	if err := cluster.List(p.t.Context(), &pods, client.InNamespace(agentNamespace),
		client.MatchingFields{"spec.nodeName": p.node}); err != nil {
		p.t.Fatal(err)
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			return &pods.Items[i]
		}
	}
	p.t.Fatalf("no agent on node %s", p.node)
	return nil
}
