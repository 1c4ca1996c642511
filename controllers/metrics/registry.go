// Package metrics defines the Prometheus metrics of the manager and the agent. docs/reference/prometheus.md lists them. The numbers come
// from objects in the caches, either at a scrape or when a watch shows a change: a scrape makes no requests.
//
// The number of series is bounded. Where tenants or nodes choose the values of labels, only some of them get series of their own, and the
// rest is added up in one.
package metrics

import (
	"cmp"
	"maps"
	"runtime"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// The types of metrics.
const (
	typeGauge     = "gauge"
	typeCounter   = "counter"
	typeHistogram = "histogram"
)

// Metric is a metric of one of the programs, or of both.
type Metric struct {
	Name, Type, Help string
	Labels           []string
	desc             *prometheus.Desc
}

var registry []Metric

// All returns the metrics, sorted by name.
func All() []Metric {
	return slices.SortedFunc(slices.Values(registry), func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
}

func define(kind, name, help string, labels ...string) Metric {
	metric := Metric{Name: "storagebench_" + name, Type: kind, Help: help, Labels: labels}
	metric.desc = prometheus.NewDesc(metric.Name, help, labels, nil)
	registry = append(registry, metric)
	return metric
}

func (m Metric) gauge(value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, value, labels...)
}

func (m Metric) counter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

var buildInfo = define(typeGauge, "build_info",
	"1, for the version of a program. The node is that of the agent, and empty for the manager.",
	"program", "node", "version", "goversion")

// build registers the metric for the version of the running program. The node is empty for the manager.
func build(into prometheus.Registerer, program, node, version string) error {
	labels := prometheus.Labels{"program": program, "node": node, "version": version, "goversion": runtime.Version()}
	return into.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: buildInfo.Name, Help: buildInfo.Help, ConstLabels: labels},
		func() float64 { return 1 }))
}

const (
	// maxSeries limits the series of a metric that is not labelled by benchmark.
	maxSeries = 200
	// other is the label of the series that holds the sum of the rest.
	other = "Other"
)

// tally adds up numbers by at most two labels.
type tally map[[2]string]float64

// show sends the largest numbers, and the sum of the rest.
func (t tally) show(out chan<- prometheus.Metric, metric Metric) {
	t.showFirst(out, metric, func([2]string) bool { return false })
}

// showFirst is like show, but some keys come before the largest numbers.
func (t tally) showFirst(out chan<- prometheus.Metric, metric Metric, first func([2]string) bool) {
	rank := map[bool]int{true: 0, false: 1}
	keys := slices.SortedFunc(maps.Keys(t), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(rank[first(a)], rank[first(b)]), cmp.Compare(t[b], t[a]), cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	rest := 0.0
	for i, key := range keys {
		if len(keys) > maxSeries && i >= maxSeries-1 {
			rest += t[key]
			continue
		}
		out <- metric.gauge(t[key], key[:len(metric.Labels)]...)
	}
	if len(keys) > maxSeries {
		out <- metric.gauge(rest, []string{other, other}[:len(metric.Labels)]...)
	}
}
