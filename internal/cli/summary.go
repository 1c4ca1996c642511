package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/results"
)

// outcome is how a benchmark ended, in the cluster or locally.
type outcome struct {
	name, verdict, sentence string
	gates                   []results.GateResult
	variants                []results.VariantResult
	// omitted is the number of entries that are only in the results.
	omitted int32
}

// statusOutcome returns the outcome from the status.
func statusOutcome(t *tracked) outcome {
	status := &t.benchmark.Status
	end := outcome{name: t.key.String(), verdict: string(status.Verdict), sentence: t.passedMessage(), omitted: status.SummaryOmitted}
	for _, gate := range status.Gates {
		end.gates = append(end.gates, results.GateResult{Name: string(gate.Name), Verdict: string(gate.Verdict), Reason: gate.Reason,
			Message: gate.Message})
	}
	for _, entry := range status.Summary {
		variant := variantOf(&end, entry.Variant)
		variant.Phases = append(variant.Phases, results.PhaseResult{Name: string(entry.Phase), Metrics: metricsOf(entry)})
	}
	return end
}

func variantOf(end *outcome, name string) *results.VariantResult {
	for i := range end.variants {
		if end.variants[i].Name == name {
			return &end.variants[i]
		}
	}
	end.variants = append(end.variants, results.VariantResult{Name: name})
	return &end.variants[len(end.variants)-1]
}

func metricsOf(entry v1alpha1.PhaseSummary) []results.MetricResult {
	var metrics []results.MetricResult
	for _, metric := range entry.Metrics {
		known, _ := results.LookupMetric(metric.Name)
		metrics = append(metrics, results.MetricResult{Name: metric.Name, Unit: known.Unit, Better: string(known.Better),
			Median: metric.Median, Min: metric.Min, Max: metric.Max, Runs: metric.Runs})
	}
	return metrics
}

// experimentOutcome returns the outcome from the results.
func experimentOutcome(e results.Experiment) outcome {
	return outcome{name: e.Benchmark.Namespace + "/" + e.Benchmark.Name, verdict: e.Verdict, sentence: e.Message, gates: e.Gates,
		variants: e.Variants}
}

// print writes the verdict with its sentence, then the gates and the primary metrics.
func (o outcome) print(a *App) {
	out, verdict := a.Out, tint(clean(o.verdict), moodOf(o.verdict), a.Colour && a.onTerminal())
	_, _ = fmt.Fprintf(out, "\n%s: %s: %s\n", clean(o.name), verdict, clean(o.sentence))
	o.printDetails(out)
}

// printDetails writes the gates and the primary metrics.
func (o outcome) printDetails(out io.Writer) {
	if len(o.gates) > 0 {
		table := newTable(out, "GATE", "VERDICT", "REASON", "MESSAGE")
		for _, gate := range o.gates {
			table.row(gate.Name, gate.Verdict, gate.Reason, gate.Message)
		}
		table.end()
	}
	o.printMetrics(out)
	if o.omitted > 0 {
		_, _ = fmt.Fprintf(out, "%d more entries are in the report.\n", o.omitted)
	}
}

func (o outcome) printMetrics(out io.Writer) {
	var table *table
	for _, variant := range o.variants {
		for _, phase := range variant.Phases {
			for _, metric := range phase.Metrics {
				if !results.IsPrimary(metric.Name) {
					continue
				}
				if table == nil {
					table = newTable(out, "VARIANT", "PHASE", "METRIC", "MEDIAN (MIN..MAX, RUNS)")
				}
				table.row(variant.Name, phase.Name, metric.Name, report.Figures(metric))
			}
		}
	}
	if table != nil {
		table.end()
	}
}

// table prints rows with aligned columns.
type table struct{ writer *tabwriter.Writer }

// newTable begins a table below an empty line.
func newTable(out io.Writer, head ...string) *table {
	_, _ = fmt.Fprintln(out)
	return newTableHere(out, head...)
}

func newTableHere(out io.Writer, head ...string) *table {
	t := &table{tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)}
	t.row(head...)
	return t
}

func (t *table) row(cells ...string) {
	for i, cell := range cells {
		if i > 0 {
			_, _ = fmt.Fprint(t.writer, "\t")
		}
		_, _ = fmt.Fprint(t.writer, clean(cell))
	}
	_, _ = fmt.Fprintln(t.writer)
}

func (t *table) end() { _ = t.writer.Flush() }
