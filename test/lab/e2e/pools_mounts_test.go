package e2e

import (
	"fmt"
	"strconv"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/naming"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cloneInVolume clones a dataset to a place within itself, where there is a link to a folder of the node. Nothing is mounted there, and a
// benchmark that does this ends and releases its node.
func (p *pools) cloneInVolume() {
	g := gomega.NewWithT(p.t)
	pool := p.make("inside", `{vdevs: [{devices: [$1]}], datasets: [{path: data, mounted: true}]}`)
	p.ready(pool)
	name := string(pool.Spec.PoolName)
	point := naming.MountPoint(name, "data")
	g.Expect(p.script(`findmnt -no OPTIONS --mountpoint ` + point)).To(gomega.And(gomega.ContainSubstring("nosuid"),
		gomega.ContainSubstring("nodev"), gomega.ContainSubstring("noexec")))
	p.script(`mkdir -p /srv/e2e-victim; echo untouched >/srv/e2e-victim/file; ln -s /srv/e2e-victim ` + point + `/c; ln -s /srv/e2e-victim ` +
		point + `/data/c`)
	p.operate("inside-snapshot", pool, `snapshot: {dataset: data, name: s}`, "Succeeded")
	p.operate("inside-clone", pool, `clone: {dataset: data, snapshot: s, to: data/c}`, "Succeeded")
	g.Expect(p.run("zfs", "get", "-Hpo", "value", "mounted,canmount,mountpoint", name+"/data/c")).To(gomega.Equal("no\nnoauto\nnone"))
	p.operate("inside-again", pool, `exportImport: {}`, "Succeeded")
	p.run("zfs", "mount", "-a")
	g.Expect(p.script(`findmnt -rno TARGET -S ` + name + `/data/c || echo nowhere`)).To(gomega.Equal("nowhere"))
	g.Expect(p.script(`cat /srv/e2e-victim/file; findmnt -rno SOURCE --mountpoint /srv/e2e-victim || echo bare`)).To(gomega.Equal("untouched\nbare"))

	// If it is mounted there anyway, the mount does not stay, although the dataset is in use.
	p.script(`rm ` + point + `/c; mkdir ` + point + `/c; sleep 1000 <` + point + `/data >/dev/null 2>&1 & echo $! >/run/e2e-user
		mkdir -p /run/e2e-kubelet; mount --bind ` + point + ` /run/e2e-kubelet; mount -t zfs -o zfsutil ` + name + `/data/c ` + point + `/c; findmnt --mountpoint /run/e2e-kubelet/c >/dev/null`)
	eventually(p.t, "the mount within the dataset is gone, with its copies", func(g gomega.Gomega) {
		g.Expect(p.script(`findmnt -rno TARGET -S ` + name + `/data/c || echo nowhere`)).To(gomega.Equal("nowhere"))
	})
	p.script(`umount /run/e2e-kubelet; kill $(cat /run/e2e-user); rm -r /run/e2e-user /run/e2e-kubelet /srv/e2e-victim`)
	p.remove(pool)
	g.Expect(p.script(`ls -d ` + point + ` 2>/dev/null || echo gone`)).To(gomega.Equal("gone"))

	s := p.team()
	before := s.settled()
	benchmark := s.benchmark("inside", p.paths(`
target: {zfs: {nodes: {matchLabels: {storagebench.dev/lab: "true"}}, pool: {vdevs: [{devices: [$1]}]}}}
phases:
- {name: fill, fill: {size: 16Mi}}
- {name: snapshot, operate: {snapshot: {dataset: data, name: s}}}
- {name: clone, operate: {clone: {dataset: data, snapshot: s, to: data/c}}}
- {name: again, fragment: {blockSize: 8Ki, until: Rounds, rounds: 1}}
`))
	s.completed(benchmark)
	s.leavesNothing(before, benchmark)
}

// bareFolder resets a node while a pod writes to a dataset, and no agent is there to mount it: the pod waits, and nothing reaches the
// node's own disk. Once the agent is back, the pod continues.
func (p *pools) bareFolder() {
	g, s := gomega.NewWithT(p.t), newSpace(p.t, levelRestricted)
	switchOnAfterwards(p.t, p.node)
	pool := p.make("bare", `{vdevs: [{devices: [$1]}], datasets: [{path: lab, mounted: true}]}`)
	p.ready(pool)
	name := string(pool.Spec.PoolName)
	volume := localVolume("e2e-bare-"+s.name, s.name, naming.VolumePath(name, "lab"), p.node)
	if err := cluster.Create(p.t.Context(), volume); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		ctx, cancel := afterwards(p.t)
		defer cancel()
		if err := cluster.Delete(ctx, volume); client.IgnoreNotFound(err) != nil {
			p.t.Error(err)
		}
	})
	claim := newClaim("data", ptr.To(""), corev1.PersistentVolumeFilesystem)
	claim.Spec.VolumeName = volume.Name
	s.create(claim)
	pod := s.start("writer", on(p.node), mounted("data"), command("sh", "-c", `while :; do echo line >>/data/lines; sleep 0.2; done`))
	lines := func() int {
		count, err := strconv.Atoi(s.must(pod.Name, `wc -l </data/lines`))
		g.Expect(err).NotTo(gomega.HaveOccurred())
		return count
	}
	eventually(p.t, "lines are written", func(g gomega.Gomega) { g.Expect(lines()).To(gomega.BeNumerically(">", 3)) })
	written := lines()
	p.run("zpool", "sync", name)

	p.setAgentLabel(false)
	p.t.Cleanup(func() { p.setAgentLabel(true) })
	act(p.t, p.node, "reset")
	eventually(p.t, "the pod waits for its volume", func(g gomega.Gomega) {
		var events corev1.EventList
		g.Expect(cluster.List(p.t.Context(), &events, client.InNamespace(s.name))).To(gomega.Succeed())
		g.Expect(events.Items).To(gomega.ContainElement(gomega.And(gomega.HaveField("Reason", "FailedMount"),
			gomega.HaveField("Message", gomega.ContainSubstring("does not exist")))))
	})
	point := naming.MountPoint(name, "lab")
	g.Expect(p.script(`findmnt -t zfs `+point+` >/dev/null && echo mounted; ls -A `+point+`; lsattr -d `+point+` | cut -c5; touch `+point+
		`/x 2>/dev/null || echo refused`)).
		To(gomega.Equal("i\nrefused"), "the folder on the node's own disk")

	p.setAgentLabel(true)
	p.ready(pool)
	s.ready(pod.Name)
	eventually(p.t, "the pod goes on", func(g gomega.Gomega) { g.Expect(lines()).To(gomega.BeNumerically(">", written)) })
	fmt.Printf("bare folder: the pod waited, and went on from line %d\n", written)
	s.stop(pod)
	s.stop(claim)
	p.remove(pool)
	g.Expect(p.script(`ls -d ` + point + ` 2>/dev/null || echo gone`)).To(gomega.Equal("gone"))
}

// setAgentLabel sets the label that decides whether the node has an agent.
func (p *pools) setAgentLabel(is bool) {
	ctx, cancel := afterwards(p.t)
	defer cancel()
	node, err := getNode(ctx, p.node)
	if err != nil {
		p.t.Fatal(err)
	}
	before := node.DeepCopy()
	node.Labels["storagebench.dev/lab"] = strconv.FormatBool(is)
	if err := cluster.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		p.t.Fatal(err)
	}
}

// localVolume returns a PersistentVolume at a path of a node, for one claim.
func localVolume(name, namespace, path, node string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")},
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
		ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace,
			Name: "data"},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
				Values: []string{node}}}}}}},
	}}
}
