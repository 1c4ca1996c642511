package integration

import (
	"testing"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

const onFast = small + "target: {ref: {name: fast}}"

// storageTarget creates a StorageTarget with a size on the lab's class.
func (l *lab) storageTarget(name, size string) *v1alpha1.StorageTarget {
	l.t.Helper()
	target := &v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespaces[0], Name: name}}
	l.must(yaml.UnmarshalStrict([]byte("storageClass: {name: "+l.class+", size: "+size+"}"), &target.Spec))
	l.must(l.live.Create(l.t.Context(), target))
	return target
}

// TestStorageTarget: a benchmark waits for a StorageTarget, measures the storage that it describes, and keeps its verdict when the
// StorageTarget is gone.
func TestStorageTarget(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	g := gomega.NewWithT(t)
	benchmark := l.submit("bench", onFast)
	l.waits(benchmark, v1alpha1.ReasonTargetNotFound, "no StorageTarget fast", "target.ref.name", "kubectl get storagetargets")
	target := l.storageTarget("fast", "64Mi")
	finished := l.finished(benchmark, v1alpha1.VerdictPassed)
	run := l.runs()[0].Spec.Target
	g.Expect(run.Ref).To(gomega.BeNil())
	g.Expect(run.StorageClass.Size.String()).To(gomega.Equal("64Mi"))
	g.Expect(finished.Spec.Target.Ref.Name).To(gomega.Equal("fast"), "the spec stays as it was written")

	l.must(l.live.Delete(t.Context(), target))
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Labels = map[string]string{"a": "turn"} })
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Spec.MaxAttempts = 3 })
	again := l.finished(benchmark, v1alpha1.VerdictPassed)
	g.Expect(again.Status.Experiment).To(gomega.Equal(finished.Status.Experiment), "what has ended keeps its verdict")

	l.storageTarget("fast", "128Mi")
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Spec.MaxAttempts = 4 })
	again = l.finished(benchmark, v1alpha1.VerdictPassed)
	g.Expect(again.Status.Experiment).To(gomega.Equal(finished.Status.Experiment), "another StorageTarget reruns nothing")
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Annotations = map[string]string{v1alpha1.AnnotationRerun: "1"} })
	l.finishedExperimentAfter(benchmark, finished.Status.Experiment, v1alpha1.VerdictPassed)
	runs := l.runs()
	g.Expect(runs[len(runs)-1].Spec.Target.StorageClass.Size.String()).To(gomega.Equal("128Mi"), "but the next experiment uses it")
}

// TestStorageTargetLost: a benchmark stops before the next run if the StorageTarget is gone or has changed, frees the node, and continues
// when the old one is back.
func TestStorageTargetLost(t *testing.T) {
	t.Parallel()
	l := start(t, holdRun("000", "read"))
	target := l.storageTarget("fast", "64Mi")
	benchmark := l.submit("bench", onFast, func(b *v1alpha1.StorageBenchmark) { b.Spec.Repetitions = 2 })
	l.running("read", 1, "000")
	experiment := l.get(benchmark).Status.Experiment
	l.must(l.live.Delete(t.Context(), target))
	l.cluster.SetBehaviour(nil)
	l.waits(benchmark, v1alpha1.ReasonTargetNotFound, "deleted after this experiment began")
	// Its node is free for others.
	other := l.submit("other", small)
	l.finished(other, v1alpha1.VerdictPassed)

	target = l.storageTarget("fast", "128Mi")
	l.waits(benchmark, v1alpha1.ReasonTargetChanged, "recreate it as it was", v1alpha1.AnnotationRerun)
	l.must(l.live.Delete(t.Context(), target))
	l.storageTarget("fast", "64Mi")
	finished := l.finished(benchmark, v1alpha1.VerdictPassed)
	gomega.NewWithT(t).Expect(finished.Status.Experiment).To(gomega.Equal(experiment))
	gomega.NewWithT(t).Expect(finished.Status.Progress.RunsDone).To(gomega.BeEquivalentTo(2))
}
