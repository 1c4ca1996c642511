package integration

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/cli"
)

// plugin runs a command of the plugin in the namespace of the lab.
func (l *lab) plugin(arguments ...string) (code int, said string) {
	l.t.Helper()
	var out bytes.Buffer
	app := &cli.App{In: strings.NewReader(""), Out: &out, Err: &out, Now: time.Now,
		Connect: func(cli.Connection) (*cli.Cluster, error) { return cli.ConnectTo(config, l.namespaces[0], &out) }}
	code = app.Main(l.t.Context(), arguments)
	return code, out.String()
}

// TestPlugin follows a benchmark through its life with the plugin alone: stopped in its second run, continued, and run again.
func TestPlugin(t *testing.T) {
	t.Parallel()
	l := start(t, holdRun("001", "read"))
	g := gomega.NewWithT(t)
	expect := func(want int, command string, words ...string) string {
		t.Helper()
		code, said := l.plugin(strings.Fields(command)...)
		if code != want {
			t.Fatalf("%s: exit code %d instead of %d\n%s", command, code, want, said)
		}
		for _, word := range words {
			g.Expect(said).To(gomega.ContainSubstring(word), command)
		}
		return said
	}
	benchmark := l.submit("bench", small, func(b *v1alpha1.StorageBenchmark) { b.Spec.Repetitions = 2 })
	l.running("read", 1, "001")
	l.eventually("the first run is counted", func(g gomega.Gomega) {
		_, said := l.plugin("list")
		g.Expect(said).To(gomega.MatchRegexp(`bench +- +Running +1/2 +read`))
	})
	expect(0, "show bench", "1 of 2 runs done", "Measured: ", "PhaseRunning: ")
	expect(cli.ExitRefused, "rerun bench", "1 of 2 runs done", "--even-if-running")

	expect(0, "suspend bench", "Kept: the numbers of 1 valid run", "Lost: what run ")
	l.waits(benchmark, v1alpha1.ReasonSuspended, "1 of 2 runs")
	expect(0, "show bench", "Continue it: kubectl storagebench resume bench")
	l.cluster.SetBehaviour(nil)
	expect(0, "resume bench", "continues")
	expect(0, "watch bench --timeout 3m", "Passed")
	old := l.get(benchmark).Status.Experiment

	expect(0, "rerun bench --wait --timeout 3m", "starts over", "Passed")
	current := l.get(benchmark)
	g.Expect(current.Status.Experiment).NotTo(gomega.Equal(old))
	expect(0, "compare bench@"+old+" bench", "A: "+l.namespaces[0]+"/bench, experiment "+old, "too few runs for an interval")
	expect(0, "show bench", "Experiment: "+current.Status.Experiment, "Report: kubectl storagebench report bench")
	l.executedOnce(10) // 4 for each experiment, and 2 of the run that was stopped
}
