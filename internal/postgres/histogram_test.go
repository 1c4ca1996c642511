package postgres

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

func TestBuckets(t *testing.T) {
	before := int64(-1)
	for bucket := range buckets {
		end := bucketEnd(bucket)
		if end <= before || bucketOf(end) != bucket || bucketOf(before+1) != bucket {
			t.Fatalf("bucket %d ends at %d, the one before at %d", bucket, end, before)
		}
		if width := end - before; width > 1 && float64(width) > float64(end)/halfRange {
			t.Fatalf("bucket %d of %d is %d wide", bucket, end, width)
		}
		before = end
	}
	if before != maxLatency {
		t.Errorf("the last bucket ends at %d", before)
	}
}

// TestQuantiles compares the figures with those of the sorted latencies.
func TestQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 2, 3, 10, 999, 1000, 1001, 50_000} {
		h, all := newHistogram(), make([]int64, size)
		var sum, squares float64
		for i := range all {
			all[i] = int64(math.Exp(random.NormFloat64()*2 + 7))
			h.add(all[i])
			sum += float64(all[i])
		}
		slices.Sort(all)
		for _, value := range all {
			squares += (float64(value) - sum/float64(size)) * (float64(value) - sum/float64(size))
		}
		for _, perMille := range []uint64{500, 950, 990, 999, 1000} {
			want := all[(uint64(size)*perMille+999)/1000-1]
			if got := h.quantile(perMille); got < want || float64(got-want) > float64(want)/halfRange || want < 1<<exactBits && got != want {
				t.Errorf("%d of 1000 of %d: %d instead of %d", perMille, size, got, want)
			}
		}
		if math.Abs(h.average()-sum/float64(size)) > 1e-6 || math.Abs(h.deviation()-math.Sqrt(squares/float64(size))) > 1e-3 ||
			h.largest != all[size-1] {
			t.Errorf("%d: mean %v deviation %v largest %d", size, h.average(), h.deviation(), h.largest)
		}
		var counted int64
		for _, bucket := range h.coarse() {
			counted += bucket.Transactions
		}
		if counted != int64(size) || len(h.coarse()) > 42 {
			t.Errorf("%d in the picture of %d", counted, size)
		}
	}
	if h := newHistogram(); h.quantile(500) != 0 || h.average() != 0 || h.deviation() != 0 || h.coarse() != nil {
		t.Error("an empty histogram has figures")
	}
	h := newHistogram()
	h.add(math.MaxInt64)
	h.add(-5)
	if h.largest != maxLatency || h.quantile(1) != 0 {
		t.Error(h.largest, h.quantile(1))
	}
}

// TestMemory: a million transactions through the log take no more memory than one.
func TestMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	counted := &transactions{latencies: newHistogram()}
	lines := []byte("3 17 38665 0 1795271167 174629\n3 18 failed 0 1795271167 176471\n")
	for range 500_000 / 1000 {
		block := slices.Repeat(lines, 1000)
		counted.add(block)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if counted.latencies.total != 500_000 || counted.failed != 500_000 {
		t.Error(counted.latencies.total, counted.failed)
	}
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("1,000,000 transactions: the heap grew by %d KiB", grown>>10)
	if grown > 16<<20 {
		t.Error("that is too much")
	}
	runtime.KeepAlive(counted)
}
