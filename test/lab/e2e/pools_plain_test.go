package e2e

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// plainCase is what a newcomer writes first: one workload on a new, empty volume, with a fill only where the workload needs one.
type plainCase struct {
	name string
	// phases of the benchmark; the name of the last one is "it".
	phases string
	// metric of the last phase that must be more than 0.
	metric string
	// folderOnly says that the workload needs a file system.
	folderOnly bool
}

// oneJob and twoJobs have job files like the first ones in fio's own manual.
const (
	oneJob  = `{name: it, measure: {workload: {fio: {jobFile: "[job1]\nrw=%s\nbs=8k\nsize=32m\n"}}}}`
	stages  = `{name: it, measure: {workload: {fio: {jobFile: "[global]\nbs=1m\nsize=32m\n[writer]\nrw=write\n[reader]\nstonewall\nrw=read\n"}}}}`
	twoJobs = `{name: it, measure: {workload: {fio: {jobFile: "[global]\nbs=8k\nsize=16m\ntime_based=1\nruntime=5\n[writer]\nrw=randwrite\n[reader]\nrw=randread\n"}}}}`
)

var plainCases = []plainCase{
	{name: "fio-randwrite", phases: fmt.Sprintf(oneJob, "randwrite"), metric: "writeOperationsPerSecond"},
	{name: "postgres", phases: `{name: it, measure: {workload: {postgres: {databaseSize: 16Mi, clients: 2, duration: 5s}}}}`,
		metric: "transactionsPerSecond", folderOnly: true},
	{name: "fio-two-jobs", phases: twoJobs, metric: "readOperationsPerSecond"},
	// The rate of a job that does not end last is known only if its syncs are seen to wait.
	{name: "fio-stages", phases: stages, metric: "workload('writer').writeBytesPerSecond"},
	{name: "redo", phases: `{name: it, measure: {workload: {redo: {duration: 5s}}}}`, metric: "writeOperationsPerSecond"},
	{name: "metadata", phases: `{name: it, measure: {workload: {metadata: {workers: 2, filesPerWorker: 20, duration: 5s}}}}`, metric: "metadataOperationsPerSecond", folderOnly: true},
	{name: "fio-commits", phases: fmt.Sprintf(oneJob, `write\nioengine=libaio\nfdatasync=1\nnumber_ios=400`), metric: "syncOperations"},
	{name: "fio-write", phases: fmt.Sprintf(oneJob, "write"), metric: "writeOperationsPerSecond"},
	{name: "oltp", phases: `{name: fill, fill: {size: 32Mi}}, {name: it, measure: {workload: {oltp: {duration: 5s}}}}`,
		metric: "readOperationsPerSecond"},
	{name: "scan", phases: `{name: fill, fill: {size: 32Mi}}, {name: it, measure: {workload: {scan: {}}}}`, metric: "readBytesPerSecond"},
	{name: "fio-on-a-fill", phases: `{name: fill, fill: {size: 32Mi}}, ` +
		strings.Replace(fmt.Sprintf(oneJob, "read"), "size=32m", "filename=data", 1), metric: "readBytes"},
	{name: "fio-after-fill", phases: `{name: fill, fill: {size: 32Mi}}, ` + fmt.Sprintf(oneJob, "randwrite"),
		metric: "writeOperationsPerSecond"},
}

// plain runs what newcomers try first, on file systems and devices of the agent.
func (p *pools) plain() {
	s := p.team()
	before := s.settled()
	for _, kind := range []struct {
		name, dataset string
		each          int
	}{{"filesystem", "size: 512Mi", len(plainCases) / 2}, {"volume", "type: Volume, size: 256Mi", len(plainCases)}} {
		for _, plain := range sampleInShort(plainCases, kind.each) {
			if plain.folderOnly && kind.name == "volume" {
				continue
			}
			p.plainCase(s, before, plain, kind.name, "{provisioner: Local, "+kind.dataset+"}")
		}
	}
}

func (p *pools) plainCase(s *space, before []string, plain plainCase, kind, dataset string) {
	p.t.Helper()
	benchmark := s.benchmark(plain.name+"-"+kind, p.paths(`
target: {zfs: {nodes: {matchLabels: {storagebench.dev/lab: "true"}}, pool: {vdevs: [{devices: [$1]}]}, dataset: `+dataset+`}}
phases: [`+strings.TrimSpace(plain.phases)+`]
gates:
- {name: anything, expression: "phase('it').`+plain.metric+` >= 1.0"}
`))
	o := s.ended(benchmark, v1alpha1.VerdictPassed)
	value := o.documents["it"].Metrics[strings.NewReplacer("workload('", "", "').", ".").Replace(plain.metric)]
	fmt.Printf("plain: %s: %s = %d\n", benchmark.Name, plain.metric, value)
	gomega.NewWithT(p.t).Expect(value).To(gomega.BeNumerically(">", 0))
	s.leavesNothing(before, benchmark)
}
