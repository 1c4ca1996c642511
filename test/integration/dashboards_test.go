package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/test/cluster"
	"github.com/storagebench/storagebench/test/sim"
)

// sampled is one series of an answer.
type sampled struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

func (s sampled) number() float64 {
	text, _ := s.Value[1].(string)
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return number
}

// server is a Prometheus that scrapes some registries, with the rules of the chart.
type server struct{ address string }

func startPrometheus(l *lab, registries ...*prometheus.Registry) server {
	l.t.Helper()
	program, folder := cluster.Prometheus(l.t, "prometheus"), l.t.TempDir()
	var targets []string
	for _, registry := range registries {
		program := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
		l.t.Cleanup(program.Close)
		targets = append(targets, strings.TrimPrefix(program.URL, "http://"))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	l.must(err)
	s := server{listener.Addr().String()}
	l.must(listener.Close())
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{chartFile("rules.yaml")},
		"scrape_configs": []any{map[string]any{"job_name": "storagebench", "honor_labels": true,
			"static_configs": []any{map[string]any{"targets": targets}}}},
	})
	l.must(err)
	path := filepath.Join(folder, "prometheus.yaml")
	l.must(os.WriteFile(path, config, 0o600))
	l.background("prometheus", func(ctx context.Context) error {
		command := exec.CommandContext(ctx, program, "--config.file="+path, "--storage.tsdb.path="+filepath.Join(folder, "data"),
			"--web.listen-address="+s.address, "--log.level=warn")
		output, err := command.CombinedOutput()
		if ctx.Err() == nil {
			err = fmt.Errorf("%w: %s", err, output)
		} else { // it was stopped
			err = nil
		}
		return err
	})
	return s
}

func chartFile(name ...string) string {
	return filepath.Join(append([]string{cluster.Root(), "charts", "storagebench", "files"}, name...)...)
}

// ask asks the API of Prometheus.
func (s server) ask(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/api/v1/"+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Status != "success" {
		return fmt.Errorf("%s: %s, %s, %w", path, answer.Status, answer.Error, err)
	}
	return nil
}

func (s server) query(ctx context.Context, expression string) ([]sampled, error) {
	var answer struct{ Result []sampled }
	err := s.ask(ctx, "query?query="+url.QueryEscape(expression), &answer)
	return answer.Result, err
}

// expressions returns the queries of the panels and variables of all dashboards, by dashboard and title, for one benchmark.
func expressions(t *testing.T, namespace, benchmark string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(chartFile("dashboards", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v: no dashboards", err)
	}
	all := map[string]string{}
	for _, path := range paths {
		var dashboard struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &dashboard); err != nil {
			t.Fatal(err)
		}
		for _, panel := range dashboard.Panels {
			if len(panel.Targets) == 0 {
				t.Errorf("%s: the panel %s asks nothing", path, panel.Title)
			}
			for _, target := range panel.Targets {
				all[strings.TrimSuffix(filepath.Base(path), ".json")+": "+panel.Title] =
					strings.NewReplacer("$namespace", namespace, "$benchmark", benchmark).Replace(target.Expr)
			}
		}
	}
	return all
}

// TestPanelsAndAlerts: with a fleet that has everything, a real Prometheus has numbers for every panel, and the alerts find the problems in
// it.
func TestPanelsAndAlerts(t *testing.T) {
	t.Parallel()
	cluster.Prometheus(t, "prometheus") // before anything else is started
	const node = "node-of-panels"
	l := newLab(t, nil)
	manager, agent := prometheus.NewRegistry(), prometheus.NewRegistry()
	l.metrics = manager
	l.startManager(config)
	l.metrics = agent
	own, err := cluster.Agent(t.Context(), config, node)
	l.must(err)
	startAgent(l, own, node)
	s := startPrometheus(l, manager, agent)
	fleet(l, s, node)

	all := expressions(t, l.namespaces[0], "bad")
	if len(all) < 25 {
		t.Errorf("only %d panels", len(all))
	}
	for title, other := range map[string]string{"benchmark: Time to go": "held", "benchmark: Stalled": "wrong"} {
		all[title] = strings.ReplaceAll(all[title], `"bad"`, `"`+other+`"`)
	}
	l.eventually("every panel has numbers", func(g gomega.Gomega) {
		var without []string
		for title, expression := range all {
			found, err := s.query(t.Context(), expression)
			if err != nil || len(found) == 0 || slices.ContainsFunc(found, func(one sampled) bool { return math.IsNaN(one.number()) }) {
				without = append(without, fmt.Sprintf("%s: %s: %v %v", title, expression, found, err))
			}
		}
		g.Expect(without).To(gomega.BeEmpty())
	})
	t.Logf("%d panels have numbers", len(all))
	l.says(s, all["fleet: Failed"], "benchmark", "bad")
	l.says(s, all["fleet: Stalled"], "reason", "GateInvalid")
	l.says(s, all["fleet: Queues"], "node", l.node)
	l.says(s, all["benchmark: Last verdict"], "verdict", "Failed")
	l.says(s, all["benchmark: Latencies"], "metric", "readLatencyP99Nanoseconds")
	l.says(s, all["pools: Pools that are not healthy"], "health", "DEGRADED")
	l.says(s, all["pools: Operations that ended"], "outcome", "Succeeded")
	l.says(s, all["pools: Disks"], "state", "FAULTED")
	l.alerts(s)
}

// says checks that an answer has a series with a label.
func (l *lab) says(s server, expression, label, want string) {
	l.t.Helper()
	found, err := s.query(l.t.Context(), expression)
	l.must(err)
	if !slices.ContainsFunc(found, func(one sampled) bool { return one.Metric[label] == want }) {
		l.t.Errorf("%s finds nothing with %s=%s: %v", expression, label, want, found)
	}
}

// alerts checks that Prometheus evaluates all rules, and which of them find something.
func (l *lab) alerts(s server) {
	l.t.Helper()
	var answer struct {
		Groups []struct {
			Rules []struct{ Name, Query, Health, LastError, State string }
		}
	}
	finds := map[string]bool{"StorageBenchmarkFailed": true, "StorageBenchmarkStuck": true, "StorageBenchmarkTeardownStuck": false,
		"StorageBenchmarkQueueLong": false, "StorageBenchmarkPoolDegraded": true, "StorageBenchmarkAgentSilent": true,
		"StorageBenchmarkHanging": true, "StorageBenchmarkManagerSilent": false}
	l.eventually("all rules are evaluated", func(g gomega.Gomega) {
		g.Expect(s.ask(l.t.Context(), "rules", &answer)).To(gomega.Succeed())
		g.Expect(answer.Groups).To(gomega.HaveLen(1))
		g.Expect(answer.Groups[0].Rules).To(gomega.HaveLen(len(finds)))
		for _, rule := range answer.Groups[0].Rules {
			want, known := finds[rule.Name]
			g.Expect(known).To(gomega.BeTrue(), rule.Name)
			g.Expect(rule.Health).To(gomega.Equal("ok"), "%s: %s", rule.Name, rule.LastError)
			g.Expect(rule.State != "inactive").To(gomega.Equal(want), "%s: %s", rule.Name, rule.State)
		}
	})
}

// fleet makes the objects that the dashboards show: verdicts, a stalled, a running and a waiting benchmark, pools and operations.
func fleet(l *lab, s server, node string) {
	l.t.Helper()
	failing := small + "gates: [{name: never, expression: \"phase('read').readOperationsPerSecond > 1e12\"}]\n"
	l.eventually("Prometheus reads from both before anything is counted", func(g gomega.Gomega) {
		for _, counter := range []string{"storagebench_runs_finished_total", "storagebench_agent_refusals_total"} {
			found, err := s.query(l.t.Context(), counter)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(found).NotTo(gomega.BeEmpty())
		}
	})
	l.finished(l.submit("good", small), v1alpha1.VerdictPassed)
	l.finished(l.submit("bad", failing), v1alpha1.VerdictFailed)
	l.submit("wrong", small+"gates: [{name: wrong, expression: \"phase('read').bogus > 1.0\"}]\n")
	l.cluster.SetBehaviour(inPhase("read", sim.Script{Hold: true}))
	l.submit("held", strings.Replace(small, "repetitions: 1", "repetitions: 2", 1))
	l.running("read", 1, "-000")
	l.eventually("the first run has taken a second, for the estimate is in seconds", func(g gomega.Gomega) {
		runs := l.runs()
		g.Expect(time.Since(runs[slices.IndexFunc(runs, func(run v1alpha1.BenchmarkRun) bool {
			return run.Spec.Benchmark == "held"
		})].CreationTimestamp.Time)).To(gomega.BeNumerically(">", 3*time.Second))
	})
	l.cluster.Release(nil)
	l.running("read", 1, "-001")
	l.submit("waits", small)
	pool := func(name, node string, change func(*v1alpha1.BenchmarkPoolStatus)) {
		object := &v1alpha1.BenchmarkPool{ObjectMeta: metav1.ObjectMeta{Name: l.namespaces[0] + name}, Spec: v1alpha1.BenchmarkPoolSpec{NodeName: node,
			PoolTemplate: v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/nvme-LAB_P"}}}}}}
		l.must(l.live.Create(l.t.Context(), object))
		l.rewrite(object, func() { change(&object.Status) })
	}
	pool("-degraded", l.node, func(status *v1alpha1.BenchmarkPoolStatus) {
		status.ObservedGeneration, status.Health, status.SizeBytes, status.AllocatedBytes = 1, "DEGRADED", 100, 40
	})
	pool("-unseen", l.node, func(*v1alpha1.BenchmarkPoolStatus) {})
	pool("-refused", node, func(status *v1alpha1.BenchmarkPoolStatus) {
		status.Vdevs = []v1alpha1.VdevStatus{{Name: "a", State: "FAULTED", ReadErrors: 3}}
		kstatus.SetStalled(&status.Conditions, 1, v1alpha1.ReasonPoolDeviceDenied, "not granted")
	})
	operation := &v1alpha1.PoolOperation{ObjectMeta: metav1.ObjectMeta{Name: l.namespaces[0] + "-scrub"}, Spec: v1alpha1.PoolOperationSpec{
		NodeName: l.node, Pool: l.namespaces[0] + "-degraded", Action: v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}}}
	l.must(l.live.Create(l.t.Context(), operation))
	l.rewrite(operation, func() { operation.Status.Outcome = v1alpha1.OutcomeSucceeded })
}

// rewrite changes the status of an object, even if others change it at the same time.
func (l *lab) rewrite(object client.Object, change func()) {
	l.t.Helper()
	l.eventually("the status is written", func(g gomega.Gomega) {
		g.Expect(l.live.Get(l.t.Context(), client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
		change()
		g.Expect(l.live.Status().Update(l.t.Context(), object)).To(gomega.Succeed())
	})
}
