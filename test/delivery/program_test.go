package delivery

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers"
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
// right that is missing shows as a benchmark without a verdict.
func testManagerAtWork(t *testing.T) {
	ctx := t.Context()
	played, err := sim.New(config, sim.Options{Namespaces: []string{team}, Nodes: []string{"delivery-node"}})
	if err != nil {
		t.Fatal(err)
	}
	defer played.Close()
	if err := played.CreateNodes(ctx); err != nil {
		t.Fatal(err)
	}
	if err := played.CreateStorageClass(ctx, "delivery", false); err != nil {
		t.Fatal(err)
	}
	go func() { _ = played.Run(ctx) }()

	metrics, probes := freeAddress(t), freeAddress(t)
	program, log := startManager(t, metrics, probes)
	until(t, log, "the manager is ready", func(ctx context.Context) bool { return answers(ctx, "http://"+probes+"/readyz") == http.StatusOK })
	if code := answers(ctx, "http://"+probes+"/healthz"); code != http.StatusOK {
		t.Errorf("/healthz answers %d", code)
	}
	until(t, log, "metrics are refused to a stranger", func(ctx context.Context) bool {
		code := answers(ctx, "https://"+metrics+"/metrics")
		return code == http.StatusUnauthorized || code == http.StatusForbidden
	})
	runBenchmark(t, log)
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil {
		t.Errorf("after SIGTERM the manager ends with %v; its log:\n%s", err, log)
	}
}

func runBenchmark(t *testing.T, log *bytes.Buffer) {
	t.Helper()
	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	user, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	var benchmark v1alpha1.StorageBenchmark
	if err := yaml.UnmarshalStrict([]byte(firstBenchmark), &benchmark); err != nil {
		t.Fatal(err)
	}
	if err := user.Create(t.Context(), &benchmark); err != nil {
		t.Fatal(err)
	}
	until(t, log, "the benchmark has passed", func(ctx context.Context) bool {
		err := user.Get(ctx, client.ObjectKeyFromObject(&benchmark), &benchmark)
		return err == nil && benchmark.Status.Verdict == v1alpha1.VerdictPassed
	})
	if err := user.Delete(t.Context(), &benchmark); err != nil {
		t.Fatal(err)
	}
	until(t, log, "everything is gone", func(ctx context.Context) bool {
		err := user.Get(ctx, client.ObjectKeyFromObject(&benchmark), &v1alpha1.StorageBenchmark{})
		var claims corev1.PersistentVolumeClaimList
		return client.IgnoreNotFound(err) == nil && err != nil && user.List(ctx, &claims, client.InNamespace(team)) == nil && len(claims.Items) == 0
	})
	var events corev1.EventList
	if err := user.List(t.Context(), &events, client.InNamespace(team), client.MatchingFields{"involvedObject.kind": "StorageBenchmark"}); err != nil || len(events.Items) == 0 {
		t.Errorf("the manager has announced nothing: %v", err)
	}
}

// startManager builds the program and starts it as the ServiceAccount of the installation.
func startManager(t *testing.T, metrics, probes string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "manager")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/manager")
	build.Dir = cluster.Root()
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the manager: %v\n%s", err, output)
	}
	log := &bytes.Buffer{}
	program := exec.Command(binary, "--leader-elect", "--runner-image=runner:test", //nolint:noctx // it is stopped by a signal, which is part of the test
		"--metrics-bind-address="+metrics, "--health-probe-bind-address="+probes)
	program.Env = append(os.Environ(), "KUBECONFIG="+writeKubeconfigAs(t, serviceAccount), "POD_NAMESPACE="+namespace)
	program.Stdout, program.Stderr = log, log
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Process.Kill() })
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

// answers is the status code of a GET, 0 if there is no answer.
func answers(ctx context.Context, address string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0
	}
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a self-signed certificate on loopback
	response, err := insecure.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
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
