package delivery

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/cluster"
	"github.com/storagebench/storagebench/test/sim"
)

const firstBenchmark = `
apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: first, namespace: team-a}
spec:
  target: {storageClass: {name: delivery, size: 64Mi}}
  repetitions: 2
  phases:
  - {name: fill, fill: {to: 50%}}
  - {name: read, measure: {workload: {oltp: {workers: 2, duration: 10s}}}}
  gates:
  - {name: reads, expression: "phase('read').readOperationsPerSecond > 1.0"}
`

// testManagerAtWork runs the real program with exactly the rights that the installation grants, and lets it work: a
// right that is missing shows as a benchmark without a verdict, and in the audit log.
func testManagerAtWork(t *testing.T) {
	playCluster(t)
	metrics := freeAddress(t)
	program, log := startManager(t, "--metrics-bind-address="+metrics)
	until(t, log, "metrics are refused to a stranger", func(ctx context.Context) bool {
		code := answers(ctx, "https://"+metrics+"/metrics")
		return code == http.StatusUnauthorized || code == http.StatusForbidden
	})
	until(t, log, "metrics are shown to whoever may read them", func(ctx context.Context) bool {
		return answersTo(ctx, "https://"+metrics+"/metrics", metricsToken(t)) == http.StatusOK
	})
	runBenchmark(t, log, teamBenchmark(t))
	usePlugin(t, log)
	code, shown := answerTo(t.Context(), "https://"+metrics+"/metrics", metricsToken(t))
	if code != http.StatusOK {
		t.Errorf("after an experiment the metrics answer %d", code)
	}
	if !strings.Contains(shown, `storagebench_build_info{`) || !strings.Contains(shown, `version="`+builtVersion+`"`) {
		t.Errorf("the metrics do not say that this is %s", builtVersion)
	}
	onPoolsWithoutAgent(t, log)
	stopManager(t, program, log)
}

// playCluster plays a node and a StorageClass until the test is over.
func playCluster(t *testing.T) {
	t.Helper()
	played, err := sim.New(config, sim.Options{Namespaces: []string{team}, Nodes: []string{"delivery-node"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(played.Close)
	if err := errors.Join(client.IgnoreAlreadyExists(played.CreateNodes(t.Context())),
		client.IgnoreAlreadyExists(played.CreateStorageClass(t.Context(), "delivery", false))); err != nil {
		t.Fatal(err)
	}
	go func() { _ = played.Run(t.Context()) }()
}

func stopManager(t *testing.T, program *exec.Cmd, log *bytes.Buffer) {
	t.Helper()
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil {
		t.Errorf("after SIGTERM the manager ends with %v; its log:\n%s", err, log)
	}
}

// onPoolsWithoutAgent: a target on pools stops with the reason, and takes nothing.
func onPoolsWithoutAgent(t *testing.T, log *bytes.Buffer) {
	t.Helper()
	benchmark := teamBenchmark(t)
	benchmark.Name, benchmark.Spec.Target = "on-pools", v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{
		Nodes: v1alpha1.NodeChoice{MatchLabels: map[string]string{v1alpha1.LabelLabNode: "true"}},
		Pool:  v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/a"}}}},
	}}
	create(t, benchmark)
	until(t, log, "the benchmark says that there is no agent", func(ctx context.Context) bool {
		err := admin.Get(ctx, client.ObjectKeyFromObject(benchmark), benchmark)
		ready := meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionReady)
		return err == nil && ready != nil && ready.Reason == v1alpha1.ReasonAgentNotInstalled &&
			meta.IsStatusConditionTrue(benchmark.Status.Conditions, v1alpha1.ConditionStalled)
	})
	if err := admin.Delete(t.Context(), benchmark); err != nil {
		t.Fatal(err)
	}
	until(t, log, "the benchmark is gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(benchmark), benchmark))
	})
}

// teamBenchmark returns the team's first benchmark.
func teamBenchmark(t *testing.T) *v1alpha1.StorageBenchmark {
	t.Helper()
	benchmark := &v1alpha1.StorageBenchmark{}
	if err := yaml.UnmarshalStrict([]byte(firstBenchmark), benchmark); err != nil {
		t.Fatal(err)
	}
	return benchmark
}

func runBenchmark(t *testing.T, log *bytes.Buffer, benchmark *v1alpha1.StorageBenchmark) {
	t.Helper()
	user := admin
	create(t, benchmark)
	until(t, log, "the benchmark has passed", func(ctx context.Context) bool {
		err := user.Get(ctx, client.ObjectKeyFromObject(benchmark), benchmark)
		return err == nil && benchmark.Status.Verdict == v1alpha1.VerdictPassed
	})
	if err := user.Delete(t.Context(), benchmark); err != nil {
		t.Fatal(err)
	}
	until(t, log, "everything is gone", func(ctx context.Context) bool {
		err := user.Get(ctx, client.ObjectKeyFromObject(benchmark), &v1alpha1.StorageBenchmark{})
		var claims corev1.PersistentVolumeClaimList
		return client.IgnoreNotFound(err) == nil && err != nil && user.List(ctx, &claims, client.InNamespace(team)) == nil &&
			len(claims.Items) == 0
	})
	var events corev1.EventList
	if err := user.List(t.Context(), &events, client.InNamespace(team),
		client.MatchingFields{"involvedObject.kind": "StorageBenchmark"}); err != nil || len(events.Items) == 0 {
		t.Errorf("the manager has announced nothing: %v", err)
	}
}

// builtVersion is the version that the program is built with, as hack/images does it.
const builtVersion = "v1.2.3-test"

// startManager builds the program and starts it as the ServiceAccount of the installation.
func startManager(t *testing.T, more ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "manager")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-X main.version="+builtVersion, "-o", binary, "./cmd/manager")
	build.Dir = cluster.Root()
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the manager: %v\n%s", err, output)
	}
	log, probes := &bytes.Buffer{}, freeAddress(t)
	arguments := append([]string{"--leader-elect", "--runner-image=runner:test", "--health-probe-bind-address=" + probes}, more...)
	program := exec.Command(binary, arguments...) //nolint:noctx // it is stopped by a signal, which is part of the test
	identity, err := cluster.User(serviceAccount, namespace)
	if err != nil {
		t.Fatal(err)
	}
	program.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(t, identity), "POD_NAMESPACE="+namespace)
	program.Stdout, program.Stderr = log, log
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Process.Kill() })
	until(t, log, "the manager is ready", func(ctx context.Context) bool { return answers(ctx, "http://"+probes+"/readyz") == http.StatusOK })
	if code := answers(t.Context(), "http://"+probes+"/healthz"); code != http.StatusOK {
		t.Errorf("/healthz answers %d", code)
	}
	return program, log
}

func until(t *testing.T, log fmt.Stringer, what string, condition func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return condition(ctx), nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v; the manager's log:\n%s", what, err, log)
	}
}

// answers returns the status code of a GET, or 0 if there is no answer.
func answers(ctx context.Context, address string) int { return answersTo(ctx, address, "") }

// answersTo is like answers, for a client with a token.
func answersTo(ctx context.Context, address, token string) int {
	code, _ := answerTo(ctx, address, token)
	return code
}

// answerTo returns the status code and the body of the answer.
func answerTo(ctx context.Context, address, token string) (code int, body string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, ""
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a self-signed certificate on loopback
	response, err := insecure.Do(request)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, ""
	}
	return response.StatusCode, string(text)
}

// metricsToken returns the token of an account that may read metrics, because of the documented binding.
func metricsToken(t *testing.T) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "prometheus", Namespace: team}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "storagebench-metrics-reader"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "storagebench-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: team, Name: account.Name}}}
	for _, object := range []client.Object{account, binding} {
		if err := admin.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	token, err := clients.CoreV1().ServiceAccounts(team).CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
