package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
)

// TestSlowestOfAGroup: the slowest node determines the progress of a phase, and other runs do not count.
func TestSlowestOfAGroup(t *testing.T) {
	one := &tracked{benchmark: &v1alpha1.StorageBenchmark{}}
	one.benchmark.Status.Progress = &v1alpha1.ProgressStatus{CurrentRun: "b-0a1b2c3d-001", CurrentPhase: "read"}
	say := func(run, phase string, percent int32) {
		one.say(livePhase{run, phase, time.Time{}, results.Progress{Percent: percent}})
	}
	say("b-0a1b2c3d-001-2-a", "read", 1) // another attempt
	say("b-0a1b2c3d-001-a", "read", 40)
	if live, is := one.phase(); !is || live.Percent != 40 || live.Message != "" {
		t.Errorf("%t %+v", is, live)
	}
	say("b-0a1b2c3d-001-b", "read", 30)
	say("b-0a1b2c3d-001-a", "read", 60)
	live, is := one.phase()
	if !is || live.Percent != 30 || live.run != "b-0a1b2c3d-001" || live.Message != "(the slowest of 2 nodes)" {
		t.Errorf("%t %+v", is, live)
	}
	say("b-0a1b2c3d-001-a", "next", 1)
	if live, is := one.phase(); is {
		t.Errorf("the phase is over: %+v", live)
	}
	say("b-0a1b2c3d-001", "read", 70) // a run alone
	if live, is := one.phase(); !is || live.Percent != 70 {
		t.Errorf("%t %+v", is, live)
	}
}

// TestExtentOfAGroup: the nodes work at the same time, so the estimate counts only the time in which they wait for each other.
func TestExtentOfAGroup(t *testing.T) {
	extent := func(count string) (string, spent) {
		text := "apiVersion: storagebench.dev/v1alpha1\nkind: StorageBenchmark\nmetadata: {name: b}\nspec:\n" +
			"  target: {zfs: {nodes: {matchLabels: {a: b}, count: " + count +
			"}, pool: {vdevs: [{devices: [/dev/disk/by-id/a]}]}, dataset: {size: 1000Mi}}}\n" +
			"  phases: [{name: p, fill: {to: 50%}}]\n"
		manifests, err := readManifests("-", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		known, err := loadSchemas()
		if err != nil {
			t.Fatal(err)
		}
		checked, problems := known.checkBenchmark(t.Context(), manifests[0], others{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		checked.estimateOn(assumedSpeed)
		return checked.extent(), estimateRun(&checked.slots[0])
	}
	alone, once := extent("1")
	text, both := extent("2")
	if strings.Contains(alone, "at once") || !strings.Contains(text, "6 runs (1 variant x 6 repetitions), each on 2 nodes at once") {
		t.Errorf("%s\n%s", alone, text)
	}
	if both.bytes != once.bytes || both.requested != once.requested+runs.StartAllowance {
		t.Errorf("%+v and %+v", once, both)
	}
}
