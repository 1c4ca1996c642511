package integration

import (
	"crypto/tls"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/metrics"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/test/cluster"
	"github.com/storagebench/storagebench/test/sim"
)

// values returns the metrics of a registry, as NAME{LABELS}, with the count of a histogram as its value.
func values(t *testing.T, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			all[strings.TrimPrefix(family.GetName(), "storagebench_")+"{"+strings.Join(labels, ",")+"}"] =
				metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// TestMetrics: the metrics of a benchmark come and go with it, and a scrape makes no request to the API server.
func TestMetrics(t *testing.T) {
	t.Parallel()
	l := newLab(t, firstAttempt(sim.Script{Outcome: sim.Fail, ExitCode: 1}))
	registry := prometheus.NewRegistry()
	l.metrics = registry
	var requests atomic.Int64
	l.startManagerThrough(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		requests.Add(1)
		return next.RoundTrip(request)
	})
	benchmark := l.submit("shown", small)
	l.finished(benchmark, v1alpha1.VerdictPassed)
	namespace := l.namespaces[0]
	own := "{benchmark=shown,namespace=" + namespace
	l.eventually("the metrics say what has happened", func(g gomega.Gomega) {
		got := values(t, registry)
		for series, want := range map[string]float64{
			"benchmark_verdict" + own + ",verdict=Passed}":          1,
			"benchmarks{reason=Finished}":                           1,
			"runs{outcome=Valid,reason=Measured}":                   1,
			"runs_finished_total{outcome=Valid,reason=Measured}":    1,
			"runs_finished_total{outcome=Invalid,reason=PodFailed}": 1,
			"runs_finished_total{outcome=Invalid,reason=PoolLost}":  0,
			"phase_duration_seconds{kind=fill}":                     1,
			"phase_duration_seconds{kind=measure}":                  1,
			"benchmarks_unlisted{}":                                 0,
		} {
			g.Expect(got).To(gomega.HaveKeyWithValue(series, want))
		}
		g.Expect(got).To(gomega.HaveKeyWithValue("benchmark_last_result_timestamp_seconds"+own+"}", gomega.BeNumerically(">", 1.7e9)))
		g.Expect(got).To(gomega.HaveKeyWithValue(
			"benchmark_median_per_second{benchmark=shown,metric=readOperationsPerSecond,namespace="+namespace+",phase=read,variant=default}",
			gomega.BeNumerically(">", 0)))
	})
	l.eventually("scrapes without a request", func(g gomega.Gomega) {
		before := requests.Load()
		for range 20 {
			g.Expect(values(t, registry)).NotTo(gomega.BeEmpty())
		}
		g.Expect(requests.Load()).To(gomega.Equal(before))
	})
	if requests.Load() < 20 {
		t.Errorf("only %d requests of the manager were counted", requests.Load())
	}
	l.cluster.SetBehaviour(inPhase("read", sim.Script{Hold: true}))
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Annotations = map[string]string{v1alpha1.AnnotationRerun: "1"} })
	l.running("read", 1)
	l.eventually("while another experiment is under way, there is the verdict of the one before", func(g gomega.Gomega) {
		got := values(t, registry)
		g.Expect(got).To(gomega.HaveKeyWithValue("benchmarks{reason=Progressing}", 1.0))
		g.Expect(got).To(gomega.HaveKeyWithValue("benchmark_verdict"+own+",verdict=Passed}", 1.0))
		g.Expect(got).To(gomega.HaveKeyWithValue("benchmark_last_result_timestamp_seconds"+own+"}", gomega.BeNumerically(">", 1.7e9)))
		for series := range got {
			g.Expect(series).NotTo(gomega.HavePrefix("benchmark_median"))
		}
	})
	l.must(l.live.Delete(t.Context(), benchmark))
	l.eventually("its series are gone", func(g gomega.Gomega) {
		for series := range values(t, registry) {
			g.Expect(series).NotTo(gomega.ContainSubstring("benchmark=shown"))
		}
	})
}

// TestAgentMetrics: a disk that is not granted counts as a refusal, and only those who may read metrics see it.
func TestAgentMetrics(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	registry := prometheus.NewRegistry()
	l.metrics = registry
	const node = "node-of-metrics"
	own, err := cluster.Agent(t.Context(), config, node)
	l.must(err)
	startAgent(l, own, node)
	l.must(l.live.Create(t.Context(), &v1alpha1.BenchmarkPool{ObjectMeta: metav1.ObjectMeta{Name: "of-metrics"},
		Spec: v1alpha1.BenchmarkPoolSpec{NodeName: node,
			PoolTemplate: v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/nvme-LAB_M"}}}}}}))
	// ZFS always fails here, so the test writes the refusal.
	l.eventually("the refusal is counted", func(g gomega.Gomega) {
		var pool v1alpha1.BenchmarkPool
		g.Expect(l.live.Get(t.Context(), client.ObjectKey{Name: "of-metrics"}, &pool)).To(gomega.Succeed())
		kstatus.SetStalled(&pool.Status.Conditions, pool.Generation, v1alpha1.ReasonPoolDeviceDenied, "not granted")
		g.Expect(l.live.Status().Update(t.Context(), &pool)).To(gomega.Succeed())
		g.Expect(values(t, registry)).To(gomega.HaveKeyWithValue("agent_refusals_total{node="+node+",reason=DeviceNotAllowed}",
			gomega.BeNumerically(">", 0)))
	})
	if got := values(t, registry); got["agent_hanging{kind=disk,node="+node+"}"] != 0 || len(got) < 5 {
		t.Errorf("the agent shows %v", got)
	}
	code := l.metricsServer()
	token := l.token("prometheus")
	if unknown, stranger := code("x"), code(token); unknown != http.StatusUnauthorized || stranger != http.StatusForbidden {
		t.Errorf("an unknown caller gets %d, and one without the right %d", unknown, stranger)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: l.namespaces[0]},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "storagebench-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: l.namespaces[0], Name: "prometheus"}}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "storagebench-metrics-reader"},
		Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	l.must(client.IgnoreAlreadyExists(l.live.Create(t.Context(), role)))
	l.must(l.live.Create(t.Context(), binding))
	l.eventually("the reader is let in", func(g gomega.Gomega) { g.Expect(code(token)).To(gomega.Equal(http.StatusOK)) })
}

// metricsServer starts the metrics server of an agent. The returned function reads from it with a token.
func (l *lab) metricsServer() (code func(token string) int) {
	l.t.Helper()
	clients, err := rest.HTTPClientFor(config)
	l.must(err)
	served, err := metricsserver.NewServer(metricsserver.Options{BindAddress: "127.0.0.1:0", SecureServing: true,
		FilterProvider: metrics.Access}, config, clients)
	l.must(err)
	l.background("the metrics server", served.Start)
	bound, is := served.(interface{ GetBindAddr() string })
	if !is {
		l.t.Fatalf("%T does not say where it listens", served)
	}
	l.eventually("the metrics server listens", func(g gomega.Gomega) { g.Expect(bound.GetBindAddr()).NotTo(gomega.BeEmpty()) })
	reader := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // its own certificate
	return func(token string) int {
		request, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, "https://"+bound.GetBindAddr()+"/metrics", nil)
		l.must(err)
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := reader.Do(request)
		l.must(err)
		l.must(response.Body.Close())
		return response.StatusCode
	}
}

// token returns the token of a new account in the lab's namespace.
func (l *lab) token(account string) string {
	l.t.Helper()
	l.must(l.live.Create(l.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: l.namespaces[0]}}))
	clients, err := kubernetes.NewForConfig(config)
	l.must(err)
	request, err := clients.CoreV1().ServiceAccounts(l.namespaces[0]).CreateToken(l.t.Context(), account, &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	l.must(err)
	return request.Status.Token
}
