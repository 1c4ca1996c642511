package workload

import (
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestMetadataEstimate: the estimate includes the time to create the files, in addition to the duration.
func TestMetadataEstimate(t *testing.T) {
	for _, c := range []struct {
		workers, files int32
		want           time.Duration
	}{{0, 0, 2 * time.Second}, {4, 1000, 2 * time.Second}, {64, 100_000, 3200 * time.Second}, {64, 1_000_000, 32_000 * time.Second}} {
		traits := TraitsOf(&v1alpha1.Workload{Metadata: &v1alpha1.MetadataWorkload{Workers: c.workers, FilesPerWorker: c.files,
			Duration: lasting(time.Minute)}})
		if traits.Setup != c.want || traits.Duration != time.Minute {
			t.Errorf("%d workers with %d files: %s to create them and %s to measure, want %s and 1m", c.workers, c.files, traits.Setup,
				traits.Duration, c.want)
		}
	}
}

// TestMetadataVersion: the rates of version 1, which did one kind of operation after the other, are not compared with those of the mix. Those
// of version 2 included a visit to each file on ZFS at the end.
func TestMetadataVersion(t *testing.T) {
	phase := measuring(v1alpha1.Workload{Metadata: &v1alpha1.MetadataWorkload{}})
	if got := Version(&phase); got != "metadata 3" {
		t.Errorf("got %q", got)
	}
}
