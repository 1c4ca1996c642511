//go:build linux

package engine

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTimesOfRegions: fio reports the end of a read in whole milliseconds. Regions that take only a few milliseconds still get their true
// length, and all of them together the length of the scan.
func TestTimesOfRegions(t *testing.T) {
	const regions, reads = 128, 8
	for name, c := range map[string]struct {
		read, rest time.Duration
		stop       time.Duration // within region 5, besides its reads
		tolerance  float64
	}{
		"less than a millisecond":     {90 * time.Microsecond, 3 * time.Microsecond, 0, 0.02},
		"some milliseconds":           {530 * time.Microsecond, 20 * time.Microsecond, 0, 0.02},
		"hundreds of milliseconds":    {40 * time.Millisecond, 20 * time.Microsecond, 0, 0.02},
		"much between reads":          {20 * time.Millisecond, 5 * time.Millisecond, 0, 0.02},
		"the node is busy for a time": {530 * time.Microsecond, 20 * time.Microsecond, 100 * time.Millisecond, 0.03},
	} {
		one := scan{block: 4096, each: reads * 4096, timed: make([]Region, regions)}
		folder := t.TempDir()
		var log strings.Builder
		var at time.Duration
		for read := range regions * reads {
			at += c.read + c.rest
			if read/reads == 5 && read%reads == 3 {
				at += c.stop
			}
			fmt.Fprintf(&log, "%d, %d, 0, 4096, 0, 0\n", at.Milliseconds(), c.read.Nanoseconds())
		}
		if err := os.WriteFile(filepath.Join(folder, "scan_lat.1.log"), []byte(log.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := one.readTimes(folder, 1); err != nil {
			t.Fatal(err)
		}
		for i, region := range one.timed {
			want := reads * (c.read + c.rest)
			if i == 5 {
				want += c.stop
			}
			if off := float64(region.Nanoseconds)/float64(want) - 1; math.Abs(off) > c.tolerance {
				t.Errorf("%s: region %d took %s, and is said to have taken %s", name, i, want, time.Duration(region.Nanoseconds))
			}
		}
		if got := one.spent(); math.Abs(float64(got)/float64(at)-1) > c.tolerance {
			t.Errorf("%s: the scan took %s, and is said to have taken %s", name, at, got)
		}
	}
}
