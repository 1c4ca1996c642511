package results

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// member returns a run of a group of this size, with one phase.
func member(group string, index, size int32, metrics map[string]int64) RunResult {
	began, ended := testStart, testStart.Add(time.Minute)
	return RunResult{
		Name: group + "-" + string('a'+index), Variant: "default", Repetition: 1, Attempt: 1, Valid: true,
		NodeName: "n" + string('1'+index), Group: &RunGroup{Name: group, Index: index, Size: size},
		Phases: []RunPhase{{Name: "read", Kind: KindMeasure, Outcome: OutcomeValid, Metrics: metrics, StartedAt: &began, FinishedAt: &ended}},
	}
}

func TestJoinTakesTheSumOrTheWorst(t *testing.T) {
	a := map[string]int64{"readBytesPerSecond": 100, "readLatencyP99Nanoseconds": 10, "cacheHitPartsPerMillion": 1,
		"layoutScorePartsPerMillion": 70,
		"readOperations":             5, "durationNanoseconds": 60, "rounds": 3, "ioErrors": 0, "walBytes": 9,
		"shareOver1MillisecondPartsPerMillion": 4,
		"slowestRegionReadBytesPerSecond":      8, "fastestRegionReadBytesPerSecond": 30}
	b := map[string]int64{"readBytesPerSecond": 50, "readLatencyP99Nanoseconds": 30, "cacheHitPartsPerMillion": 2,
		"layoutScorePartsPerMillion": 60,
		"readOperations":             6, "durationNanoseconds": 61, "rounds": 4, "ioErrors": 1, "shareOver1MillisecondPartsPerMillion": 3,
		"slowestRegionReadBytesPerSecond": 9, "fastestRegionReadBytesPerSecond": 20, "unheardOf": 1}
	groups := Join([]RunResult{member("g", 1, 2, b), member("g", 0, 2, a)})
	want := []GroupResult{{Name: "g", Variant: "default", Repetition: 1, Attempt: 1, Nodes: []string{"n1", "n2"}, Valid: true,
		Phases: []GroupPhase{{Name: "read", Kind: KindMeasure, Metrics: map[string]int64{
			"readBytesPerSecond": 150, "readLatencyP99Nanoseconds": 30, "cacheHitPartsPerMillion": 2, "layoutScorePartsPerMillion": 60,
			"readOperations": 11, "durationNanoseconds": 61, "rounds": 4, "ioErrors": 1, "shareOver1MillisecondPartsPerMillion": 4,
			"slowestRegionReadBytesPerSecond": 8, "fastestRegionReadBytesPerSecond": 30}}}}}
	if diff := cmp.Diff(want, groups); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEveryMetricCanBeJoined: the rule of its unit also combines a new metric, and must be a sensible one for it.
func TestEveryMetricCanBeJoined(t *testing.T) {
	values := []int64{1, 4}
	for _, metric := range Metrics() {
		joined, across := metric.Across().join(values), metric.Across()
		want := map[Across]int64{AcrossSum: 5, AcrossMax: 4, AcrossMin: 1, AcrossMean: 3}[across]
		switch {
		case joined != want:
			t.Errorf("%s: %s of %v is %d", metric.Name, across, values, joined)
		case strings.HasSuffix(metric.Name, "LatencyP99Nanoseconds") && across != AcrossMax:
			t.Errorf("%s: percentiles of nodes cannot be joined by %s", metric.Name, across)
		case metric.Unit == UnitPartsPerMillion && across == AcrossSum:
			t.Errorf("%s: shares cannot be added", metric.Name)
		}
	}
}

func TestGroupIsAsGoodAsItsWorstRun(t *testing.T) {
	fine := map[string]int64{"readBytes": 1}
	spoil := func(run RunResult, reason, message string) RunResult {
		run.Valid, run.Reason, run.Message = false, reason, message
		return run
	}
	for _, test := range []struct {
		name, reason, message string
		runs                  []RunResult
	}{
		{"all are valid", "", "", []RunResult{member("g", 0, 2, fine), member("g", 1, 2, fine)}},
		{"one is missing", "Unfinished", "only 1 of 2 nodes have a run", []RunResult{member("g", 1, 2, fine)}},
		{"the cause, not its consequence", "PodLost", "on node n2: gone",
			[]RunResult{spoil(member("g", 0, 2, fine), ReasonPeerInvalid, "the other"), spoil(member("g", 1, 2, fine), "PodLost", "gone")}},
		{"the first cause", "PodLost", "on node n1: gone",
			[]RunResult{spoil(member("g", 0, 2, fine), "PodLost", "gone"), spoil(member("g", 1, 2, fine), ReasonPeerInvalid, "the other")}},
	} {
		group := Join(test.runs)[0]
		if group.Valid != (test.reason == "") || group.Reason != test.reason || group.Message != test.message {
			t.Errorf("%s: %t %s: %s", test.name, group.Valid, group.Reason, group.Message)
		}
	}
}

// TestGroupMeasuresTogether: the rates of two partly overlapping minutes do not add up.
func TestGroupMeasuresTogether(t *testing.T) {
	for _, test := range []struct {
		name       string
		began, end time.Duration // of the second node, relative to the first
		kind, says string
	}{
		{"in step", 0, 0, KindMeasure, ""},
		{"a bit late", 5 * time.Second, 5 * time.Second, KindMeasure, ""},
		{"late", 7 * time.Second, 7 * time.Second, KindMeasure, "together for 53s only, and the longest took 1m0s"},
		{"one after the other", 6 * time.Minute, 6 * time.Minute, KindMeasure, "together for 0s only"},
		{"a bit slower", 0, 6 * time.Second, KindMeasure, ""},
		{"alone at the end", 0, time.Minute, KindMeasure, "together for 1m0s only, and the longest took 2m0s"},
		{"alone at the beginning", -8 * time.Second, 0, KindMeasure, "together for 1m0s only, and the longest took 1m8s"},
		{"early", -7 * time.Second, -7 * time.Second, KindMeasure, "together for 53s only"},
		{"no measure phase", time.Hour, time.Hour, KindFill, ""},
	} {
		first, second := member("g", 0, 2, map[string]int64{"readBytes": 1}), member("g", 1, 2, map[string]int64{"readBytes": 1})
		began, ended := testStart.Add(test.began), testStart.Add(time.Minute+test.end)
		second.Phases[0].StartedAt, second.Phases[0].FinishedAt = &began, &ended
		first.Phases[0].Kind, second.Phases[0].Kind = test.kind, test.kind
		group := Join([]RunResult{first, second})[0]
		if group.Valid != (test.says == "") || !strings.Contains(group.Message, test.says) || !group.Valid && group.Reason != ReasonNotTogether {
			t.Errorf("%s: %t %s: %s", test.name, group.Valid, group.Reason, group.Message)
		}
	}
}

// TestShortPhasesMeasureTogether: pods that begin or end some tenths of a second apart do not spoil a phase of a few seconds.
func TestShortPhasesMeasureTogether(t *testing.T) {
	for _, test := range []struct {
		long, began, ended time.Duration // of the first node; of the second, relative to it
		want               bool
	}{
		{5 * time.Second, 300 * time.Millisecond, 300 * time.Millisecond, true},
		{5 * time.Second, 200 * time.Millisecond, 700 * time.Millisecond, true},
		{3 * time.Second, 0, 900 * time.Millisecond, true},
		{3 * time.Second, 0, 1100 * time.Millisecond, false},
		{5 * time.Second, 600 * time.Millisecond, 600 * time.Millisecond, false},
	} {
		phase := func(began, ended time.Duration) RunPhase {
			from, to := testStart.Add(began), testStart.Add(ended)
			return RunPhase{Kind: KindMeasure, StartedAt: &from, FinishedAt: &to}
		}
		if words := apart([]RunPhase{phase(0, test.long), phase(test.began, test.long+test.ended)}); (words == "") != test.want {
			t.Errorf("%+v: %q", test, words)
		}
	}
}

func TestSummaryCountsAGroupOnce(t *testing.T) {
	runs := []RunResult{}
	for repetition := range int32(3) {
		for index := range int32(2) {
			run := member("g"+string('0'+repetition), index, 2, map[string]int64{"readBytesPerSecond": int64(10*(repetition+1) + index)})
			run.Index, run.Repetition = repetition, repetition+1
			runs = append(runs, run)
		}
	}
	runs[5].Valid = false
	metric := Summarise(runs)[0].Phases[0].Metrics[0]
	if metric.Runs != 2 || metric.Min != 21 || metric.Max != 41 {
		t.Errorf("%+v: a group that is Invalid on one node counts, or nodes are counted by themselves", metric)
	}
}

func TestStragglers(t *testing.T) {
	for _, test := range []struct {
		name     string
		lag, end time.Duration
		want     []string
	}{
		{"in step", 1900 * time.Millisecond, 10 * time.Second, nil},
		{"began late", 2100 * time.Millisecond, 0, []string{"node n2 began 2.1s after the first node"}},
		{"ended late", 0, 11 * time.Second, []string{"node n2 ended 11s after the first node"}},
		{"both", 5 * time.Second, 20 * time.Second, []string{"node n2 began 5s and ended 20s after the first node"}},
		{"ended first", 0, -30 * time.Second, []string{"node n1 ended 30s after the first node"}},
	} {
		first, second := member("g", 0, 2, map[string]int64{MetricStartLag: 0}),
			member("g", 1, 2, map[string]int64{MetricStartLag: int64(test.lag)})
		late := second.Phases[0].FinishedAt.Add(test.end)
		second.Phases[0].FinishedAt = &late
		if diff := cmp.Diff(test.want, Join([]RunResult{first, second})[0].Phases[0].Stragglers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
