package e2e

import (
	"fmt"
	"strings"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/workload/engine"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// accidents lets accidents happen to runs on pools: each run waits, or ends Invalid with the reason and is repeated within its limit.
// Nothing is left.
func (p *pools) accidents() {
	s := p.team()
	before := s.settled()
	for _, accident := range []struct {
		name string
		test func(s *space) *v1alpha1.StorageBenchmark
	}{
		{"a dataset unmounted under its pod", p.unmountedUnder},
		{"a pool that is full", p.fullPool},
		{"a disk that is pulled", p.pulledDisk},
		{"a node that is reset", p.resetUnder},
	} {
		started := time.Now()
		s.leavesNothing(before, accident.test(s))
		gomega.NewWithT(p.t).Expect(p.run("zpool", "list", "-H")).To(gomega.BeEmpty())
		fmt.Printf("accident %s: over after %.0f s\n", accident.name, time.Since(started).Seconds())
	}
}

// unmountLoop keeps the dataset unmounted, so that the pod's data path leads to the node's own disk. Meanwhile it prints the content of the
// folder.
const unmountLoop = `
rm -f /run/e2e-stop
while [ ! -e /run/e2e-stop ]; do
	for folder in /var/lib/storagebench/volumes/sb-*/data; do
		[ -d "$folder" ] || continue
		if findmnt -rno TARGET -t zfs "$folder" >/dev/null; then umount "$folder" 2>/dev/null || continue; fi
		ls -A "$folder"
	done
	sleep 0.05
done`

// unmountedUnder: a pod whose dataset is not mounted waits, nothing is written to the node's own disk, and the run continues once the
// dataset is mounted.
func (p *pools) unmountedUnder(s *space) *v1alpha1.StorageBenchmark {
	g := gomega.NewWithT(p.t)
	benchmark := s.benchmark("unmounted", p.paths(`
target: {zfs: {nodes: {matchLabels: {storagebench.dev/lab: "true"}}, pool: {vdevs: [{devices: [$1]}]}}}
phases:
- {name: first, fill: {size: 16Mi}}
- {name: second, fragment: {blockSize: 8Ki, until: Rounds, rounds: 1}}
`))
	s.inPhase(benchmark, "second")
	written := make(chan string)
	go func() {
		output, err := theLab.Run(p.t.Context(), p.node, "sh", "-c", unmountLoop)
		if err != nil {
			output += err.Error()
		}
		written <- output
	}()
	eventually(p.t, "the pod waits for its volume", func(g gomega.Gomega) {
		var events corev1.EventList
		g.Expect(cluster.List(p.t.Context(), &events, client.InNamespace(s.name))).To(gomega.Succeed())
		g.Expect(events.Items).To(gomega.ContainElement(gomega.And(gomega.HaveField("Reason", "FailedMount"),
			gomega.HaveField("Message", gomega.ContainSubstring("does not exist")))))
	})
	p.run("touch", "/run/e2e-stop")
	g.Expect(strings.TrimSpace(<-written)).To(gomega.BeEmpty(), "written to the node's own disk")
	s.completed(benchmark)
	return benchmark
}

// fullPool: the blocks that a snapshot keeps fill the pool up while the data is overwritten.
func (p *pools) fullPool(s *space) *v1alpha1.StorageBenchmark {
	benchmark := s.benchmark("full", p.paths(`
target: {zfs: {nodes: {matchLabels: {storagebench.dev/lab: "true"}}, pool: {vdevs: [{devices: [$5]}]}, dataset: {properties: {compression: "off"}}}}
phases:
- {name: fill, fill: {size: 500Mi}}
- {name: keep, operate: {snapshot: {dataset: data, name: keep}}}
- {name: age, fragment: {blockSize: 128Ki, until: Rounds, rounds: 2}}
`))
	o := s.ended(benchmark, v1alpha1.VerdictInvalid)
	o.broken(p.t, "age", engine.ReasonVolumeFull, "space")
	return benchmark
}

// pulledDisk: one disk of a mirror is pulled. The pool still answers, but it is not the pool that was asked for.
func (p *pools) pulledDisk(s *space) *v1alpha1.StorageBenchmark {
	benchmark := s.benchmark("pulled", p.paths(`
target: {zfs: {nodes: {matchLabels: {storagebench.dev/lab: "true"}}, pool: {vdevs: [{type: mirror, devices: [$1, $2]}]}}}
phases:
- {name: fill, fill: {size: 64Mi}}
- {name: age, fragment: {blockSize: 8Ki, until: Rounds, rounds: 12}}
maxAttempts: 2
`))
	s.working(benchmark, "age", 1)
	breakDisk(p.t, p.node, p.disks[1], "unplug")
	run := s.invalidRun(benchmark)
	gomega.NewWithT(p.t).Expect(run).To(gomega.ContainSubstring(v1alpha1.ReasonPoolUnhealthy))
	breakDisk(p.t, p.node, p.disks[1], "plug")
	s.repeated(benchmark, "") // whoever noticed first, the agent or the runner
	return benchmark
}

// resetUnder presses the reset button while a pool ages.
func (p *pools) resetUnder(s *space) *v1alpha1.StorageBenchmark {
	switchOnAfterwards(p.t, p.node)
	benchmark := s.benchmark("reset", p.paths(`
target: {zfs: {nodes: {matchLabels: {storagebench.dev/lab: "true"}}, pool: {vdevs: [{devices: [$1]}]}}}
phases:
- {name: fill, fill: {size: 64Mi}}
- {name: age, fragment: {blockSize: 8Ki, until: Rounds, rounds: 12}}
maxAttempts: 2
`))
	s.working(benchmark, "age", 1)
	act(p.t, p.node, "reset")
	s.repeated(benchmark, "")
	return benchmark
}

// runs lists the runs of a benchmark.
func (s *space) runs(g gomega.Gomega, benchmark *v1alpha1.StorageBenchmark) []v1alpha1.BenchmarkRun {
	var runs v1alpha1.BenchmarkRunList
	g.Expect(cluster.List(s.t.Context(), &runs, client.InNamespace(s.name),
		client.MatchingLabels{v1alpha1.LabelBenchmark: benchmark.Name})).To(gomega.Succeed())
	return runs.Items
}

// inPhase waits until the run of a benchmark is in a phase, or ready for it.
func (s *space) inPhase(benchmark *v1alpha1.StorageBenchmark, phase string) {
	s.t.Helper()
	gomega.NewWithT(s.t).Eventually(func(g gomega.Gomega) {
		runs := s.runs(g, benchmark)
		g.Expect(runs).To(gomega.HaveLen(1))
		if meta.IsStatusConditionTrue(runs[0].Status.Conditions, v1alpha1.ConditionComplete) {
			gomega.StopTrying("the run has ended already").Now()
		}
		g.Expect(runs[0].Status.CurrentPhase).To(gomega.Equal(phase))
	}).WithTimeout(benchmarkPatience).WithPolling(polling).Should(gomega.Succeed(), "phase "+phase+" is reached")
}

// invalidRun waits until a run of a benchmark is Invalid and returns why.
func (s *space) invalidRun(benchmark *v1alpha1.StorageBenchmark) (message string) {
	s.t.Helper()
	eventually(s.t, "a run of "+benchmark.Name+" is Invalid", func(g gomega.Gomega) {
		message = ""
		for _, run := range s.runs(g, benchmark) {
			if valid := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionValid); valid != nil && valid.Status == "False" {
				message = valid.Message
			}
		}
		g.Expect(message).NotTo(gomega.BeEmpty())
	})
	return message
}

// repeated checks that the first attempt is Invalid, for the given reason if there is one, and that the second provides the numbers.
func (s *space) repeated(benchmark *v1alpha1.StorageBenchmark, reason string) {
	s.t.Helper()
	g := gomega.NewWithT(s.t)
	experiment := s.completed(benchmark)
	g.Expect(experiment.Runs).To(gomega.HaveLen(2))
	first, second := experiment.Runs[0], experiment.Runs[1]
	g.Expect(first.Valid).To(gomega.BeFalse())
	g.Expect(second.Valid).To(gomega.BeTrue(), second.Message)
	if reason != "" {
		g.Expect(first.Reason).To(gomega.Equal(reason), first.Message)
	}
	fmt.Printf("benchmark %s: attempt 1 Invalid: %s: %s\n", benchmark.Name, first.Reason, first.Message)
}

// deletions deletes a benchmark at every point of its run.
func (p *pools) deletions() {
	s := p.team()
	p.deleted(s, s.settled(), "{provisioner: Local}")
}

// deleted deletes a benchmark with the given dataset at every point of its run.
func (p *pools) deleted(s *space, before []string, dataset string) {
	g := gomega.NewWithT(p.t)
	spec := p.paths(`
target:
  zfs:
    nodes: {matchLabels: {storagebench.dev/lab: "true"}}
    pool: {vdevs: [{devices: [$1]}]}
    dataset: ` + dataset + `
    moduleParameters: {zfs_txg_timeout: "3"}
phases:
- {name: fill, fill: {size: 256Mi}}
- {name: age, fragment: {blockSize: 8Ki, until: Rounds, rounds: 50}}
- {name: score, operate: {layoutScore: {dataset: data}}}
- {name: read, measure: {workload: {oltp: {workers: 4, duration: 10m}}, operate: {scrub: {}}}}
`)
	short := strings.Replace(spec, "rounds: 50", "rounds: 1", 1)
	for _, moment := range []struct {
		name string
		spec string
		wait func(*v1alpha1.StorageBenchmark)
	}{
		{"at once", spec, func(*v1alpha1.StorageBenchmark) {}},
		{"while its pool is made", spec, func(*v1alpha1.StorageBenchmark) {
			eventually(p.t, "there is a pool", func(g gomega.Gomega) {
				var made v1alpha1.BenchmarkPoolList
				g.Expect(cluster.List(p.t.Context(), &made)).To(gomega.Succeed())
				g.Expect(made.Items).NotTo(gomega.BeEmpty())
			})
		}},
		{"while its pod starts", spec, func(b *v1alpha1.StorageBenchmark) { s.inPhase(b, "fill") }},
		{"while it fills", spec, func(b *v1alpha1.StorageBenchmark) { s.working(b, "fill", 1) }},
		{"while it ages", spec, func(b *v1alpha1.StorageBenchmark) { s.working(b, "age", 1) }},
		{"while its layout is looked at", short, func(b *v1alpha1.StorageBenchmark) { s.inPhase(b, "score") }},
		{"while it is measured under a scrub", short, func(b *v1alpha1.StorageBenchmark) { s.working(b, "read", 1) }},
	} {
		benchmark := s.benchmark("deleted", moment.spec)
		moment.wait(benchmark)
		fmt.Printf("deleted %s: ", moment.name)
		s.leavesNothing(before, benchmark)
		g.Expect(p.run("zpool", "list", "-H")).To(gomega.BeEmpty(), moment.name)
		// The partition table that ZFS wrote stays; the next round shows that its disk is taken without force.
		g.Expect(p.run("sh", "-c", "blkid -p "+p.on(1)+"*; true")).NotTo(gomega.ContainSubstring("zfs_member"), moment.name)
		g.Expect(p.run("sh", "-c", "find /var/lib/storagebench/volumes -mindepth 1 2>/dev/null; true")).To(gomega.BeEmpty(), moment.name)
		g.Expect(strings.TrimSpace(p.run("cat", "/sys/module/zfs/parameters/zfs_txg_timeout"))).To(gomega.Equal("5"), moment.name)
	}
}
