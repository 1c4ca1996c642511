package integration

import (
	"testing"

	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/sim"
)

// TestMetaslabMapIsStored: the map of a pool's free space is stored with the results of the phase, for the pictures of the report.
func TestMetaslabMapIsStored(t *testing.T) {
	t.Parallel()
	l := startNodes(t, 1, func(workload.Request, *corev1.Pod) sim.Script { return sim.Script{} })
	benchmark := l.submitOnDisks("bench", oneDisk+`
phases:
- {name: fill, fill: {to: 50%}}
- {name: map, operate: {metaslabMap: {}}}
repetitions: 1
`)
	l.finished(benchmark, v1alpha1.VerdictPassed)
	g, run := gomega.NewWithT(t), l.runs()[0]
	var stored corev1.ConfigMap
	l.must(l.live.Get(t.Context(), client.ObjectKey{Namespace: run.Namespace, Name: run.Status.Phases[1].Result}, &stored))
	found, err := poolseries.UnpackMetaslabs(stored.BinaryData[results.KeyMetaslabs], stored.Data[results.KeyMetaslabsDigest])
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(found.FreeBytes).To(gomega.BeEquivalentTo(4096))
	g.Expect(stored.BinaryData).NotTo(gomega.HaveKey(results.KeyPool), "an operation is not observed")
	l.poolsGone()
}
