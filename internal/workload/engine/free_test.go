//go:build linux

package engine

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func freePhase(share v1alpha1.Share) v1alpha1.Phase {
	return v1alpha1.Phase{Name: "free", Free: &v1alpha1.FreePhase{Share: share}}
}

// TestFree: the end of each file is gone, its space is free, and later phases work on the rest, on a volume and on a part of one.
func TestFree(t *testing.T) {
	for _, shared := range []bool{true, false} {
		t.Run(map[bool]string{true: "shared", false: "own"}[shared], func(t *testing.T) {
			b := newBench(t)
			if !shared {
				b.onVolume("64")
			}
			b.request.DataFiles = 2
			b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("32Mi")}})
			b.valid(fragmentPhase(1))
			path := filepath.Join(b.request.Path, "storagebench.data.0001")
			before, err := os.ReadFile(path)
			if err != nil || len(before) != 16<<20 {
				t.Fatalf("%d bytes: %v", len(before), err)
			}
			document, _ := b.valid(freePhase("30%"))
			const left = 16 << 20 * 7 / 10 / freeUnit * freeUnit
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(after, before[:left]) {
				t.Errorf("%d bytes are left, want the first %d: %v", len(after), left, err)
			}
			m := document.Metrics
			if want := int64(2 * (16<<20 - left)); m["freedBytes"] != want || m["allocatedBytes"] < 2*left || m["allocatedBytes"] > 2*left+1<<20 ||
				m["durationNanoseconds"] <= 0 {
				t.Errorf("want %d bytes freed: %v", want, m)
			}
			if scanned, _ := b.valid(scanPhase(1)); scanned.Metrics["readBytes"] != 2*left {
				t.Errorf("a scan reads %d bytes", scanned.Metrics["readBytes"])
			}
			if aged, _ := b.valid(fragmentPhase(1)); aged.Metrics["writtenBytes"] != 2*left {
				t.Errorf("a pass overwrites %d bytes", aged.Metrics["writtenBytes"])
			}
			b.valid(v1alpha1.Phase{Name: "again", Fill: &v1alpha1.FillPhase{Size: amount("4Mi")}})
			if scanned, _ := b.valid(scanPhase(1)); scanned.Metrics["readBytes"] != 2*left+4<<20 {
				t.Errorf("after another fill, a scan reads %d bytes", scanned.Metrics["readBytes"])
			}
		})
	}
}

// TestFreeThatFreesNothing: space that something else takes immediately, or still holds, is not free.
func TestFreeThatFreesNothing(t *testing.T) {
	b := newBench(t)
	b.executor.freePatience = time.Second
	b.refused(freePhase("30%"), ReasonNoData, "add a fill phase before")
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("16Mi")}})
	syncs := 0
	b.executor.sync = func(v *volume) error {
		if syncs++; syncs == 2 { // after the first look at what is free
			touch(t, filepath.Join(v.path, "other"), string(make([]byte, 4<<20)))
		}
		return v.sync()
	}
	b.refused(freePhase("50%"), ReasonTargetMissed, "destroy the snapshots and clones that still hold it")
	b.refused(freePhase("99.9%"), ReasonNotPossible, "too small to free 99.9% of them")
}

func TestFreeOnADevice(t *testing.T) {
	newDeviceBench(t).refused(freePhase("50%"), ReasonNotPossible, "volumeMode: Filesystem")
}
