package runs

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/results"
)

const (
	readRatio    = "readBytesPerApplicationByteMilli"
	writtenRatio = "writtenBytesPerApplicationByteMilli"
)

// sampled is the observation of a pool with two disks, sampled every 2 s. written returns the total bytes written up to a second; each disk
// has half of them.
func sampled(written func(second float64) float64, from, until float64) poolseries.Document {
	d := poolseries.Document{Version: poolseries.Version, StartedAt: moment(from)}
	disk := poolseries.Vdev{Disk: true}
	for second := from; second <= until; second += 2 {
		d.Series.OffsetMilliseconds = append(d.Series.OffsetMilliseconds, int64((second-from)*1000))
		disk.WriteBytes, disk.ReadBytes = append(disk.WriteBytes, int64(written(second)/2)), append(disk.ReadBytes, int64(written(second)))
		disk.ReadOperations, disk.WriteOperations = append(disk.ReadOperations, 0), append(disk.WriteOperations, 0)
	}
	d.Vdevs = []poolseries.Vdev{{TopLevel: true, WriteBytes: disk.WriteBytes, ReadBytes: disk.ReadBytes}, disk, disk}
	return d
}

func moment(second float64) time.Time { return start.Add(time.Duration(second * float64(time.Second))) }

func lasted(spans ...float64) (times []results.Interval) {
	for i := 0; i < len(spans); i += 2 {
		times = append(times, results.Interval{From: moment(spans[i]), To: moment(spans[i+1])})
	}
	return times
}

// TestBytesPerByte: a workload writes 1 MB/s, steadily or in bursts, and the disks write each byte once. The samples are 2 s apart.
func TestBytesPerByte(t *testing.T) {
	clamp := func(second, from, to float64) float64 { return 1e6 * (min(max(second, from), to) - from) }
	inBursts := func(flushes ...float64) func(float64) float64 {
		return func(second float64) (sum float64) {
			for i := 0; i < len(flushes); i += 2 {
				if second >= flushes[i] {
					sum += flushes[i+1] * 1e6
				}
			}
			return sum
		}
	}
	steady := func(second float64) float64 { return clamp(second, 5.5, 15.3) }
	for name, c := range map[string]struct {
		written func(float64) float64
		until   float64
		times   []results.Interval
		bytes   int64
		want    int64 // 0: left out
		within  float64
	}{
		"steady":                     {steady, 20, lasted(5.5, 15.3), 98e5, 1000, 2},
		"the last flush at the end":  {inBursts(10.6, 5.1, 15.2, 4.7), 20, lasted(5.5, 15.3), 98e5, 1000, 0},
		"all of it in that":          {inBursts(9.9, 4.5), 20, lasted(5.5, 10), 45e5, 1000, 0},
		"after a ramp":               {func(s float64) float64 { return clamp(s, 1, 15.3) }, 20, lasted(5.5, 15.3), 98e5, 1000, 2},
		"after a warm-up":            {func(s float64) float64 { return 40*clamp(s, 1, 5) + steady(s) }, 20, lasted(5.5, 15.3), 98e5, 1000, 2},
		"two rounds, apart":          {inBursts(14.9, 9.5, 34.9, 9.5), 40, lasted(5.5, 15, 25.5, 35), 19e6, 1000, 0},
		"two rounds, close":          {inBursts(14.9, 9.5, 24.9, 9.5), 40, lasted(5.5, 15, 15.5, 25), 19e6, 1000, 0},
		"a fill between two rounds":  {inBursts(14.9, 9.5, 20, 300, 34.9, 9.5), 40, lasted(5.5, 15, 25.5, 35), 19e6, 1000, 0},
		"no sample after the end":    {steady, 14, lasted(5.5, 15.3), 98e5, 0, 0},
		"no sample before the start": {steady, 20, lasted(-0.5, 15.3), 98e5, 0, 0},
		"a sample in the last 0.1 s": {steady, 20, lasted(6.1, 8.1), 2e6, 0, 0},
		"the workload tells none":    {steady, 20, lasted(5.5, 15.3), 0, 0, 0},
	} {
		metrics, phase := map[string]int64{}, results.PhaseDocument{Measured: c.times, Metrics: map[string]int64{"writtenBytes": c.bytes}}
		missing := bytesPerByte(metrics, sampled(c.written, 0, c.until), phase)
		got, known := metrics[writtenRatio]
		if known != (c.want > 0) || math.Abs(float64(got-c.want)) > c.within && known {
			t.Errorf("%s: %d, known: %v, not %d", name, got, known, c.want)
		}
		if omits := c.want == 0 && c.bytes > 0; (missing != "") != omits {
			t.Errorf("%s: it omits %q", name, missing)
		}
		if _, known := metrics[readRatio]; known {
			t.Errorf("%s: a workload that reads nothing has %v", name, metrics)
		}
	}
	for name, times := range map[string][]results.Interval{"longer": lasted(5.5, 15.3), "no sample within": lasted(6.1, 7.9)} {
		written := clamp(30, times[0].From.Sub(start).Seconds(), times[0].To.Sub(start).Seconds())
		begun := inBursts(times[0].From.Sub(start).Seconds()+0.1, written/2e6, times[0].To.Sub(start).Seconds(), written/2e6)
		fill := results.PhaseDocument{Kind: results.KindFill, Measured: times, Metrics: map[string]int64{"writtenBytes": int64(written)}}
		metrics := map[string]int64{}
		if missing := bytesPerByte(metrics, sampled(begun, 0, 20), fill); missing != "" || metrics[writtenRatio] != 1000 {
			t.Errorf("a fill, %s: %v, it omits %q", name, metrics, missing)
		}
	}
	late := sampled(steady, 0, 14)
	late.Series.OffsetMilliseconds = append(late.Series.OffsetMilliseconds, 25_400) // 10.1 s after the end
	for i := range late.Vdevs {
		late.Vdevs[i].WriteBytes = append(late.Vdevs[i].WriteBytes, 49e5)
	}
	phase := results.PhaseDocument{Measured: lasted(5.5, 15.3), Metrics: map[string]int64{"writtenBytes": 98e5}}
	if metrics := map[string]int64{}; bytesPerByte(metrics, late, phase) == "" || len(metrics) > 0 {
		t.Errorf("a sample of much later: %v", metrics)
	}
}

// TestBytesBeside: beside an operation, the disks' bytes are not related to the workload. Without an operation they are.
func TestBytesBeside(t *testing.T) {
	scrubbed := sampled(func(second float64) float64 { return 1e6 * second }, 0, 20)
	for _, workloads := range [][]string{{""}, {"", "wal"}, {"a", "b"}} {
		for beside, want := range map[bool]map[string]int64{true: {}, false: {readRatio: 4000, writtenRatio: 2000}} {
			document := results.PhaseDocument{Outcome: results.OutcomeValid, Measured: lasted(4, 14), Metrics: map[string]int64{
				"readBytes": 5e6, "writtenBytes": 5e6, "a.readBytes": 2e6, "b.readBytes": 3e6, "a.writtenBytes": 5e6,
				"a.durationNanoseconds": 10e9, "b.durationNanoseconds": 10e9}}
			metrics := map[string]int64{}
			joinBytes(metrics, scrubbed, &document, workloads, beside)
			if diff := cmp.Diff(want, metrics); diff != "" {
				t.Errorf("%q, beside: %v (-want +got)\n%s", workloads, beside, diff)
			}
			if len(document.Omitted) > 0 {
				t.Errorf("%q, beside: %v: it omits %q", workloads, beside, document.Omitted)
			}
		}
	}
}

// TestJoinedBytesBeside: a phase with a scrub beside it stores the metrics of the disks, but does not relate them to the workload.
func TestJoinedBytesBeside(t *testing.T) {
	observed := &v1alpha1.PoolOperation{}
	var err error
	if observed.Status.Data, observed.Status.DataDigest, err = sampled(func(s float64) float64 { return 1e6 * s }, 0, 20).Pack(); err != nil {
		t.Fatal(err)
	}
	observed.Status.Outcome = v1alpha1.OutcomeCancelled
	for _, beside := range []bool{false, true} {
		run := fillRun()
		run.Spec.Target = v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{}}
		run.Spec.Phases[0].Fill, run.Spec.Phases[0].Measure = nil, &v1alpha1.MeasurePhase{
			Workload: v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{}}}
		if beside {
			run.Spec.Phases[0].Measure.Operate = &v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}
		}
		received := &results.PhaseDocument{Version: results.PhaseVersion, Run: results.RunIdentity{Namespace: "lab", Name: "r", UID: "u"},
			Phase: "fill", Kind: results.KindMeasure, Outcome: results.OutcomeValid, StartedAt: moment(4), FinishedAt: moment(14),
			Metrics: map[string]int64{"readBytes": 5e6, "readOperations": 10, "writeOperations": 10, "transactions": 10}}
		joined, err := Joined(State{Run: run, Phases: []PhaseState{{Received: received,
			Companions: map[Companion]*v1alpha1.PoolOperation{Observation: observed}}}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		metrics := joined.Document.Metrics
		for _, name := range []string{readRatio, "diskReadsPerReadMilli", "diskWritesPerWriteMilli", "diskReadBytesPerTransaction",
			"diskWrittenBytesPerTransaction"} {
			if _, known := metrics[name]; known == beside {
				t.Errorf("beside: %v: %s is known: %v", beside, name, known)
			}
		}
		if metrics["diskReadBytesPerSecond"] != 2e6 {
			t.Errorf("beside: %v: %v", beside, metrics)
		}
	}
}
