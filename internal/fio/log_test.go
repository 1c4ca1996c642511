package fio

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestSamplesOfARealLog(t *testing.T) {
	samples := NewSamples(1000, 1)
	if err := EachSample(bytes.NewReader(golden(t, "latency-3.33.log")), samples.Add); err != nil {
		t.Fatal(err)
	}
	kept := samples.Kept()
	if samples.Seen != 69 || len(kept) != 69 || kept[0] != (Sample{10, 8355268}) {
		t.Errorf("%d seen, %d kept, first %+v", samples.Seen, len(kept), kept[0])
	}
}

// TestSamplesAreFair: the largest are always kept, and each of the others has the same chance.
func TestSamplesAreFair(t *testing.T) {
	const all, limit = 100_000, 1000
	samples := NewSamples(limit, 7)
	for i := range int64(all) {
		samples.Add(Sample{Milliseconds: i, Nanoseconds: (i * 7919) % all})
	}
	kept := samples.Kept()
	if samples.Seen != all || len(kept) != limit {
		t.Fatalf("%d seen, %d kept", samples.Seen, len(kept))
	}
	large, early := 0, 0
	for _, sample := range kept {
		if sample.Nanoseconds >= all-limit/4 {
			large++
		}
		if sample.Milliseconds < all/2 {
			early++
		}
	}
	if large < limit/4 {
		t.Errorf("%d of the %d largest were kept", large, limit/4)
	}
	if early < 430 || early > 570 { // half of them, four standard deviations
		t.Errorf("%d of %d samples are from the first half", early, limit)
	}
	if !slices.IsSortedFunc(kept, func(a, b Sample) int { return int(a.Milliseconds - b.Milliseconds) }) {
		t.Error("they are not in the order of time")
	}
}

func TestSamplesRefuse(t *testing.T) {
	for _, line := range []string{"", "10", "10, 20", "x, 20, 1", "10, -5, 1", "-1, 5, 1", "10, 1.5, 1", strings.Repeat("1", 5000)} {
		if err := EachSample(strings.NewReader("10, 20, 1, 0, 0\n"+line+"\n"), func(Sample) {}); err == nil {
			t.Errorf("%.40q was accepted", line)
		}
	}
}

func FuzzSamples(f *testing.F) {
	f.Add("10, 8355268, 1, 0, 0\n76, 57130849, 1, 0, 0\n")
	f.Add("1,2,\n")
	f.Add("9223372036854775807, 9223372036854775807, 0, 4096, 0, 0x0")
	f.Fuzz(func(t *testing.T, text string) {
		samples := NewSamples(8, 1)
		if err := EachSample(strings.NewReader(text), samples.Add); err != nil {
			return
		}
		if kept := samples.Kept(); len(kept) > 8 || int64(len(kept)) > samples.Seen {
			t.Errorf("%d kept of %d", len(kept), samples.Seen)
		}
	})
}
