package runs

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// receiptText is the receipt that a runner leaves in its termination message.
func receiptText(t *testing.T) string {
	t.Helper()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var log strings.Builder
	receipt, err := results.Emit(&log, results.PhaseDocument{
		Version: results.PhaseVersion, Run: results.RunIdentity{Namespace: "lab", Name: "r", UID: "u"}, Phase: "fill", Kind: results.KindFill,
		Outcome: results.OutcomeValid, StartedAt: at, FinishedAt: at})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(receipt)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPodState reads statuses as kubelets, schedulers and controllers of real clusters write them.
func TestPodState(t *testing.T) {
	receipt := receiptText(t)
	for _, test := range []struct {
		name, status                  string
		problem, says                 string
		started, ended, has, deleting bool
		exit                          int32
	}{
		{name: "new", status: `{phase: Pending}`},
		{name: "unschedulable",
			status:  `{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: 3 node(s) didn't match"}]}`,
			problem: v1alpha1.ReasonPodUnschedulable, says: "0/3 nodes"},
		{name: "held back by a scheduling gate",
			status: `{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated, message: "x"}]}`},
		{name: "being created",
			status: `{phase: Pending, conditions: [{type: PodScheduled, status: "True"}], containerStatuses: [{name: runner, state: {waiting: {reason: ContainerCreating}}}]}`},
		{name: "image: first failure",
			status:  `{phase: Pending, containerStatuses: [{name: runner, image: "x:1", state: {waiting: {reason: ErrImagePull, message: "not found"}}}]}`,
			problem: v1alpha1.ReasonImagePullFailed, says: "image x:1: ErrImagePull: not found"},
		{name: "image: back-off",
			status:  `{phase: Pending, containerStatuses: [{name: runner, image: "x:1", state: {waiting: {reason: ImagePullBackOff, message: "Back-off pulling image"}}}]}`,
			problem: v1alpha1.ReasonImagePullFailed, says: "Back-off"},
		{name: "image: bad name", status: `{phase: Pending, containerStatuses: [{name: runner, state: {waiting: {reason: InvalidImageName}}}]}`,
			problem: v1alpha1.ReasonImagePullFailed, says: "InvalidImageName"},
		{name: "configuration",
			status:  `{phase: Pending, containerStatuses: [{name: runner, state: {waiting: {reason: CreateContainerConfigError, message: "container has runAsNonRoot and image will run as root"}}}]}`,
			problem: v1alpha1.ReasonPodRejected, says: "runAsNonRoot"},
		{name: "another container does not count",
			status: `{phase: Running, containerStatuses: [{name: istio-proxy, state: {terminated: {exitCode: 1, message: "x"}}}, {name: runner, state: {running: {startedAt: "2026-11-21T12:00:00Z"}}}]}`, started: true},
		{name: "running", status: `{phase: Running, containerStatuses: [{name: runner, state: {running: {startedAt: "2026-11-21T12:00:00Z"}}}]}`,
			started: true},
		{name: "done",
			status:  `{phase: Succeeded, containerStatuses: [{name: runner, state: {terminated: {exitCode: 0, reason: Completed, startedAt: "2026-11-21T12:00:00Z", finishedAt: "2026-11-21T12:05:00Z", message: 'RECEIPT'}}}]}`,
			started: true, ended: true, has: true, says: results.PhaseVersion},
		{name: "done without a receipt",
			status:  `{phase: Succeeded, containerStatuses: [{name: runner, state: {terminated: {exitCode: 0, reason: Completed, startedAt: "2026-11-21T12:00:00Z", finishedAt: "2026-11-21T12:05:00Z"}}}]}`,
			started: true, ended: true, says: "Completed"},
		{name: "failed with words",
			status:  `{phase: Failed, containerStatuses: [{name: runner, state: {terminated: {exitCode: 3, reason: Error, message: "disk full", startedAt: "2026-11-21T12:00:00Z", finishedAt: "2026-11-21T12:05:00Z"}}}]}`,
			started: true, ended: true, exit: 3, says: "disk full"},
		{name: "killed for memory",
			status:  `{phase: Failed, containerStatuses: [{name: runner, state: {terminated: {exitCode: 137, reason: OOMKilled, startedAt: "2026-11-21T12:00:00Z", finishedAt: "2026-11-21T12:05:00Z"}}}]}`,
			started: true, ended: true, exit: 137, says: "OOMKilled"},
		{name: "evicted by the kubelet", status: `{phase: Failed, reason: Evicted, message: "The node was low on resource: memory.", conditions: [{type: DisruptionTarget, status: "True", reason: TerminationByKubelet, message: "low"}],
			containerStatuses: [{name: runner, state: {terminated: {exitCode: 137, reason: Error, startedAt: "2026-11-21T12:00:00Z", finishedAt: "2026-11-21T12:05:00Z"}}}]}`,
			problem: v1alpha1.ReasonPodEvicted, says: "low on resource", started: true, ended: true, exit: 137},
		{name: "evicted before it had a container", status: `{phase: Failed, reason: Evicted, message: "disk pressure"}`,
			problem: v1alpha1.ReasonPodEvicted, says: "disk pressure", ended: true, exit: -1},
		{name: "preempted, still running",
			status:  `{phase: Running, conditions: [{type: DisruptionTarget, status: "True", reason: PreemptionByScheduler, message: "preempting"}], containerStatuses: [{name: runner, state: {running: {startedAt: "2026-11-21T12:00:00Z"}}}]}`,
			problem: v1alpha1.ReasonPodEvicted, says: "PreemptionByScheduler", started: true},
		{name: "drained after it had finished", status: `{phase: Succeeded, conditions: [{type: DisruptionTarget, status: "True", reason: EvictionByEvictionAPI, message: "x"}],
			containerStatuses: [{name: runner, state: {terminated: {exitCode: 0, startedAt: "2026-11-21T12:00:00Z", finishedAt: "2026-11-21T12:05:00Z", message: 'RECEIPT'}}}]}`,
			started: true, ended: true, has: true, says: results.PhaseVersion},
		{name: "evicted as a whole with its result finished", status: `{phase: Failed, reason: Evicted, message: "memory",
			containerStatuses: [{name: runner, state: {terminated: {exitCode: 143, startedAt: "2026-11-21T12:00:00Z", finishedAt: "2026-11-21T12:05:00Z", message: 'RECEIPT'}}}]}`,
			started: true, ended: true, has: true, exit: 143, says: results.PhaseVersion},
		{name: "node shut down",
			status:  `{phase: Failed, reason: Terminated, message: "Pod was terminated in response to imminent node shutdown.", conditions: [{type: DisruptionTarget, status: "True", reason: TerminationByKubelet, message: "x"}]}`,
			problem: v1alpha1.ReasonPodEvicted, says: "imminent node shutdown", ended: true, exit: -1},
		{name: "collected with its node",
			status:  `{phase: Failed, conditions: [{type: DisruptionTarget, status: "True", reason: DeletionByPodGC, message: "PodGC: node no longer exists"}]}`,
			problem: v1alpha1.ReasonPodLost, says: "node no longer exists"},
		{name: "refused by the kubelet", status: `{phase: Failed, reason: OutOfcpu, message: "Node didn't have enough resource: cpu"}`,
			says: "OutOfcpu: Node didn't", ended: true, exit: -1},
		{name: "status unknown after a restart of the kubelet",
			status:  `{phase: Failed, containerStatuses: [{name: runner, state: {terminated: {exitCode: 137, reason: ContainerStatusUnknown, message: "The container could not be located when the pod was terminated", startedAt: null, finishedAt: null}}}]}`,
			started: true, ended: true, exit: 137, says: "could not be located"},
		{name: "done by a second container",
			status:  `{phase: Succeeded, containerStatuses: [{name: runner, restartCount: 1, state: {terminated: {exitCode: 0, reason: Completed, startedAt: "2026-11-21T12:00:00Z", finishedAt: "2026-11-21T12:05:00Z", message: 'RECEIPT'}}}]}`,
			problem: v1alpha1.ReasonPodLost, says: "restarted 1 times", started: true, ended: true},
		{name: "being deleted",
			status: `{phase: Running, containerStatuses: [{name: runner, state: {running: {startedAt: "2026-11-21T12:00:00Z"}}}]}`, started: true,
			deleting: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(test.status, "RECEIPT", receipt)), &pod.Status); err != nil {
				t.Fatal(err)
			}
			if test.deleting {
				pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}
			got := PodOf(&pod)
			if !got.Exists || got.Name != "p" || got.Deleting != test.deleting || got.HasReceipt != test.has || got.ExitCode != test.exit ||
				(got.Started != nil) != test.started || (got.Ended != nil) != test.ended || got.Problem != test.problem ||
				!strings.Contains(got.Message, test.says) {
				t.Errorf("got %+v", got)
			}
			if test.says == "" && got.Message != "" {
				t.Errorf("unexpected message %q", got.Message)
			}
		})
	}
}

func TestJobState(t *testing.T) {
	created := metav1.Time{Time: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	for _, test := range []struct {
		name, status string
		want         ExecutorState
	}{
		{"new", `{}`, ExecutorState{Message: "seen"}},
		{"complete", `{conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}`,
			ExecutorState{Succeeded: true, Message: "seen"}},
		{"on its way to failure", `{conditions: [{type: FailureTarget, status: "True", reason: BackoffLimitExceeded}]}`,
			ExecutorState{Message: "seen"}},
		{"failed",
			`{conditions: [{type: FailureTarget, status: "True"}, {type: Failed, status: "True", reason: DeadlineExceeded, message: "Job was active longer than specified deadline"}]}`,
			ExecutorState{Failed: true, Message: "DeadlineExceeded: Job was active longer than specified deadline"}},
		{"a condition that is not true", `{conditions: [{type: Failed, status: "False"}, {type: Suspended, status: "True"}]}`,
			ExecutorState{Message: "seen"}},
	} {
		job := batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "u", CreationTimestamp: created}}
		if err := yaml.UnmarshalStrict([]byte(test.status), &job.Status); err != nil {
			t.Fatal(err)
		}
		test.want.Exists, test.want.UID, test.want.Created = true, "u", created.Time
		if got := JobExecutor(&job, "seen"); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}
