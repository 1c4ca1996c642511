package integration

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"path/filepath"
	"slices"
	"testing"

	"github.com/onsi/gomega"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/test/cluster"
)

// TestHappyPath follows an experiment from its creation to its verdict.
func TestHappyPath(t *testing.T) {
	t.Parallel()
	for _, mode := range []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			l := start(t, nil)
			benchmark := l.submit("bench", small+`
seed: 7
gates: [{name: fast, expression: "phase('read').readOperationsPerSecond > 1000.0"}]
`, func(benchmark *v1alpha1.StorageBenchmark) {
				benchmark.Spec.Repetitions, benchmark.Spec.Target.StorageClass.VolumeMode = 2, mode
			})
			benchmark = l.finished(benchmark, v1alpha1.VerdictPassed)
			l.nothingLeft(heldKinds()...)
			l.executedOnce(4)
			checkStatus(l, benchmark)
			checkRuns(l)
			checkResults(l, benchmark)
			checkPods(l, mode)
			checkEvents(l, benchmark)
			states := history(l.journal, func(b *v1alpha1.StorageBenchmark) string { return b.Status.State })
			gomega.NewWithT(t).Expect(states).To(gomega.Equal([]string{"", "Queued(1)", "Running", "Finished"}))
		})
	}
}

func checkStatus(l *lab, benchmark *v1alpha1.StorageBenchmark) {
	l.t.Helper()
	g := gomega.NewWithT(l.t)
	status := benchmark.Status
	g.Expect(*status.Progress).To(gomega.Equal(v1alpha1.ProgressStatus{RunsTotal: 2, RunsDone: 2}))
	g.Expect(*status.Seed).To(gomega.BeEquivalentTo(7))
	g.Expect([]string{status.NodeName, status.StorageClass, status.RunnerImage}).To(gomega.Equal([]string{l.node, l.class, runnerImage}))
	g.Expect(status.Gates).To(gomega.HaveLen(1))
	g.Expect(status.Gates[0].Verdict).To(gomega.Equal(v1alpha1.VerdictPassed))
	g.Expect(status.Summary).NotTo(gomega.BeEmpty())
	g.Expect(status.StartedAt.After(status.FinishedAt.Time)).To(gomega.BeFalse())
}

func checkRuns(l *lab) {
	l.t.Helper()
	g := gomega.NewWithT(l.t)
	runs := l.runs()
	g.Expect(runs).To(gomega.HaveLen(2))
	for _, run := range runs {
		for _, condition := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionComplete, v1alpha1.ConditionValid} {
			g.Expect(meta.IsStatusConditionTrue(run.Status.Conditions, condition)).To(gomega.BeTrue(), "%s: %s", run.Name, condition)
		}
		g.Expect(run.Status.Conditions).To(gomega.HaveLen(3), "neither Reconciling nor Stalled")
		g.Expect(run.Status.State).To(gomega.Equal("Valid"))
		g.Expect(run.Status.Phases).To(gomega.HaveLen(2))
		for _, phase := range run.Status.Phases {
			g.Expect(phase.Result).NotTo(gomega.BeEmpty())
			g.Expect(phase.Digest).To(gomega.HavePrefix("sha256:"))
		}
	}
}

// checkResults checks the content of the ConfigMap of an experiment.
func checkResults(l *lab, benchmark *v1alpha1.StorageBenchmark) {
	l.t.Helper()
	g := gomega.NewWithT(l.t)
	stored, experiment := l.results(benchmark, benchmark.Status.Results.ConfigMap)
	g.Expect(stored.Name).To(gomega.Equal("bench-" + benchmark.Status.Experiment))
	g.Expect(experiment.Verdict).To(gomega.Equal("Passed"))
	g.Expect(experiment.State).To(gomega.Equal(results.StateComplete))
	g.Expect(experiment.Runs).To(gomega.HaveLen(2))
	g.Expect(experiment.Runs[0].Phases).To(gomega.HaveLen(2))
	g.Expect(experiment.Runs[0].Phases[1].Metrics).To(gomega.HaveKey("readOperationsPerSecond"))
	g.Expect(experiment.Environment).To(gomega.HaveKeyWithValue("kernel", []string{"6.12.0-sim"}))
	g.Expect(experiment.Seed).To(gomega.BeEquivalentTo(7))
	g.Expect(stored.Data["report.md"]).To(gomega.ContainSubstring("Passed"))
	var suite struct {
		XMLName xml.Name
		Suites  []struct {
			Cases []struct {
				Name string `xml:"name,attr"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	l.must(xml.Unmarshal([]byte(stored.Data["junit.xml"]), &suite))
	g.Expect(suite.XMLName.Local).To(gomega.Equal("testsuites"))
	g.Expect(suite.Suites).NotTo(gomega.BeEmpty())
	g.Expect(suite.Suites[0].Cases).NotTo(gomega.BeEmpty())
}

// results reads a ConfigMap with results, which must follow the published schema.
func (l *lab) results(benchmark *v1alpha1.StorageBenchmark, name string) (*corev1.ConfigMap, results.Experiment) {
	l.t.Helper()
	var stored corev1.ConfigMap
	l.must(l.live.Get(l.t.Context(), client.ObjectKey{Namespace: benchmark.Namespace, Name: name}, &stored))
	compiler := validator.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile(filepath.Join(cluster.Root(), "docs", "schemas", "results.schema.json"))
	l.must(err)
	text := []byte(stored.Data["results.json"])
	document, err := validator.UnmarshalJSON(bytes.NewReader(text))
	l.must(err)
	l.must(schema.Validate(document))
	var experiment results.Experiment
	l.must(json.Unmarshal(text, &experiment))
	return &stored, experiment
}

// checkPods checks the pods of the experiment, which the API server accepted in a namespace that enforces the restricted level.
func checkPods(l *lab, mode corev1.PersistentVolumeMode) {
	l.t.Helper()
	g := gomega.NewWithT(l.t)
	var namespace corev1.Namespace
	l.must(l.live.Get(l.t.Context(), client.ObjectKey{Name: l.namespaces[0]}, &namespace))
	g.Expect(namespace.Labels).To(gomega.HaveKeyWithValue("pod-security.kubernetes.io/enforce", "restricted"))
	names := map[string]bool{}
	for _, seen := range l.journal.all() {
		pod, is := seen.object.(*corev1.Pod)
		if !is || names[pod.Name] {
			continue
		}
		names[pod.Name] = true
		container := pod.Spec.Containers[0]
		g.Expect(*pod.Spec.AutomountServiceAccountToken).To(gomega.BeFalse())
		g.Expect(*pod.Spec.SecurityContext.RunAsNonRoot).To(gomega.BeTrue())
		g.Expect(*container.SecurityContext.ReadOnlyRootFilesystem).To(gomega.BeTrue())
		g.Expect(*container.SecurityContext.AllowPrivilegeEscalation).To(gomega.BeFalse())
		g.Expect(container.SecurityContext.Privileged).To(gomega.BeNil())
		g.Expect(container.SecurityContext.Capabilities.Drop).To(gomega.ConsistOf(corev1.Capability("ALL")))
		g.Expect(container.Image).To(gomega.Equal(runnerImage))
		for _, volume := range pod.Spec.Volumes {
			g.Expect(volume.HostPath).To(gomega.BeNil())
			g.Expect(volume.Projected).To(gomega.BeNil())
		}
		g.Expect(container.VolumeDevices).To(gomega.HaveLen(map[corev1.PersistentVolumeMode]int{corev1.PersistentVolumeBlock: 1}[mode]))
	}
	g.Expect(names).To(gomega.HaveLen(4), "pods seen")

	var privileged corev1.Pod
	privileged.Namespace, privileged.Name = l.namespaces[0], "privileged"
	privileged.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	err := l.live.Create(l.t.Context(), &privileged)
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("violates PodSecurity")), "the namespace enforces anything at all")
}

// checkEvents compares the events about the benchmark with the conditions that it had.
func checkEvents(l *lab, benchmark *v1alpha1.StorageBenchmark) {
	l.t.Helper()
	reasons := history(l.journal, func(b *v1alpha1.StorageBenchmark) string { return ready(b.Status.Conditions).Reason })
	reasons = slices.DeleteFunc(reasons, func(reason string) bool { return reason == "" })
	l.eventually("an event for each reason", func(g gomega.Gomega) {
		told := history(l.journal, func(event *corev1.Event) string {
			if event.InvolvedObject.UID != benchmark.UID {
				return ""
			}
			return event.Reason
		})
		told = slices.Compact(slices.DeleteFunc(told, func(reason string) bool { return reason == "" }))
		g.Expect(told).To(gomega.Equal(reasons))
	})
}
