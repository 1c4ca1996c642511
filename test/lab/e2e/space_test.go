package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Under software emulation a machine is slow, and even slower if other programs run on the host. Only a test that fails waits this long.
const (
	patience = 5 * time.Minute
	polling  = 500 * time.Millisecond
)

// spaceLabel marks the namespaces of tests, so that those of a killed run are found.
const spaceLabel = "storagebench.dev/e2e"

// Levels of Pod Security.
const (
	levelRestricted = "restricted"
	levelPrivileged = "privileged"
)

// long skips a test if E2E_SHORT=1 is set: it takes minutes, or proves only the lab.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes minutes, or proves only the lab: 'make e2e' without E2E_SHORT=1 runs it")
	}
}

// inTurn skips a part in the short tests of three out of four commits, as .ci/run chooses: all parts together would take too long.
func inTurn(t *testing.T, turn int) {
	t.Helper()
	if chosen := os.Getenv("E2E_TURN"); testing.Short() && turn != 0 && chosen != "" && chosen != strconv.Itoa(turn) {
		t.Skipf("the short tests of each fourth commit have it: E2E_TURN=%d", turn)
	}
}

// once skips a part that another lab has begun. With LABS=2, hack/e2e tests in two labs at a time, and each takes the parts that are left.
func once(t *testing.T) {
	t.Helper()
	begun := os.Getenv("E2E_BEGUN")
	if begun == "" {
		return
	}
	err := os.Mkdir(filepath.Join(begun, strings.ReplaceAll(t.Name(), "/", ".")), 0o755)
	switch {
	case errors.Is(err, fs.ErrExist):
		t.Skip("runs in another lab")
	case err != nil:
		t.Fatal(err)
	}
}

// part runs a part of a test, and prints its outcome and its time at once: go test prints them only when all parts are over.
func part(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	started, outcome := time.Now(), "passed"
	if !t.Run(name, test) {
		outcome = "FAILED"
	}
	if took := time.Since(started); took > time.Second { // otherwise it was skipped
		fmt.Printf("part %s/%s: %s after %.0f s\n", t.Name(), name, outcome, took.Seconds())
	}
}

// space is a test's own namespace. It is deleted at the end, with all pods; if the test failed, its content is reported first.
type space struct {
	t    *testing.T
	name string
}

// newSpace makes a namespace that enforces a level of Pod Security.
func newSpace(t *testing.T, level string) *space {
	t.Helper()
	return spaceOf(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, level)
}

// spaceOf is like newSpace, for a namespace with a given name.
func spaceOf(t *testing.T, namespace *corev1.Namespace, level string) *space {
	t.Helper()
	namespace.Labels = map[string]string{spaceLabel: "true", "pod-security.kubernetes.io/enforce": level}
	if err := cluster.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	s := &space{t: t, name: namespace.Name}
	t.Cleanup(s.remove)
	return s
}

// in returns the same namespace for a subtest.
func (s *space) in(t *testing.T) *space { return &space{t: t, name: s.name} }

func (s *space) remove() {
	ctx, cancel := afterwards(s.t)
	defer cancel()
	if s.t.Failed() {
		s.t.Logf("what was in namespace %s:\n%s", s.name, s.describe(ctx))
		for _, node := range nodes {
			switchOn(s.t, node) // its QEMU may have hung
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	if err := cluster.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
		s.t.Errorf("delete namespace %s: %v", s.name, err)
		return
	}
	// The pods must be gone before the resources that they used are taken away. The namespace itself may disappear later.
	eventually(s.t, "the pods of namespace "+s.name+" are gone", func(g gomega.Gomega) {
		var left corev1.PodList
		g.Expect(cluster.List(ctx, &left, client.InNamespace(s.name))).To(gomega.Succeed())
		g.Expect(left.Items).To(gomega.BeEmpty())
	})
}

// gone waits until an object no longer exists.
func gone(ctx context.Context, t *testing.T, object client.Object) {
	t.Helper()
	eventually(t, fmt.Sprintf("%T %s is gone", object, object.GetName()), func(g gomega.Gomega) {
		err := cluster.Get(ctx, client.ObjectKeyFromObject(object), object)
		g.Expect(apierrors.IsNotFound(err)).To(gomega.BeTrue(), "%v %v", err, object)
	})
}

// afterwards returns a context for cleaning up: that of the test has ended by then.
func afterwards(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(t.Context()), patience)
}

// eventually waits until the assertions hold.
func eventually(t *testing.T, what string, assert func(g gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Eventually(assert).WithTimeout(patience).WithPolling(polling).Should(gomega.Succeed(), what)
}

// describe returns a description of the namespace: pods, their logs, claims, events.
func (s *space) describe(ctx context.Context) string {
	var told strings.Builder
	var pods corev1.PodList
	var claims corev1.PersistentVolumeClaimList
	var events corev1.EventList
	for _, list := range []client.ObjectList{&pods, &claims, &events} {
		if err := cluster.List(ctx, list, client.InNamespace(s.name)); err != nil {
			fmt.Fprintf(&told, "%T: %v\n", list, err)
		}
	}
	for i := range pods.Items {
		s.describePod(ctx, &pods.Items[i], &told)
	}
	for _, claim := range claims.Items {
		fmt.Fprintf(&told, "claim %s: %s, volume %q\n", claim.Name, claim.Status.Phase, claim.Spec.VolumeName)
	}
	for _, event := range events.Items {
		fmt.Fprintf(&told, "event %s %s/%s %s: %s\n", event.LastTimestamp.Format(time.TimeOnly), event.InvolvedObject.Kind,
			event.InvolvedObject.Name,
			event.Reason, event.Message)
	}
	return told.String()
}

func (s *space) describePod(ctx context.Context, pod *corev1.Pod, told *strings.Builder) {
	fmt.Fprintf(told, "pod %s on %q: %s %s %s\n", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.Reason, pod.Status.Message)
	for _, condition := range pod.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			fmt.Fprintf(told, "  %s=%s %s: %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		fmt.Fprintf(told, "  container %s: ready %t, %d restarts, %s\n", status.Name, status.Ready, status.RestartCount, stateOf(status.State))
		lines := int64(100)
		log, err := clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: status.Name,
			TailLines: &lines}).DoRaw(ctx)
		if err != nil {
			fmt.Fprintf(told, "  no log: %v\n", err)
		}
		for line := range strings.Lines(string(log)) {
			fmt.Fprintf(told, "  | %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
}

func stateOf(state corev1.ContainerState) string {
	switch {
	case state.Waiting != nil:
		return "waits: " + state.Waiting.Reason + " " + state.Waiting.Message
	case state.Terminated != nil:
		return fmt.Sprintf("ended with %d: %s %s", state.Terminated.ExitCode, state.Terminated.Reason, state.Terminated.Message)
	}
	return "runs"
}
