//go:build linux

package engine

import (
	"encoding/json"
	"fmt"
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

// TestKnownStreams: of reads that take a known time, so many streams make so many times the rate of one, and each region takes as long as with
// one stream. A busy machine adds to the times of reads, and to all figures alike.
func TestKnownStreams(t *testing.T) {
	const took, block, regions = 20 * time.Millisecond, 128 << 10, 8
	b := newBench(t)
	b.executor.judge = func(string, int64, observe.Delta) (bool, string) { return true, "not judged here" }
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("32Mi")}})
	b.slowFiles("r", took, 0, 0)
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
		for i, one := range details.Regions {
			all += time.Duration(one.Nanoseconds)
			if one.Index != i || one.Stream != i%int(streams) || one.Bytes != 4<<20 || time.Duration(one.Nanoseconds) < 32*took {
				t.Errorf("%d streams: region %d is %+v, and was to take %s", streams, i, one, 32*took)
			}
		}
		if busy := all.Seconds() / float64(streams) / (float64(m["durationNanoseconds"]) / 1e9); busy < 0.85 || busy > 1.001 {
			t.Errorf("%d streams: the regions took %s in all, and the scan %d ns", streams, all, m["durationNanoseconds"])
		}
	}
}

// TestSlowRegionOfStreams: the time of a region is that of the place where it lies, and the rate of streams that end at different times is no
// rate of so many.
func TestSlowRegionOfStreams(t *testing.T) {
	b := newBench(t)
	b.executor.judge = func(string, int64, observe.Delta) (bool, string) { return true, "not judged here" }
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("32Mi")}})
	b.slowFiles("r", 40*time.Millisecond, 0, 0, fmt.Sprintf("SLOW_FROM=%d SLOW_TO=%d", 5*4<<20, 6*4<<20))
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

// TestStreamsRefused: what several streams cannot read is refused before anything is read.
func TestStreamsRefused(t *testing.T) {
	b := newBench(t)
	b.request.DataFiles = 4
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("16Mi")}})
	b.refused(streamsPhase(2, 8), ReasonNotPossible, "streams: 1")
	b.refused(streamsPhase(3, 8), ReasonNotPossible, "a multiple of streams")
	c := scan{given: v1alpha1.ScanWorkload{}, block: 4096, each: 4096 * maxLoggedReads / 8, regions: 8, streams: 4, extents: make([]extent, 1)}
	if err := c.checkStreams(); err != nil {
		t.Errorf("as many reads as can be logged: %v", err)
	}
	c.each += 4096
	if err := c.checkStreams(); err == nil || !strings.Contains(err.Error(), "larger blockSize") {
		t.Errorf("more reads than can be logged: %v", err)
	}
}
