//go:build linux

package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/workload"
)

// TestWorkersShareAllData: a worker with a region of its own that fits into a cache would dominate the rate. Only files of its own are a
// worker's choice.
func TestWorkersShareAllData(t *testing.T) {
	type area struct {
		paths        int
		offset, size int64
		stride       int64
		workers      int
		writePercent int
	}
	one := []extent{{"/data/1", 8 << 10, 1<<20 + 100}}
	two := []extent{{"/data/1", 0, 1 << 20}, {"/data/2", 0, 1 << 20}}
	for name, test := range map[string]struct {
		given   v1alpha1.OLTPWorkload
		extents []extent
		want    []area
	}{
		"reads":   {v1alpha1.OLTPWorkload{Workers: 64}, one, []area{{1, 8 << 10, 1 << 20, 0, 64, 0}}},
		"updates": {v1alpha1.OLTPWorkload{Workers: 5, UpdatePercent: 50}, one, []area{{1, 8 << 10, 1 << 20, 0, 3, 33}, {1, 8 << 10, 1 << 20, 0, 2, 34}}},
		"files":   {v1alpha1.OLTPWorkload{Workers: 3}, two, []area{{2, 0, 2 << 20, 0, 3, 0}}},
		"apart": {v1alpha1.OLTPWorkload{Workers: 2, Layout: workload.LayoutFilePerWorker}, two,
			[]area{{1, 0, 1 << 20, 0, 1, 0}, {1, 0, 1 << 20, 0, 1, 0}}},
	} {
		o := &oltp{given: test.given}
		if err := o.divide(fio.Job{BlockSize: 8 << 10}, test.extents); err != nil {
			t.Fatal(err)
		}
		var got []area
		for _, job := range o.jobs {
			got = append(got, area{len(job.Paths), job.Offset, job.Size, job.Stride, job.Workers, job.WritePercent})
		}
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(area{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
