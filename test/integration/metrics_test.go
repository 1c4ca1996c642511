package integration

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/sim"
)

// values are the metrics of a registry, as NAME{LABELS}, with the count of a histogram as its value.
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

// TestMetrics: what the manager tells Prometheus comes with a benchmark and goes with it, and a scrape makes no request.
func TestMetrics(t *testing.T) {
	t.Parallel()
	l := newLab(t, firstAttempt(sim.Script{Outcome: sim.Fail, ExitCode: 1}))
	registry := prometheus.NewRegistry()
	l.metrics = registry
	var requests atomic.Int64
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			requests.Add(1)
			return next.RoundTrip(request)
		})
	})
	l.startManager(counted)
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
	l.must(l.live.Delete(t.Context(), benchmark))
	l.eventually("its series are gone", func(g gomega.Gomega) {
		for series := range values(t, registry) {
			g.Expect(series).NotTo(gomega.ContainSubstring("benchmark=shown"))
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
