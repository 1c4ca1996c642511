//go:build linux

package engine

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/results"
)

func streamsPhase(streams, regions int32) v1alpha1.Phase {
	phase := scanPhase(regions)
	phase.Measure.Workload.Scan.Streams = ptr.To(streams)
	return phase
}

// TestKnownStreams: if each read takes a known time, several streams together have the rate of one stream times their number, and each
// region takes as long as with one stream. A busy machine makes reads longer, which changes all figures alike.
func TestKnownStreams(t *testing.T) {
	const took, block, regions = 20 * time.Millisecond, 128 << 10, 8
	b := newBench(t)
	b.executor.judge = func(string, int64, observe.Delta) (bool, string) { return true, "not judged here" }
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("32Mi")}})
	b.slowFiles("r", took, 0, 0)                                     // one stream is fio's
	b.executor.delay = func(string) { _ = pause(t.Context(), took) } // several are our own
	for _, streams := range []int32{1, 2, 4} {
		document := b.execute(streamsPhase(streams, regions))
		for range 2 { // a stream may be held up
			if document.Reason == results.ReasonNotTogether {
				document = b.execute(streamsPhase(streams, regions))
			}
		}
		var details Details
		if err := json.Unmarshal(document.Raw, &details); err != nil || document.Outcome != results.OutcomeValid {
			t.Fatalf("%d streams: %s %s: %v", streams, document.Reason, document.Message, err)
		}
		m := document.Metrics
		if rate, most := float64(m["readBytesPerSecond"]), float64(streams)*block/took.Seconds(); rate > 1.02*most || rate < 0.3*most {
			t.Errorf("%d streams read %.0f bytes a second, want at most %.0f", streams, rate, most)
		}
		rateNear(t, document, "readOperationsPerSecond", "readLatencyMeanNanoseconds", int(streams))
		if product := float64(m["readBytesPerSecond"]) * float64(m["durationNanoseconds"]) / 1e9 / float64(m["readBytes"]); m["readBytes"] != 32<<20 ||
			product < 0.999 || product > 1.001 {
			t.Errorf("%d streams: the rate times the time is %.4f of what was read: %v", streams, product, m)
		}
		if len(details.Regions) != regions || document.Distributions["scanRegionTime"].Count() != regions {
			t.Fatalf("%d streams: regions %+v", streams, details.Regions)
		}
		var all time.Duration
		by := map[int]int{}
		for i, one := range details.Regions {
			all += time.Duration(one.Nanoseconds)
			by[one.Stream]++
			if one.Index != i || one.Bytes != 4<<20 || time.Duration(one.Nanoseconds) < 32*took {
				t.Errorf("%d streams: region %d is %+v, and was to take %s", streams, i, one, 32*took)
			}
		}
		if len(by) != int(streams) {
			t.Errorf("%d streams: they read so many regions: %v", streams, by)
		}
		if busy := all.Seconds() / float64(streams) / (float64(m["durationNanoseconds"]) / 1e9); busy < 0.85 || busy > 1.001 {
			t.Errorf("%d streams: the regions took %s in all, and the scan %d ns", streams, all, m["durationNanoseconds"])
		}
	}
}

// TestSlowStream: a stream that the storage serves less often than the others reads fewer regions, and all end together.
func TestSlowStream(t *testing.T) {
	b := newBench(t)
	b.executor.judge = func(string, int64, observe.Delta) (bool, string) { return true, "not judged here" }
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("32Mi")}})
	b.executor.delay = func(kind string) {
		took := 5 * time.Millisecond
		if kind == "region 0" {
			took *= 6
		}
		_ = pause(t.Context(), took)
	}
	document, details := b.valid(streamsPhase(2, 32))
	by := map[int]int{}
	for _, region := range details.Regions {
		by[region.Stream]++
	}
	fewer, more := min(by[0], by[1]), max(by[0], by[1])
	if fewer+more != 32 || fewer < 8 || more-fewer < 3 || document.Metrics["readBytes"] != 32<<20 {
		t.Errorf("one stream was slow at first, and they read %v regions, and %d bytes", by, document.Metrics["readBytes"])
	}
}

// TestSlowRegionOfStreams: a slow place only makes its own region slow. If streams end at different times, the rate is not that of all of
// them, and the phase is Invalid.
func TestSlowRegionOfStreams(t *testing.T) {
	b := newBench(t)
	b.executor.judge = func(string, int64, observe.Delta) (bool, string) { return true, "not judged here" }
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("32Mi")}})
	b.executor.delay = func(kind string) {
		if kind == "region 5" {
			_ = pause(t.Context(), 40*time.Millisecond)
		}
	}
	document := b.execute(streamsPhase(4, 8))
	var details Details
	if err := json.Unmarshal(document.Raw, &details); err != nil {
		t.Fatal(err)
	}
	if document.Outcome != results.OutcomeInvalid || document.Reason != results.ReasonNotTogether || len(details.Regions) != 8 ||
		!strings.Contains(document.Message, "all 4 streams read together for") {
		t.Fatalf("%s %s %s: %+v", document.Outcome, document.Reason, document.Message, details.Regions)
	}
	for _, region := range details.Regions {
		if slow := region.Nanoseconds >= 32*(40*time.Millisecond).Nanoseconds(); slow != (region.Index == 5) {
			t.Errorf("%+v: region 5 alone takes 32 reads of 40 ms", region)
		}
	}
}

// TestStreamsOfFiles: streams read all data, whatever file it is in, and a part of it that is chosen at random.
func TestStreamsOfFiles(t *testing.T) {
	b := newBench(t)
	b.request.DataFiles = 4
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("16Mi")}})
	b.executor.delay = func(string) { _ = pause(t.Context(), 2*time.Millisecond) }
	document, details := b.valid(streamsPhase(2, 16))
	if len(details.Regions) != 16 || document.Metrics["readBytes"] != 16<<20 || document.Metrics["readOperations"] != 128 {
		t.Errorf("%+v, %v", details.Regions, document.Metrics)
	}
	some := streamsPhase(2, 16)
	some.Measure.Workload.Scan.RandomRegions = ptr.To[int32](6)
	document, details = b.valid(some)
	if len(details.Regions) != 6 || len(document.Seeds) != 1 || document.Metrics["readBytes"] != 6<<20 {
		t.Errorf("%+v, seeds %v, %v", details.Regions, document.Seeds, document.Metrics)
	}
	if err := os.Truncate(filepath.Join(b.request.Path, "storagebench.data.0001"), 4096); err != nil {
		t.Fatal(err)
	}
	b.refused(streamsPhase(2, 16), ReasonWrongPlace, "was changed since")
}

// TestUnreadableStream: a read that fails ends all streams.
func TestUnreadableStream(t *testing.T) {
	b := newBench(t)
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("16Mi")}})
	path := filepath.Join(b.request.Path, "storagebench.data.0000")
	b.executor.delay = func(kind string) {
		if kind == "region 5" {
			_ = os.Truncate(path, 1<<20)
		}
	}
	b.refused(streamsPhase(2, 16), ReasonFailed, "of "+path+": EOF")
}
