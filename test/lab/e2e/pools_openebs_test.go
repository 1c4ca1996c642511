package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/volume"

	corev1 "k8s.io/api/core/v1"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/openebs"
	"github.com/storagebench/storagebench/test/zfsdriver"
)

// driverProgram and driverUnit are the program and the systemd unit of the stand-in's node service on a node.
const (
	driverProgram = "/var/lib/zfsdriver-node"
	driverUnit    = "zfsdriver-node"
)

// openebs runs the benchmarks on volumes that the OpenEBS driver makes: the stand-in, or, where it is installed in the lab, the
// real one (E2E_OPENEBS=installed). What the workload gets and what the results say is the same as with datasets of the agent.
func (p *pools) openebs() {
	if os.Getenv("E2E_OPENEBS") != "installed" {
		p.driver()
	}
	eventually(p.t, "the kubelet knows the driver", func(g gomega.Gomega) {
		node, err := getNode(p.t.Context(), p.node)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(node.Labels).To(gomega.HaveKey(volume.DriverNodeLabel))
	})
	g := gomega.NewWithT(p.t)
	s := p.team()
	before := s.settled()
	for _, row := range sampleInShort(openebs.Rows, len(openebs.Rows)) {
		o := p.benchmark(s, before, row, volume.ProvisionerOpenEBS)
		made := o.experiment.Runs[0].Volumes[0]
		g.Expect(made.Provisioner).To(gomega.Equal(volume.ProvisionerOpenEBS))
		if row.Name == "dataset" { // one that the class says, one that only the parent has, and the limit
			for name, value := range map[string]string{"recordsize": "8192", "compression": "off", "sync": "always", "refquota": "536870912",
				"quota": "0"} {
				g.Expect(made.Properties).To(gomega.HaveKeyWithValue(name, value))
			}
		}
		left, err := openebs.Left(p.t.Context(), cluster)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(left).To(gomega.BeEmpty())
	}
	if os.Getenv("E2E_OPENEBS") != "installed" {
		p.otherwise(s, before)
	}
	if !testing.Short() {
		for i, plain := range plainCases[:4] { // what the workloads do does not depend on who made the volume
			kind, dataset := "filesystem", "size: 512Mi"
			if i%2 == 0 && !plain.folderOnly {
				kind, dataset = "volume", "type: Volume, size: 256Mi"
			}
			p.plainCase(s, before, plain, kind, "{provisioner: OpenEBS, "+dataset+"}")
		}
		p.deleted(s, before, "{provisioner: OpenEBS, size: 384Mi}")
		p.alike(s, before)
	}
}

// alike: the dataset has the same properties whoever makes it, and is equally fast on a disk whose limits decide the speed.
func (p *pools) alike(s *space, before []string) {
	g := gomega.NewWithT(p.t)
	breakDisk(p.t, p.node, p.disks[0], "throttle", ageingIOPS, ageingBytesPerSecond)
	properties, reads := map[string]map[string]string{}, map[string]float64{}
	for _, provisioner := range []string{volume.ProvisionerLocal, volume.ProvisionerOpenEBS} {
		benchmark := s.benchmark("alike-"+strings.ToLower(provisioner), p.paths(`
target:
  zfs:
    nodes: {matchLabels: {storagebench.dev/lab: "true"}}
    pool: {vdevs: [{devices: [$1]}]}
    dataset: {provisioner: `+provisioner+`, size: 256Mi, properties: {recordsize: 8k, compression: "off", atime: "off", logbias: throughput}}
phases:
- {name: fill, fill: {size: 128Mi}}
- {name: cold, operate: {exportImport: {}}}
- {name: read, measure: {workload: {oltp: {workers: 8, duration: 10s}}}}
gates:
- {name: reads, expression: "phase('read').readOperationsPerSecond >= 1.0"}
`))
		o := s.ended(benchmark, v1alpha1.VerdictPassed)
		properties[provisioner] = o.experiment.Runs[0].Volumes[0].Properties
		reads[provisioner] = float64(o.documents["read"].Metrics["readOperationsPerSecond"])
		s.leavesNothing(before, benchmark)
	}
	for name, value := range properties[volume.ProvisionerLocal] {
		g.Expect(properties[volume.ProvisionerOpenEBS]).To(gomega.HaveKeyWithValue(name, value))
	}
	local := reads[volume.ProvisionerLocal]
	fmt.Printf("alike: %.0f reads a second on the agent's dataset, %.0f on the driver's; %d properties are equal\n",
		local, reads[volume.ProvisionerOpenEBS], len(properties[volume.ProvisionerLocal]))
	g.Expect(reads[volume.ProvisionerOpenEBS]).To(gomega.BeNumerically("~", local, local*busyHost))
}

// mistakenBlockSize is a block size for which the stand-in makes a volume with the default block size instead.
const mistakenBlockSize = "32k"

// otherwise: a volume that is not as requested is detected before anything is written to it, whatever mistake the driver has made.
func (p *pools) otherwise(s *space, before []string) {
	benchmark := s.benchmark("otherwise", p.paths(`
target:
  zfs:
    nodes: {matchLabels: {storagebench.dev/lab: "true"}}
    pool: {vdevs: [{devices: [$1]}]}
    dataset: {provisioner: OpenEBS, type: Volume, size: 64Mi, properties: {volblocksize: `+mistakenBlockSize+`}}
phases:
- {name: fill, fill: {size: 16Mi}}
`))
	o := s.ended(benchmark, v1alpha1.VerdictInvalid)
	g := gomega.NewWithT(p.t)
	g.Expect(o.experiment.Message).To(gomega.And(gomega.ContainSubstring("nothing was written"), gomega.ContainSubstring("volblocksize")))
	g.Expect(o.documents).To(gomega.BeEmpty())
	s.leavesNothing(before, benchmark)
}

// driver installs the stand-in until the end of the test: its node service as a process on the node, everything else in this process.
func (p *pools) driver() {
	p.t.Helper()
	id := "id-of-" + p.node // some clusters give their nodes other names in the driver
	if err := zfsdriver.Install(p.t.Context(), cluster); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.removeDriver)
	p.startNodeService(id)
	ctx, cancel := context.WithCancel(p.t.Context())
	ended := make(chan error, 1)
	driver := &zfsdriver.Driver{Client: cluster, NodeID: id, Run: func(ctx context.Context, words ...string) (string, error) {
		if i := slices.Index(words, mistakenBlockSize); i > 0 {
			words = slices.Delete(slices.Clone(words), i-1, i+1) // -b SIZE
		}
		return theLab.Run(ctx, p.node, words...)
	}}
	go func() { ended <- driver.Work(ctx) }()
	p.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Errorf("the stand-in for the driver: %v", err)
		}
	})
	eventually(p.t, "the driver is furnished", func(g gomega.Gomega) { // later objects would look like leftovers
		found, err := inventory(p.t.Context())
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(found).To(gomega.ContainElements("zfsnodes.zfs.openebs.io "+zfsdriver.Namespace+"/"+id,
			"configmaps "+zfsdriver.Namespace+"/kube-root-ca.crt", "serviceaccounts "+zfsdriver.Namespace+"/default"))
	})
}

// startNodeService builds the node service, brings it to the node and starts it there.
func (p *pools) startNodeService(id string) {
	p.t.Helper()
	file, err := os.Open(built(p.t, filepath.Join(root, "test", "zfsdriver", "node"), "./cmd/zfsdriver-node"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	_, _ = theLab.Run(p.t.Context(), p.node, "systemctl", "stop", driverUnit) // of a test that was killed
	copied, err := theLab.Command(p.t.Context(), p.node, "sh", "-euc", `cat >"$1.new"; chmod 755 "$1.new"; mv "$1.new" "$1"`, "copy",
		driverProgram)
	if err != nil {
		p.t.Fatal(err)
	}
	copied.Stdin = file
	if output, err := copied.CombinedOutput(); err != nil {
		p.t.Fatalf("copy the node service to node %s: %v\n%s", p.node, err, output)
	}
	p.run("systemd-run", "--quiet", "--collect", "--unit="+driverUnit, driverProgram, "--node-id", id)
}

// removeDriver removes everything that driver has installed.
func (p *pools) removeDriver() {
	ctx, cancel := afterwards(p.t)
	defer cancel()
	for _, words := range [][]string{{"systemctl", "stop", driverUnit},
		{"rm", "-rf", driverProgram, "/var/lib/kubelet/plugins/" + zfsdriver.Name}} {
		if _, err := theLab.Run(ctx, p.node, words...); err != nil {
			p.t.Errorf("%v", err)
		}
	}
	// The kubelet keeps the driver's label, and would refuse a driver that knows the node by another name.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.node}}
	unlabel := fmt.Appendf(nil, `{"metadata": {"labels": {%q: null}}}`, zfsdriver.Topology)
	if err := cluster.Patch(ctx, node, client.RawPatch(types.MergePatchType, unlabel)); err != nil {
		p.t.Error(err)
	}
	// A teardown that failed may have left objects with finalizers.
	if err := zfsdriver.Release(ctx, cluster); err != nil {
		p.t.Error(err)
	}
	if err := zfsdriver.Remove(ctx, cluster); err != nil {
		p.t.Error(err)
	}
	for _, name := range []string{"zfsvolumes.zfs.openebs.io", "zfsnodes.zfs.openebs.io"} {
		kind := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
		kind.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		gone(ctx, p.t, kind)
	}
	gone(ctx, p.t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: zfsdriver.Namespace}})
}
