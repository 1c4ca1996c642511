package e2e

import (
	"fmt"
	"strings"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	agentpools "github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/test/lab/vm"
)

// crashRounds is how often the agent is killed while it creates a pool, and as often while it destroys it, each time a little later.
const crashRounds = 5

// killAgent kills the agent's process on the node, as a crash does, and then the pod: kubelet would wait longer after each crash
// before it starts the container again.
func (p *pools) killAgent() {
	p.t.Helper()
	pod := p.agentPod()
	p.script(`for process in /proc/[0-9]*; do
		[ "$(readlink "$process/exe" 2>/dev/null)" != /agent ] || kill -9 "${process#/proc/}"
	done`)
	if err := cluster.Delete(p.t.Context(), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		p.t.Fatal(err)
	}
}

// moment lets some time pass, so that each crash comes a little later than the last. It does not wait for anything.
func moment(round int) { <-time.After(time.Duration(round) * 400 * time.Millisecond) }

// agentKilled kills the agent at many moments while it creates and destroys a pool. Once the next agent has taken over, there is never a
// pool without an owner, nor an object without its pool.
func (p *pools) agentKilled() {
	g := gomega.NewWithT(p.t)
	for round := range crashRounds {
		pool := p.make(fmt.Sprintf("crash-%d", round),
			`{poolName: e2e-crash, vdevs: [{type: mirror, devices: [$1, $2]}], datasets: [{path: data, properties: {recordsize: 8k}}]}`)
		moment(round)
		p.killAgent()
		p.ready(pool)
		p.agentAvailable()
		g.Expect(p.run("zfs", "get", "-Hpo", "value", "storagebench.dev:uid", "e2e-crash")).To(gomega.Equal(string(pool.UID)))
		if err := cluster.Delete(p.t.Context(), pool); err != nil {
			p.t.Fatal(err)
		}
		moment(round)
		p.killAgent()
		p.remove(pool)
		p.agentAvailable()
	}
	fmt.Printf("agent: killed %d times; every pool was made and destroyed\n", 2*crashRounds)
}

// nodeReset presses the reset button: the pool is imported with its data.
func (p *pools) nodeReset() {
	g := gomega.NewWithT(p.t)
	switchOnAfterwards(p.t, p.node)
	pool := p.make("reset", `{vdevs: [{type: mirror, devices: [$1, $2]}], datasets: [{path: data}]}`)
	p.ready(pool)
	name, guid := string(pool.Spec.PoolName), pool.Status.GUID
	p.run("zfs", "set", "mountpoint=/e2e", name+"/data")
	sum := p.script(`head -c 4M /dev/urandom >/e2e/file; zpool sync; sha256sum </e2e/file`)
	act(p.t, p.node, "reset")
	eventually(p.t, "the pool is imported again, and not only to look at it", func(g gomega.Gomega) {
		found, err := theLab.Run(p.t.Context(), p.node, "zpool", "list", "-H", "-o", "guid,readonly", name)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(strings.TrimSpace(found)).To(gomega.Equal(guid + "\toff"))
	})
	p.ready(pool)
	g.Expect(pool.Status.GUID).To(gomega.Equal(guid))
	g.Expect(p.script(`mkdir -p /e2e; zfs mount -a; sha256sum </e2e/file`)).To(gomega.Equal(sum))
	p.run("zfs", "unmount", name+"/data")
	p.remove(pool)
}

// nodeStops presses the reset button whenever the pool has been imported, as if the pool stopped the kernel. The agent does not import it
// once more until a person lets it.
func (p *pools) nodeStops() {
	g := gomega.NewWithT(p.t)
	switchOnAfterwards(p.t, p.node)
	pool := p.make("stops", `{vdevs: [{devices: [$1]}]}`)
	p.ready(pool)
	name, record := string(pool.Spec.PoolName), agentpools.AttemptPath(pool.UID)
	for range 2 {
		act(p.t, p.node, "reset")
		eventually(p.t, "the pool is imported again", func(g gomega.Gomega) {
			found, err := theLab.Run(p.t.Context(), p.node, "zpool", "list", "-H", "-o", "name,readonly", name)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(strings.TrimSpace(found)).To(gomega.Equal(name + "\toff"))
		})
	}
	act(p.t, p.node, "reset")
	g.Expect(p.says(pool, v1alpha1.ReasonPoolStopsNode)).To(gomega.ContainSubstring("remove " + record))
	g.Expect(p.run("zpool", "list", "-H", "-o", "name")).NotTo(gomega.ContainSubstring(name))
	p.run("rm", record)
	p.ready(pool)
	p.remove(pool)
	p.run("test", "!", "-e", record)
}

// lostDisk removes the only disk of a pool: the object cannot be deleted, says what is left and where, and is deleted once it is released.
func (p *pools) lostDisk() {
	g := gomega.NewWithT(p.t)
	pool := p.make("lost", `{vdevs: [{devices: [$3]}]}`)
	p.ready(pool)
	p.run("zpool", "export", string(pool.Spec.PoolName)) // without this, the pool would wait for its disk for ever
	breakDisk(p.t, p.node, p.disks[2], "unplug")
	g.Expect(p.says(pool, v1alpha1.ReasonPoolLost)).To(gomega.ContainSubstring(pool.Status.GUID))
	if err := cluster.Delete(p.t.Context(), pool); err != nil {
		p.t.Fatal(err)
	}
	eventually(p.t, "the object says what is left", func(g gomega.Gomega) {
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(pool), pool)).To(gomega.Succeed())
		ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready.Message).To(gomega.And(gomega.ContainSubstring(p.on(3)), gomega.ContainSubstring("kubectl annotate benchmarkpool lost")))
	})
	p.change(pool, func() { pool.Annotations = map[string]string{v1alpha1.AnnotationReleasePool: p.node} })
	gone(p.t.Context(), p.t, pool)
}

// Limits of an agent that has one pool and nothing to do.
const (
	idleSeconds      = 130      // two looks at the pool
	idleMemoryKiB    = 80 << 10 // at most, ever; half of it is the program itself
	idleCPUPerMille  = 10
	emulatedSlowdown = 10 // of an emulated processor, about
)

// idle checks the costs of an idle agent: memory, processor time, and not a single write to the API.
func (p *pools) idle() {
	g := gomega.NewWithT(p.t)
	pool := p.make("idle", `{vdevs: [{devices: [$1]}], datasets: [{path: data, properties: {recordsize: 8k}}]}`)
	p.ready(pool)
	// A new pool frees some space after its creation, which the next observation reports.
	settled, since := pool.DeepCopy(), time.Now()
	eventually(p.t, "the pool has settled", func(g gomega.Gomega) {
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(pool), pool)).To(gomega.Succeed())
		if pool.ResourceVersion != settled.ResourceVersion {
			settled, since = pool.DeepCopy(), time.Now()
		}
		g.Expect(time.Since(since)).To(gomega.BeNumerically(">", 70*time.Second))
	})
	// Processor time of the agent and its commands, in microseconds, and its memory in KiB.
	cost := func() (processor, memory int64) {
		output := p.script(`for process in /proc/[0-9]*; do
			[ "$(readlink "$process/exe" 2>/dev/null)" = /agent ] || continue
			group=$(cut -d: -f3 "$process/cgroup")
			echo $(sed -n 's/^usage_usec //p' "/sys/fs/cgroup$group/cpu.stat") $(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "$process/status")
		done`)
		if _, err := fmt.Sscan(output, &processor, &memory); err != nil {
			p.t.Fatalf("%v: %q", err, output)
		}
		return processor, memory
	}
	before, _ := cost()
	g.Consistently(func(g gomega.Gomega) {
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(pool), pool)).To(gomega.Succeed())
		g.Expect(pool.Status).To(gomega.Equal(settled.Status))
		g.Expect(pool.ResourceVersion).To(gomega.Equal(settled.ResourceVersion))
	}).WithTimeout(idleSeconds*time.Second).WithPolling(10*time.Second).Should(gomega.Succeed(),
		"the status is written although nothing changes")
	after, memory := cost()
	perMille := float64(after-before) / idleSeconds / 1000
	fmt.Printf("agent: idle with a pool for %d s: %.1f per mille of a processor (zpool and zfs included), %d KiB of memory at most\n",
		idleSeconds, perMille, memory)
	g.Expect(memory).To(gomega.BeNumerically("<", idleMemoryKiB))
	limit := float64(idleCPUPerMille)
	if vm.Emulated() {
		limit *= emulatedSlowdown
	}
	g.Expect(perMille).To(gomega.BeNumerically("<", limit))
	p.remove(pool)
}
