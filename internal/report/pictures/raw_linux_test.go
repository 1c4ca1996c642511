package pictures

import (
	"encoding/json"
	"testing"

	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/workload/engine"
)

// TestRawIsWhatTheEngineWrites: a renamed field would silently remove a picture.
func TestRawIsWhatTheEngineWrites(t *testing.T) {
	text, err := json.Marshal(engine.Details{
		Rounds:    []engine.Round{{Bytes: 1, DurationNanoseconds: 2}},
		Regions:   []engine.Region{{Index: 3, Bytes: 4, Nanoseconds: 5}},
		Latencies: map[string][]fio.Bin{"read": {{Nanoseconds: 6, Count: 7}}},
		Series: &engine.Series{Points: []engine.Point{{Span: engine.Span{FromMilliseconds: 11, ToMilliseconds: 12}, ReadBytes: 13, WrittenBytes: 14,
			Operations: 18, LatencyMaxNanoseconds: 19, LatencyMeanNanoseconds: 20}},
			Steady: &engine.Span{FromMilliseconds: 15}, Measured: []engine.Span{{ToMilliseconds: 17}}},
		Samples: []fio.Sample{{Milliseconds: 8, Nanoseconds: 9}}, SamplesSeen: 10,
		Workloads: map[string]engine.Details{"log": {SamplesSeen: 16}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got raw
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Rounds[0].Bytes != 1 || got.Rounds[0].DurationNanoseconds != 2 || got.Regions[0].Index != 3 || got.Regions[0].Bytes != 4 ||
		got.Regions[0].Nanoseconds != 5 || got.Latencies["read"][0].Nanoseconds != 6 || got.Latencies["read"][0].Count != 7 ||
		got.Samples[0].Milliseconds != 8 || got.Samples[0].Nanoseconds != 9 || got.SamplesSeen != 10 ||
		got.Workloads["log"].SamplesSeen != 16 {
		t.Errorf("%+v of %s", got, text)
	}
	if point := got.Series.Points[0]; point.FromMilliseconds != 11 || point.ToMilliseconds != 12 || point.ReadBytes != 13 || point.WrittenBytes != 14 ||
		point.Operations != 18 || point.LatencyMaxNanoseconds != 19 || point.LatencyMeanNanoseconds != 20 ||
		got.Series.Steady.FromMilliseconds != 15 || got.Series.Measured[0].ToMilliseconds != 17 {
		t.Errorf("%+v of %s", got.Series, text)
	}
}
